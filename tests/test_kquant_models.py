"""Whole models of K-quants: the repository's own model in five presets, beside llama.cpp."""

import json
from pathlib import Path

import numpy as np
import pytest
from agreement import clear_steps

import minfer_lib as mf
from minfer_lib import model_files
from minfer_lib.engine.perplexity import perplexity
from minfer_lib.quantize.convert import quantize_gguf

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "data" / "golden"
PRESETS = json.loads((GOLDEN / "austen_kquants.json").read_text(encoding="utf-8"))
HELDOUT = (ROOT / "data" / "austen" / "heldout.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=PRESETS)
def austen(request, tmp_path_factory):
    """(the repository's model in a preset, what llama.cpp says of the same file)"""
    path = tmp_path_factory.mktemp("presets") / f"{request.param}.gguf"
    quantize_gguf(model_files.resolve("austen"), path, request.param, threads=2)
    return mf.load_model(path), PRESETS[request.param]


def test_every_matrix_is_a_k_quant(austen):
    assert all(matrix.dot.format.endswith("_K") for matrix in austen[0].weights.matrices())


def test_prompt_ids_and_logits_are_llama_cpps(austen):
    model, theirs = austen
    for case in theirs["cases"]:
        assert model.tokenizer.encode(case["prompt"]) == case["ids"]
        distance = np.abs(model.logits(case["ids"])[case["top_ids"]] - case["top_logits"]).max() / case["logits_std"]
        assert distance < 0.2, f"the ten highest logits are up to {distance:.2f} standard deviations apart"


def test_the_token_rule(austen):
    """Fed llama.cpp's own greedy tokens, our arg max is its next token wherever its margin is clear."""
    model, theirs = austen
    clear, agreed = clear_steps(model, theirs["cases"])
    assert clear > 150 and agreed >= 0.99 * clear, f"{agreed} of {clear} clear steps"


def test_perplexity_is_llama_cpps(austen):
    model, theirs = austen
    assert perplexity(model, HELDOUT, 512, 6).value == pytest.approx(theirs["perplexity"], rel=0.005)


def test_the_bits_do_not_depend_on_the_threads(austen):
    model, theirs = austen
    ids = theirs["cases"][0]["ids"]
    rows = [mf.load_model(model.gguf.path, threads=n).logits(ids) for n in (1, 2, 3)]
    assert np.array_equal(rows[0], rows[1]) and np.array_equal(rows[0], rows[2])
