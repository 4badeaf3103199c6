"""A super-block's levels: every group stands under its ladder."""

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.lessons import SuperBlock, ladders_picture
from minfer_lib.lessons.shared.super_block import K_QUANTS

X = np.random.default_rng(5).normal(0.01, 0.02, 256).astype(np.float32)


@pytest.fixture(params=K_QUANTS)
def block(request):
    return SuperBlock(request.param, mf.quantize(request.param, X))


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
