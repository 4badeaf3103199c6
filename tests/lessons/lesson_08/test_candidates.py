"""The likeliest tokens, and what a sampler's filters leave of them, as bars."""

import numpy as np
import pytest
from lesson_cases import texts

from minfer_lib.lessons.lesson_08.candidates import COUNT, Candidates, candidates_picture
from minfer_lib.text.sampling import Sampler, softmax


@pytest.fixture
def logits():
    """The token with id 0 is the likeliest, then 1, 2 …"""
    return np.linspace(6, -2, 265).astype(np.float32)


def test_what_is_ruled_out_says_by_what(logits, model):
    picture = candidates_picture(Candidates(logits, Sampler(top_k=3, top_p=1.0, min_p=0.0)), model.tokenizer)
    drawn = texts(picture.svg)
    assert drawn.count("ruled out by top-k") == COUNT - 3 and {"the model", "the sampler draws"} <= set(drawn)


def test_each_token_has_its_probability_and_its_chance(logits, model):
    candidates = Candidates(logits, Sampler(temperature=0.5, top_k=5, top_p=1.0, min_p=0.0))
    picture, before = candidates_picture(candidates, model.tokenizer), softmax(logits)
    for token in range(COUNT):
        name = repr(model.tokenizer.decode([token]))[1:-1]
        assert f"“{name}” {before[token]:.1%} to {candidates.after[token]:.1%}" in picture.alt
    assert not candidates.after[5:].any() and np.isclose(candidates.after.sum(), 1)
