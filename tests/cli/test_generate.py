"""`minfer generate` and `minfer chat`: what is printed where, and what the model was asked to read."""

import os
import re
import subprocess
import sys

import pytest
from tiny_models import CONTROLS, MERGES, Spec, random_weights, write_model

import minfer_lib as mf

SPEED = re.compile(r"\[(\d+) tokens, \d+\.\d tokens/s\]")


def test_generate_prints_prompt_and_text_and_the_speed_elsewhere(run, model):
    status, out, err = run("generate", "the ", "--model", model, "--max-tokens", "7", "--greedy")
    engine = mf.load_model(model)
    ids = list(engine.generate(engine.tokenizer.encode("the "), max_tokens=7, overflow="slide"))
    assert status == 0 and out == "the " + engine.tokenizer.decode(ids) + "\n"
    assert SPEED.search(err).group(1) == str(len(ids)) and "tokens/s" not in out


def test_generate_samples_with_seed_42(run, model):
    def text(*more):
        return run("generate", "hello", "--model", model, "--max-tokens", "12", *more)[1]

    assert (
        text()
        == text("--seed", "42")
        == text("--temperature", "0.8", "--top-k", "40", "--top-p", "0.95", "--min-p", "0.05")
    )
    assert len({text("--seed", str(seed), "--temperature", "2") for seed in range(4)}) == 4
    assert text("--temperature", "0") == text("--greedy") != text("--seed", "1", "--temperature", "3", "--min-p", "0")
    assert text("--greedy", "--threads", "3") == text("--greedy")


def test_generate_slides_past_the_end_of_the_context(run, model):
    status, out, err = run(
        "generate", "the theor", "--model", model, "--context", "8", "--max-tokens", "30", "--greedy"
    )
    assert status == 0 and SPEED.search(err)


def test_timing_says_where_the_time_of_a_token_went(run, model):
    status, out, err = run("generate", "the ", "--model", model, "--max-tokens", "5", "--greedy", "--timing")
    assert status == 0 and out == run("generate", "the ", "--model", model, "--max-tokens", "5", "--greedy")[1]
    n_prompt = len(mf.load_model(model).tokenizer.encode("the "))
    heads = re.findall(r"\[(\w+): (\d+) tokens, a token took\]", err)
    assert heads == [("prompt", str(n_prompt)), ("text", "4")], "the fifth token is not fed"
    for table in err.split("a token took]")[1:]:
        shares = {name: float(share) for name, share in re.findall(r"^  (\w+) .* ([\d.]+)%$", table, re.M)}
        assert list(shares) == ["matmul", "attention", "sampling", "rest"]
        assert abs(sum(shares.values()) - 100) < 0.3, "the parts are the whole"


def test_minfer_timing_switches_it_on_and_nothing_else_does(model):
    for value, shown in (("1", True), ("0", False), ("", False)):
        command = [sys.executable, "-m", "minfer_lib", "generate", "the ", "--model", model, "--max-tokens", "2"]
        ended = subprocess.run(command, env=os.environ | {"MINFER_TIMING": value}, capture_output=True, text=True)
        assert ended.returncode == 0 and ("attention" in ended.stderr) == shown


def test_generate_reads_special_tokens_in_the_prompt(run, model, monkeypatch):
    fed = []
    monkeypatch.setattr(mf.Session, "generate", lambda self, ids, *_, **__: fed.append(ids) or iter(()))
    assert run("generate", "<|im_start|>hi", "--model", model)[0] == 0
    assert fed == [mf.load_model(model).tokenizer.encode("<|im_start|>hi")] and fed[0][0] == 1


def test_a_sentencepiece_model_reads_bos_and_goes_on_after_a_space(run, tiny, monkeypatch):
    path, fed = str(tiny(sentencepiece=True)), []
    tokenizer = mf.load_model(path).tokenizer
    said = tokenizer.encode("the 🎉", bos=False)  # four bytes, a token each

    monkeypatch.setattr(mf.Session, "generate", lambda self, ids, *_, **__: fed.append(ids) or iter(said))
    status, out, _ = run("generate", "the", "--model", path)
    assert status == 0 and out == "the the 🎉\n"
    assert fed == [[1, tokenizer.tokens.index("▁the")]]


def type_lines(monkeypatch, *lines):
    lines = iter(lines)

    def ask(prompt=""):
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", ask)


def test_chat_feeds_the_template_and_only_what_is_new(run, model, monkeypatch):
    fed = []
    original = mf.Session.generate

    def generate(self, ids, *arguments, **more):
        fed.append((list(self.ids), list(ids)))
        return original(self, ids, *arguments, **more)

    monkeypatch.setattr(mf.Session, "generate", generate)
    type_lines(monkeypatch, "hi", "  and  ")
    status, out, err = run("chat", "--model", model, "--system", "be kind", "--max-tokens", "3", "--greedy")
    assert status == 0 and len(SPEED.findall(err)) == 2
    tokenizer = mf.load_model(model).tokenizer
    first = tokenizer.encode(
        "<|im_start|>system\nbe kind<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert fed[0] == ([], first)
    kept, new = fed[1]
    assert kept[: len(first)] == first, "the first turn is not read again"
    answer = out.splitlines()[0]
    whole = tokenizer.decode(first) + answer
    assert tokenizer.decode(kept + new).startswith(whole[:-2])
    assert tokenizer.decode(kept + new).endswith("<|im_start|>user\nand<|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.parametrize("lines", [[], [""], ["   "]])
def test_chat_ends_at_an_empty_message_or_ctrl_d(run, model, monkeypatch, lines):
    type_lines(monkeypatch, *lines)
    status, out, err = run("chat", "--model", model)
    assert status == 0 and "Type a message" in err and out == ""


def test_chat_goes_on_past_the_context(run, model, monkeypatch):
    type_lines(monkeypatch, *["the the"] * 5)
    status, _, err = run("chat", "--model", model, "--max-tokens", "20", "--greedy")
    assert status == 0 and len(SPEED.findall(err)) >= 1


def test_chat_without_a_template(run, tmp_path, monkeypatch):
    import tiny_models

    monkeypatch.setattr(tiny_models, "CHATML", " ")
    path = write_model(tmp_path / "m.gguf", Spec())
    status, _, err = run("chat", "--model", str(path))
    assert status == 1 and "no chat template" in err


def test_the_tiny_vocabulary_is_what_these_tests_think(model):
    """`the` is one token through two merges, so prompts here are not just bytes."""
    tokenizer = mf.load_model(model).tokenizer
    assert tokenizer.encode("the") == [len(CONTROLS) + 256 + MERGES.index("t he")]
    assert random_weights(Spec())["token_embd.weight"].shape[0] == len(tokenizer)
