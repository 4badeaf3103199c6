"""Blocks of 32: ggml's bytes, and what they promise about the values."""

import hashlib

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import minfer_lib as mf
from minfer_lib.quantize.blocks32 import QUANTIZERS

ROWS = ("normal", "outliers", "positive", "zeros", "ties", "spike", "tiny", "large", "constant")
WEIGHTS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL")
HASHED = ("bell", "any_bits", "sparse", "denormal", "near_1e-15", "large", "halves", "signs")
# The largest error, in steps d: half of one, but Q4_0 and Q5_0 have no code for +max where max is negative and its
# opposite is there too; IQ4_NL's levels, up to 24 apart, reach -127 but only 113. The f16 rounding of d moves every
# value by up to max / 2048 more.
STEPS = {"Q4_0": 1, "Q4_1": 0.5, "Q5_0": 1, "Q5_1": 0.5, "Q8_0": 0.5, "Q8_1": 0.5, "IQ4_NL": 24}
RANGE = {"Q4_0": 8, "Q4_1": 15, "Q5_0": 16, "Q5_1": 31, "Q8_0": 127, "Q8_1": 127, "IQ4_NL": 127}  # steps to max
FLOATS = st.floats(-60000, 60000, width=32).filter(lambda x: x == 0 or abs(x) > 1e-2)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", WEIGHTS)
def test_bytes_are_ggmls(golden, name, row):
    assert np.array_equal(mf.quantize(name, golden[f"{row}/x"]), golden[f"{row}/{name.lower()}/bytes"])


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", ["Q8_0", "Q8_1"])
def test_reference_activations_are_ggmls(golden, name, row):
    assert np.array_equal(mf.quantize(name, golden[f"{row}/a"]), golden[f"{row}/act/{name.lower()}"])


@pytest.mark.parametrize("row", HASHED)
@pytest.mark.parametrize("name", QUANTIZERS)
def test_long_and_wild_rows_are_ggmls(made, row_hashes, name, row):
    assert hashlib.sha256(mf.quantize(name, made["rows"]()[row])).hexdigest() == row_hashes[row][name]


@pytest.mark.parametrize("name", [name for name in WEIGHTS if name != "IQ4_NL"])  # which it only decodes
def test_bytes_are_those_of_the_gguf_package(name):
    """A second, independent oracle: NumPy code by other hands."""
    x = np.random.default_rng(11).standard_normal(32 * 5000).astype(np.float32)
    assert np.array_equal(mf.quantize(name, x), gguf.quants.quantize(x, gguf.GGMLQuantizationType[name]).reshape(-1))


@pytest.mark.parametrize("name", QUANTIZERS)
@given(x=arrays(np.float32, 64, elements=FLOATS))
def test_error_bound(name, x):
    values = mf.dequantize(name, mf.quantize(name, x)).astype(np.float64).reshape(-1, 32)
    x = x.reshape(-1, 32).astype(np.float64)
    largest = np.abs(x).max(axis=1, keepdims=True)
    span = x.max(axis=1, keepdims=True) - x.min(axis=1, keepdims=True) if name.endswith("1") else largest
    if name == "Q8_1":
        span = largest
    bound = STEPS[name] * span / RANGE[name] + (span + largest) * 2.0**-11 + 1e-6
    if np.isfinite(values).all():
        assert (np.abs(values - x) <= bound * 1.001).all()


@pytest.mark.parametrize("name", QUANTIZERS)
def test_blocks_do_not_touch_each_other(name):
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.standard_normal(32), rng.standard_normal(32) * 1e3, np.zeros(32)]).astype(np.float32)
    parts = [mf.quantize(name, block) for block in x.reshape(-1, 32)]
    assert np.array_equal(mf.quantize(name, x), np.concatenate(parts))


@pytest.mark.parametrize("name", QUANTIZERS)
@pytest.mark.parametrize("value", [0.0, -0.0, 1e-40, -1e-40, 1e-45, 1e-30])
def test_almost_nothing_stays_finite(name, value):
    values = mf.dequantize(name, mf.quantize(name, np.full(64, value, np.float32)))
    assert np.isfinite(values).all() and np.abs(values).max() <= 2 * abs(value)


@pytest.mark.parametrize("name", QUANTIZERS)
def test_one_hot(name):
    rounding = 2e-3 + (1 / 113 if name == "IQ4_NL" else 0)  # to f16, of min and scale; IQ4_NL has no level of zero
    for at in range(32):
        x = np.zeros(32, np.float32)
        x[at] = -3.5
        values = mf.dequantize(name, mf.quantize(name, x))
        assert values[at] == pytest.approx(-3.5, rel=2e-3)
        assert np.abs(np.delete(values, at)).max() <= 3.5 * rounding


def test_ties_in_the_largest_magnitude_go_to_the_first():
    x = np.zeros(32, np.float32)
    x[3], x[4] = 8, -8
    values = mf.dequantize("Q4_0", mf.quantize("Q4_0", x))
    assert values[[3, 4]].tolist() == [8, -7], "d = 8 / -8, so -8 would need code 16"
    values = mf.dequantize("Q4_0", mf.quantize("Q4_0", -x))
    assert values[[3, 4]].tolist() == [-8, 7]


def test_halves_round_away_from_zero_in_q8_0():
    x = np.zeros(32, np.float32)
    x[:6] = 127, 0.5, 1.5, 2.5, -0.5, 0.49999997
    assert mf.quantize("Q8_0", x)[2:].view(np.int8)[:6].tolist() == [127, 1, 2, 3, -1, 0]


def test_q8_1_carries_the_sum_of_its_codes():
    x = np.random.default_rng(1).standard_normal(320).astype(np.float32)
    blocks = mf.quantize("Q8_1", x).view(mf.FORMATS["Q8_1"].dtype)
    assert np.array_equal(blocks["qs"], mf.quantize("Q8_0", x).view(mf.FORMATS["Q8_0"].dtype)["qs"])
    d = np.abs(x.reshape(-1, 32)).max(axis=1) / np.float32(127)
    assert np.array_equal(blocks["s"], (blocks["qs"].sum(axis=1).astype(np.float32) * d).astype(np.float16))


def test_a_scale_beyond_f16_becomes_infinite():
    big = np.full(32, 3e5, np.float32)
    assert np.isfinite(mf.quantize("Q4_0", big)[:2].view("<f2")).all(), "3e5 / 8 fits"
    assert np.isinf(mf.quantize("Q4_0", big * 2)[:2].view("<f2")).all()
    assert np.isinf(mf.quantize("Q4_1", big)[2:4].view("<f2")).all(), "the minimum does not"
    assert np.isinf(mf.quantize("Q8_1", big)[2:4].view("<f2")).all(), "nor the sum"


@pytest.mark.parametrize("name", QUANTIZERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused(name, bad):
    x = np.ones(96, np.float32)
    x[70] = bad
    with pytest.raises(mf.ArgumentError, match="NaN or infinity"):
        mf.quantize(name, x)


@pytest.mark.parametrize("name", QUANTIZERS)
@pytest.mark.parametrize(
    ("x", "says"),
    [
        (np.ones(31), "whole blocks of 32"),
        (np.ones(33), "whole blocks of 32"),
        (np.ones((1, 32)), "1 dimension"),
        (np.ones((2, 16)), "1 dimension"),
        (np.float32(1), "1 dimension"),
        ("text", "real numbers"),
        (np.ones(32, np.complex64), "real numbers"),
        (np.full(32, 1e300), "NaN or infinity"),  # beyond float32
    ],
)
def test_other_input_is_refused(name, x, says):
    with pytest.raises(mf.ArgumentError, match=says):
        mf.quantize(name, x)


@pytest.mark.parametrize("name", ["F32", "F16", "Q8_K", "Q8_0_PAD40", "Q4_X"])
def test_other_names_are_refused(name):
    with pytest.raises(mf.ArgumentError, match=f"no weight quantizer for '{name}'"):
        mf.quantize(name, np.ones(256, np.float32))


@pytest.mark.parametrize("name", QUANTIZERS)
def test_empty_wider_and_strided_input(name):
    assert mf.quantize(name, np.zeros(0, np.float32)).shape == (0,)
    x = np.random.default_rng(0).standard_normal(128)
    assert np.array_equal(mf.quantize(name, x[::2]), mf.quantize(name, x[::2].astype(np.float32)))
