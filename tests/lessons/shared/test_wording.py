"""Numbers as the figures write them."""

import numpy as np
import pytest

from minfer_lib.lessons.shared.wording import counted, shown


@pytest.mark.parametrize(
    "value, text", [(-3, "−3"), (np.int8(-128), "−128"), (-0.1234567, "−0.12346"), (np.float32(1 / 3), "0.33333")]
)
def test_a_number_has_a_real_minus_sign(value, text):
    assert shown(value) == text


def test_one_is_singular():
    assert [counted(n, "lane") for n in (0, 1, 1024)] == ["0 lanes", "1 lane", "1,024 lanes"]
