"""One quantized block as a picture, and its bytes."""

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import minfer_lib as mf
from minfer_lib.lessons.lesson_02.block_picture import block_numbers, block_picture, described
from minfer_lib.lessons.lesson_02.quantized_block import BLOCK_FORMATS, quantized

BLOCKS = arrays(np.float32, 32, elements=st.floats(-100, 100, width=32))


@given(BLOCKS, st.sampled_from(BLOCK_FORMATS))
def test_any_block_can_be_drawn(x, format):
    block = quantized(format, x)
    picture = block_picture(block)
    assert picture.svg.startswith("<svg ") and 'role="img"' in picture.svg and "nan" not in picture.svg
    assert picture.alt == described(block)


def test_a_block_with_errors_beyond_half_a_step_is_marked():
    x = np.zeros(32)
    x[:2] = 8, -8
    block = quantized("Q4_0", x)
    assert (block.d, block.codes[:2].tolist(), block.steps[1]) == (-1, [0, 15], 1)
    svg = block_picture(block).svg
    assert svg.count(">✕<") == 1 and svg.count(">15<") == 2  # a code, and the number of a value


def test_a_block_of_zeros_has_no_step():
    block = quantized("Q8_0", np.zeros(32))
    assert block.d == 0 and not block.steps.any() and "no error" in block_numbers(block)


def test_the_numbers_show_every_byte_of_each_field():
    x = np.linspace(-3, 5, 32)
    for format in BLOCK_FORMATS:
        block = quantized(format, x)
        shown = block_numbers(block)
        found = dict(re.findall(r"<b>(\w+)</b> ((?:[0-9a-f]{2} ?)+)<", shown))
        assert list(found) == [field.name for field in mf.FORMATS[format].fields]
        assert bytes.fromhex("".join(found.values())) == block.raw.tobytes()
        assert f"{abs(block.steps[block.worst]):.3f} steps, at value {block.worst}" in shown
