"""The likeliest next tokens as bars."""

import numpy as np
import pytest
from lesson_cases import texts

from minfer_lib.lessons import next_token_picture
from minfer_lib.lessons.lesson_08.next_token import COUNT


@pytest.fixture
def probabilities():
    """Token i has the share (n - i)^8 of all."""
    shares = np.arange(265, 0, -1, dtype=np.float64) ** 8
    return (shares / shares.sum()).astype(np.float32)


def test_the_likeliest_come_first_and_only_they(probabilities, model):
    swapped = probabilities.copy()
    swapped[[0, 200]] = swapped[[200, 0]]
    picture = next_token_picture(swapped, model.tokenizer)
    order = [200, *range(1, COUNT)]
    names = [repr(model.tokenizer.decode([token]))[1:-1] for token in order]
    told = ", ".join(f"“{name}” {swapped[token]:.1%}" for name, token in zip(names, order, strict=True))
    assert picture.alt == f"Bar chart of the likeliest next tokens: {told}."
    drawn = texts(picture.svg)
    assert {f"{swapped[token]:.1%}" for token in order} <= set(drawn) and "probability of being next" in drawn
