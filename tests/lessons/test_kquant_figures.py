"""Lesson 5's pictures: what they draw is what the bytes decode to, and their text says it."""

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.formats.table import FORMATS
from minfer_lib.lessons import SuperBlock, ladders_picture, presets_picture
from minfer_lib.lessons.shared.super_block import K_QUANTS

X = np.random.default_rng(5).normal(0.01, 0.02, 256).astype(np.float32)


@pytest.fixture(params=K_QUANTS)
def block(request):
    return SuperBlock(request.param, mf.quantize(request.param, X))


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


def test_every_group_stands_under_its_ladder(block):
    picture = ladders_picture(block, X)
    for g, scale in enumerate(block.scales):
        low, high = sorted((block.levels[g, 0], block.levels[g, -1]))
        min_ = f", min {block.mins[g]}" if block.dmin else ""
        assert f"{g}: scale {scale}{min_}, {low:.3g} to {high:.3g}" in picture.alt
        assert f">{scale}<".replace("-", "−") in picture.svg
    assert ("−dmin" in picture.svg) == bool(block.dmin)
    assert f"{block.levels.shape[1]} levels" in picture.svg


def test_a_block_of_zeros_is_drawn(block):
    zeros = np.zeros(256, np.float32)
    assert "scale" in ladders_picture(SuperBlock(block.format, mf.quantize(block.format, zeros)), zeros).alt


def test_presets_are_named_with_their_errors():
    points = {"Q2_K": (2.7, 2.5, 0.4), "Q4_0": (4.5, 0.4, 0.1), "Q8_0": (8.5, -0.01, 0.02)}
    picture = presets_picture(points)
    for name, (bits, rise, error) in points.items():
        assert f"{name} {bits:.2f} bits {rise:+.2f} ± {error:.2f} %" in picture.alt
        assert f">{name}<" in picture.svg
    assert ">K-quants<" in picture.svg and ">blocks of 32<" in picture.svg
    assert ">K-quants<" not in presets_picture({"Q8_0": (8.5, 0.1, 0.1)}).svg
