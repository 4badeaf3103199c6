"""One quantized block in numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import minfer_lib as mf
from minfer_lib.lessons.lesson_02.quantized_block import BLOCK_FORMATS, quantized

OFFSETS = {"Q8_0": 0, "Q4_0": 8, "Q5_0": 16, "Q4_1": 0, "Q5_1": 0}
BLOCKS = arrays(np.float32, 32, elements=st.floats(-100, 100, width=32))


@given(BLOCKS, st.sampled_from(BLOCK_FORMATS))
def test_codes_and_scale_give_the_decoded_values(x, format):
    block = quantized(format, x)
    assert np.array_equal(block.raw, mf.quantize(format, x))
    values = np.float32(block.d) * (block.codes - OFFSETS[format]).astype(np.float32) + np.float32(block.m or 0)
    assert np.array_equal(block.values, values)


@given(BLOCKS, st.sampled_from(BLOCK_FORMATS[1:]))
def test_every_value_decodes_to_one_of_the_levels(x, format):
    block = quantized(format, x)
    assert np.isin(block.values, block.levels).all()
    assert len(block.levels) <= (16 if format.startswith("Q4") else 32)


def test_what_is_no_block_is_refused():
    with pytest.raises(mf.ArgumentError, match="Q4_K"):
        quantized("Q4_K", np.zeros(32))
    with pytest.raises(mf.ArgumentError, match=r"\(31,\)"):
        quantized("Q8_0", np.zeros(31))
