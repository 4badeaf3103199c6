"""Decode speed under the roof that memory sets."""

import pytest
from lesson_cases import texts

from minfer_lib.bench.speed import DecodeSpeed
from minfer_lib.lessons import roof_picture


@pytest.mark.parametrize("threads, axis", [(1, "tokens/s with 1 thread"), (2, "tokens/s with 2 threads")])
def test_the_roof_is_what_the_ceiling_allows(threads, axis):
    picture = roof_picture(DecodeSpeed(threads, 30.0, 6.0, 8.0))
    assert {"roof", "measured", "40.0", "30.0", axis} <= set(texts(picture.svg))
    assert "30.0 tokens per second measured, 40.0 possible" in picture.alt and "8.0 GB/s" in picture.alt
