"""The default model beside llama.cpp, and Austen's at any number of threads."""

import json
from pathlib import Path

import numpy as np
import pytest
from agreement import clear_steps

import minfer_lib as mf
from minfer_lib import model_files

CASES = json.loads(
    (Path(__file__).parents[2] / "data" / "golden" / "smollm2_135m_q4_1.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def real(smollm2):
    return mf.load_model(smollm2)


@pytest.mark.parametrize("case", CASES, ids=[case["prompt"][:20] for case in CASES])
def test_prompt_ids_and_logits_are_llama_cpps(real, case):
    assert real.tokenizer.encode(case["prompt"]) == case["ids"]
    logits, std = real.logits(case["ids"]), case["logits_std"]
    assert abs(logits.std() / std - 1) < 0.05 and abs(logits.mean() - case["logits_mean"]) < 0.2 * std
    distance = np.abs(logits[case["top_ids"]] - case["top_logits"]).max() / std
    assert distance < 0.35, f"the ten highest logits are up to {distance:.2f} standard deviations apart"


def test_the_token_rule(real):
    """Fed llama.cpp's own tokens one by one, our arg max is its next token wherever its margin is clear."""
    clear, agreed = clear_steps(real, CASES)
    assert clear > 250
    assert agreed >= 0.99 * clear, f"{agreed} of {clear} clear steps"


def test_the_real_model_says_the_same_at_any_number_of_threads(smollm2):
    ids = CASES[1]["ids"]
    texts = [list(mf.load_model(smollm2, threads=n).generate(ids, max_tokens=12)) for n in (1, 2, 3)]
    assert texts[0] == texts[1] == texts[2]
    assert np.array_equal(mf.load_model(smollm2, threads=1).logits(ids), mf.load_model(smollm2, threads=2).logits(ids))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_claimed_chunks_give_the_bits_of_even_ranges(threads):
    """The rows of a matrix may be computed in any order by anyone: each is one worker's sum, in one order."""
    path = model_files.resolve("austen")
    ids = list(range(40, 60))
    expected = mf.load_model(path, threads=1).session().trace(ids)
    model = mf.load_model(path, threads=threads, policy="ggml")
    for _ in range(3):  # who claims what differs from run to run
        found = model.session().trace(ids)
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[name], expected[name]) for name in found)
        assert np.array_equal(model.logits(ids), expected["logits"][0])
