"""The chat without a browser: one session a conversation."""

import pytest

import minfer_lib as mf
from minfer_lib.lessons import ChatPanel
from minfer_lib.text import ChatTemplate


def test_a_conversation_is_one_session(model):
    chat = ChatPanel(model, "in the", max_tokens=5)
    template = ChatTemplate(model.gguf.metadata, model.tokenizer)
    chat._run.click()
    chat.wait()
    assert [message["role"] for message in chat.messages] == ["user", "assistant"]
    first = template.encode(chat.messages[:1])
    assert chat.fed == len(first) and chat._prompt.value == ""
    answer = model.tokenizer.decode(list(model.generate(first, max_tokens=5)))
    assert chat.messages[1]["content"] == answer

    chat._prompt.value = "all"
    chat._run.click()
    chat.wait()
    whole = template.encode(chat.messages[:3])
    assert len(chat.messages) == 4 and chat.fed < len(whole), "what is in the cache is not read again"
    fresh = model.tokenizer.decode(list(model.generate(whole, max_tokens=5)))
    assert chat.messages[3]["content"] == fresh
    page = chat._repr_mimebundle_()["text/html"]
    assert page.count("<b>user:</b>") == page.count("<b>assistant:</b>") == 2


def test_a_message_without_an_answer_is_not_in_the_conversation(model):
    def fail(logits, ids):
        raise mf.ArgumentError("no such token")

    chat = ChatPanel(model, "in the", fail)
    chat.run()
    chat.wait()
    assert chat.messages == [] and chat._speed.value == "no such token"


def test_a_new_chat_forgets(model):
    chat = ChatPanel(model, "in the", max_tokens=3)
    chat.run()
    chat.wait()
    chat._new.click()
    assert chat.messages == [] and chat._session.position == 0 and chat._output.value == ""


def test_what_is_said_is_shown_as_text(model):
    chat = ChatPanel(model, "<img src=x>", max_tokens=1)
    chat.run()
    chat.wait()
    assert "&lt;img src=x&gt;" in chat._output.value and "<img" not in chat._output.value


def test_a_model_without_a_template_is_refused(tiny):
    with pytest.raises(mf.UnsupportedError):
        ChatPanel(mf.load_model(tiny(vocabulary=False)), "hello")
