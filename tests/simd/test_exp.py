"""e^x in registers: compiled = stepped to the bit, and near the real e^x wherever that is a float32."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit

from minfer_lib.simd.exp import exp8
from minfer_lib.simd.ops import load, store
from minfer_lib.simd.registers import f32x8
from minfer_lib.simd.step import step


@njit
def exponentials(raw, out):
    for at in range(0, raw.size, 32):
        store(out, at, exp8(load(f32x8, raw, at)))


def exp(values):
    values = np.asarray(values, np.float32)
    out = np.empty_like(values)
    exponentials(values.view(np.uint8), out.view(np.uint8))
    return out


def error(x):
    """Relative to the right e^x, the largest over all lanes."""
    right = np.exp(np.asarray(x, np.float32).astype(np.float64))
    return np.abs(exp(x) / right - 1).max()


# Rounding e·r + 1 is half a last bit, 6e-8, and the product with 2^n is exact. What is before it is as small as r.
LIMIT = 2e-7


@given(st.lists(st.floats(-87, 88, width=32), min_size=8, max_size=8))
@example([0, -0.0, 1, -1, 88, -87, 0.34657359, -0.34657359])
def test_near_the_real_one(values):
    assert error(values) < LIMIT


def test_near_the_real_one_everywhere():
    assert error(np.linspace(-87, 88, 1 << 20)) < LIMIT
    assert error(np.linspace(-1, 1, 1 << 18)) < LIMIT


def test_it_is_one_at_zero_and_ends_beyond_the_range():
    assert np.array_equal(exp([0, -0.0] * 4), np.ones(8, np.float32))
    beyond = exp([-87, -88, -1e30, -np.inf, 88, 89, 1e30, np.inf])
    assert len(set(beyond[:4])) == len(set(beyond[4:])) == 1 and 0 < beyond[0] < 1.7e-38 and np.isfinite(beyond[7])
    assert np.isnan(exp([np.nan] * 8)).all()


@pytest.mark.parametrize("scale", [0.1, 1, 10, 60, np.inf])
def test_compiled_is_stepped(scale):
    values = (np.random.default_rng(0).standard_normal(64) * scale).astype(np.float32)
    out = np.empty_like(values)
    with np.errstate(all="ignore"):
        step(exponentials, values.view(np.uint8), out.view(np.uint8))
    assert np.array_equal(exp(values), out)


def test_a_lane_does_not_depend_on_the_others():
    values = np.random.default_rng(1).uniform(-20, 20, 64).astype(np.float32)
    assert np.array_equal(exp(np.repeat(values, 8)).reshape(64, 8), np.repeat(exp(values)[:, None], 8, axis=1))
