"""The model of the repository: what llama.cpp says of it, and that it writes English."""

import json
from pathlib import Path

import numpy as np
import pytest
from agreement import clear_steps

import minfer_lib as mf
from minfer_lib import model_files
from minfer_lib.engine.perplexity import perplexity

ROOT = Path(__file__).parent.parent
CASES = json.loads((ROOT / "data" / "golden" / "austen_f16.json").read_text(encoding="utf-8"))
HELDOUT = (ROOT / "data" / "austen" / "heldout.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def austen():
    return mf.load_model(model_files.resolve("austen"))


def test_it_is_small_and_every_k_quant_fits(austen):
    assert model_files.resolve("austen").stat().st_size <= 16_000_000
    assert all(matrix.n_in % 256 == 0 for matrix in austen.weights.matrices())
    assert austen.gguf.metadata["general.license"] == "cc0-1.0"


@pytest.mark.parametrize("case", CASES, ids=[case["prompt"][:20] for case in CASES])
def test_prompt_ids_and_logits_are_llama_cpps(austen, case):
    assert austen.tokenizer.encode(case["prompt"]) == case["ids"]
    difference = np.abs(austen.logits(case["ids"])[case["top_ids"]] - case["top_logits"]).max()
    assert difference < 0.05 * case["logits_std"]


def test_the_token_rule(austen):
    """Fed llama.cpp's own greedy tokens, our arg max is its next token wherever its margin is clear."""
    clear, agreed = clear_steps(austen, CASES)
    assert clear > 100 and agreed >= 0.99 * clear


@pytest.mark.parametrize(
    ("context", "chunks", "expected", "judged"), [(128, 6, 30.511708, 378), (256, 4, 40.566944, 508)]
)
def test_perplexity_is_llama_cpps(austen, context, chunks, expected, judged):
    """`expected` is from llama.cpp 0.3.36 of llama-cpp-python, computed as data/austen/verify.py does."""
    found = perplexity(austen, HELDOUT, context, chunks)
    assert found.chunks == chunks and found.tokens == judged
    assert found.value == pytest.approx(expected, rel=0.002)


def test_perplexity_refuses_what_it_cannot_judge(austen):
    with pytest.raises(mf.ArgumentError, match="tokens"):
        perplexity(austen, "too short", 64)
    for context in (0, 3, austen.context + 1):
        with pytest.raises(mf.ArgumentError, match="context"):
            perplexity(austen, HELDOUT, context)


def test_log_probabilities_come_from_the_logits_before_each_token(austen):
    ids = austen.tokenizer.encode(HELDOUT)[:200]  # more than one piece of prefill
    session, expected = austen.session(), []
    logits = session.feed(ids[:1])
    for token in ids[1:]:
        row = logits.astype(np.float64)
        expected.append(row[token] - row.max() - np.log(np.exp(row - row.max()).sum()))
        logits = session.feed([token])
    for first in (1, 2, 127, 128, 129, 130, len(ids) - 1, len(ids)):
        found = austen.session().log_probabilities(ids, first)
        np.testing.assert_allclose(found, expected[first - 1 :], atol=1e-9)
    with pytest.raises(mf.ArgumentError, match="first"):
        austen.session().log_probabilities(ids, 0)


def test_it_writes_words(austen):
    ids = austen.tokenizer.encode("It was a fine morning, and")
    text = austen.tokenizer.decode(list(austen.generate(ids, 60, mf.Sampler(seed=1))))
    words = [word.strip('.,;:!?"').lower() for word in text.split()]
    known = set(HELDOUT.lower().replace(",", " ").replace(".", " ").split())
    assert len(words) > 30 and sum(word in known for word in words) > 0.8 * len(words)


def test_the_choice_falls_back_to_it(monkeypatch, tmp_path):
    monkeypatch.setenv("MINFER_MODELS", str(tmp_path))
    choice = model_files.choose()
    assert choice.path == model_files.resolve("austen") and "minfer fetch" in choice.why
    (tmp_path / model_files.MODELS["smollm2"].filename).touch()
    assert model_files.choose().path == choice.path  # an empty file of that name is no model
