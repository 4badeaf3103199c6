"""Tile registers: what the compiled instructions do is what the emulated ones do, and both are right to the integer."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from minfer_lib.simd import amx
from minfer_lib.simd.amx import (
    shapes,
    tile_dot,
    tile_load,
    tile_release,
    tile_shapes,
    tile_store,
    tile_zero,
    tmm0,
    tmm1,
    tmm2,
    tmm7,
)
from minfer_lib.simd.isa import has_amx
from minfer_lib.simd.step import step


@njit
def product(config, a, b, out, times):
    """int8[m, 4 k] times int8[k, 4 n], so many times, + what is in out: int32[m, n], rows of 64 bytes each."""
    tile_shapes(config, 0)
    tile_load(tmm0, out, 0, 64)
    tile_load(tmm1, a, 0, 64)
    tile_load(tmm2, b, 0, 64)
    for _ in range(times):
        tile_dot(tmm0, tmm1, tmm2)
    tile_store(out, 0, 64, tmm0)
    tile_zero(tmm0)
    tile_store(out, 1024, 64, tmm0)
    tile_release()


def ways():
    return [lambda *args: step(product, *args), *([product] if has_amx() else [])]


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (16, 16, 8), (1, 1, 1), (3, 7, 5), (16, 2, 16), (5, 16, 1)])
@pytest.mark.parametrize("case", ["any", "low", "high"])
def test_a_product_of_every_shape(m, n, k, case):
    rng = np.random.default_rng(m + n + k)
    low, high = {"any": (-128, 127), "low": (-128, -128), "high": (127, 127)}[case]
    a, b = (rng.integers(low, high + 1, (16, 64), dtype=np.int8) for _ in range(2))
    before = rng.integers(-(2**20), 2**20, (16, 16), dtype=np.int32)
    left = a[:m, : 4 * k].astype(np.int64)
    right = b[:k, : 4 * n].reshape(k, n, 4).transpose(0, 2, 1).reshape(4 * k, n).astype(np.int64)
    config = shapes((m, 4 * n), (m, 4 * k), (k, 4 * n))
    for run in ways():
        out = np.concatenate([before.view(np.uint8).reshape(-1), np.full(1024, 9, np.uint8)])
        run(config, a.view(np.uint8).reshape(-1), b.view(np.uint8).reshape(-1), out, 3)
        total, cleared = out[:1024].view(np.int32).reshape(16, 16), out[1024:].reshape(16, 64)
        assert np.array_equal(total[:m, :n], before[:m, :n] + 3 * (left @ right))
        assert np.array_equal(total[m:], before[m:]) and np.array_equal(total[:, n:], before[:, n:])
        assert (cleared[:m, : 4 * n] == 0).all() and (cleared[m:] == 9).all() and (cleared[:, 4 * n :] == 9).all()


def test_sums_wrap_as_in_the_machine():
    a = np.full(1024, 127, np.int8).view(np.uint8)
    config = shapes((16, 64), (16, 64), (16, 64))
    for run in ways():
        out = np.zeros(2048, np.uint8)
        out[:1024].view(np.int32)[:] = 2**31 - 1
        run(config, a, a, out, 1)
        assert (out[:1024].view(np.int32) == -(2**31) - 1 + 64 * 127 * 127).all()


def test_a_step_shows_the_tile():
    out, ones = np.zeros(2048, np.uint8), np.ones(1024, np.uint8)
    trace = step(product, shapes((2, 8), (2, 12), (3, 8)), ones, ones, out, 2)
    dots = [s for s in trace.steps if s.name == "tile_dot"]
    assert [s.instruction for s in dots] == ["tdpbssd"] * 2
    assert [s.output.value.tolist() for s in dots] == [[[12, 12], [12, 12]], [[24, 24], [24, 24]]]
    assert dots[0].output.type == "tmm0" and [operand.type for operand in dots[0].inputs] == ["tmm0", "tmm1", "tmm2"]
    names = [s.instruction for s in trace.steps]
    assert names[:4] == ["ldtilecfg", *["tileloadd"] * 3] and names[-1] == "tilerelease"
    assert all(tile.bytes.size == 0 for tile in amx.TILES)


def test_shapes_are_what_the_processor_reads():
    config = shapes((1, 4), (16, 64))
    assert config.size == 64 and config[0] == 1
    assert config[16:20].view(np.uint16).tolist() == [4, 64] and config[48:50].tolist() == [1, 16]
    assert np.count_nonzero(config) == 5


def test_a_tile_that_is_not_one_is_refused():
    with pytest.raises(TypeError, match="there is no tile_zero"):
        step(njit(lambda raw: tile_zero(raw)), np.zeros(4, np.uint8))
    with pytest.raises(TypeError, match="there is no tile_store"):
        step(njit(lambda raw: tile_store(raw, 0, 64, tmm7)), np.zeros(4, np.uint16))


@pytest.mark.parametrize("switch", ["MINFER_NO_AMX", "MINFER_NO_AVX512", "MINFER_NO_AVX2"])
def test_the_switches_drop_it(switch):
    code = "from minfer_lib.matmul.tiles import tiles_for; from minfer_lib.simd.isa import has_amx;"
    code += "print(has_amx(), tiles_for('Q4_0'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {switch: "1"}, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("False") and "amx" not in done.stdout
