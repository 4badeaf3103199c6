"""A super-block taken apart decodes as the library does."""

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.formats.table import FORMATS
from minfer_lib.lessons import SuperBlock
from minfer_lib.lessons.shared.super_block import K_QUANTS


def random_block(name):
    """Any bytes, but for scales that are numbers."""
    raw = np.random.default_rng(6).integers(0, 256, FORMATS[name].block_bytes).astype(np.uint8)
    fields = raw.view(FORMATS[name].dtype)
    for field, value in (("d", -0.375), ("dmin", 0.25)):
        if field in fields.dtype.names:
            fields[field] = value
    return SuperBlock(name, raw)


@pytest.mark.parametrize("name", K_QUANTS)
def test_a_super_block_decodes_as_the_library_does(name):
    block = random_block(name)
    assert np.array_equal(block.values.ravel(), mf.dequantize(name, block.raw))
    assert block.scales.size * block.codes.shape[1] == 256
    assert block.levels.shape == (block.scales.size, 1 << int(name[1]))
    assert np.array_equal(np.take_along_axis(block.levels, block.codes, axis=1), block.values)
    assert bool(block.dmin) == bool(block.mins.any()) == (name in ("Q2_K", "Q4_K", "Q5_K"))


@pytest.mark.parametrize("name, size", [("Q4_0", 18), ("Q8_K", 306), ("Q4_K", 143), ("Q4_K", 288)])
def test_what_is_no_super_block_is_refused(name, size):
    with pytest.raises(mf.ArgumentError):
        SuperBlock(name, np.zeros(size, np.uint8))
