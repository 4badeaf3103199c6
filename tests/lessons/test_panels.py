"""The generation panel and the chat without a browser: buttons, the text as it comes, one session a conversation."""

import pytest

import minfer_lib as mf
from minfer_lib.lessons import ChatPanel, GenerationPanel
from minfer_lib.text import ChatTemplate


@pytest.fixture
def model(tiny):
    return mf.load_model(tiny(context=512), threads=1)


def test_the_panel_writes_what_generate_yields(model):
    panel = GenerationPanel(model, "the ", max_tokens=12)
    panel._run.click()
    ids = list(model.generate(model.tokenizer.encode("the "), max_tokens=12))
    assert panel.wait() == "the " + model.tokenizer.decode(ids)
    assert f"{len(ids)} tokens" in panel._speed.value and panel._speed.value.endswith(", done")
    assert not panel._run.disabled and panel._halt.disabled
    assert "<b>the </b>" in panel._repr_mimebundle_()["text/html"]


def test_it_stops(model):
    panel = GenerationPanel(model, "the ", lambda logits, ids: panel.stop() or 5, max_tokens=10**6)
    panel.run()
    panel.wait()
    assert panel._speed.value.startswith("1 tokens") and panel._speed.value.endswith(", stopped")


def test_what_goes_wrong_is_said_where_the_speed_stands(model):
    panel = GenerationPanel(model, "")
    panel.run()
    panel.wait()
    assert "no tokens" in panel._speed.value and not panel._run.disabled


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
