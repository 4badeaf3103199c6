"""K-quants: ggml's bytes to the last one, and the searches behind them, seen try by try."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import minfer_lib as mf
from minfer_lib.quantize.kquants import (
    Q2_K_SEARCH,
    Q4_K_SEARCH,
    Q5_K_SEARCH,
    QUANTIZERS,
    fit_scale,
    sub_block_weights,
)
from minfer_lib.quantize.search import TRY, nearest, refine_scale, search_scale, search_scale_min

ROWS = ("normal", "outliers", "positive", "zeros", "ties", "spike", "tiny", "large", "constant")
WEIGHTS = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")
HASHED = ("bell", "any_bits", "sparse", "denormal", "near_1e-15", "large", "halves", "signs")
SEARCHES = {"Q2_K": (16, 3, *Q2_K_SEARCH), "Q4_K": (32, 15, *Q4_K_SEARCH), "Q5_K": (32, 31, *Q5_K_SEARCH)}
FLOATS = st.floats(-100, 100, width=32)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", WEIGHTS)
def test_bytes_are_ggmls(golden, name, row):
    assert np.array_equal(mf.quantize(name, golden[f"{row}/x"]), golden[f"{row}/q{name[1:]}/bytes"])


@pytest.mark.parametrize("row", ROWS)
def test_reference_activations_are_ggmls(golden, row):
    assert np.array_equal(mf.quantize("Q8_K_GGML", golden[f"{row}/a"]), golden[f"{row}/act/q8_K"])


@pytest.mark.parametrize("row", HASHED)
@pytest.mark.parametrize("name", QUANTIZERS)
def test_long_and_wild_rows_are_ggmls(made, row_hashes, name, row):
    assert hashlib.sha256(mf.quantize(name, made["rows"]()[row])).hexdigest() == row_hashes[row][name]


@pytest.mark.parametrize(
    ("name", "limit"), [("Q2_K", 0.0075), ("Q3_K", 0.004), ("Q4_K", 0.002), ("Q5_K", 0.002), ("Q6_K", 0.002)]
)
def test_error_is_below_the_limit_of_ggmls_own_test(name, limit):
    """Data and limits of test-quantize-fns.cpp; its "rmse" is the root of the sum of squares, divided by n."""
    x = (0.1 + 2 * np.cos(np.arange(4096))).astype(np.float32)
    error = mf.dequantize(name, mf.quantize(name, x)).astype(np.float64) - x
    assert np.sqrt((error**2).sum()) / x.size < limit


@pytest.mark.parametrize(
    ("name", "bound", "most"),
    [
        ("Q2_K", 0.5, 15 * 3),
        ("Q3_K", 0.35, 32 * 4),
        ("Q4_K", 0.15, 63 * 15),
        ("Q5_K", 0.1, 63 * 31),
        ("Q6_K", 0.07, 128 * 32),
    ],
)
@settings(max_examples=50)
@given(x=arrays(np.float32, 256, elements=FLOATS))
def test_error_bound(name, bound, most, x):
    """No value is further off than this share of the super-block's range: twice what random blocks show.

    The search minimizes a weighted sum, so there is no bound to derive; a fault of layout is off by the whole range.
    Tiny values are lost where d is below what f16 holds: half its smallest step, 2**-25, times the largest scale
    and code.
    """
    values = mf.dequantize(name, mf.quantize(name, x))
    assert np.abs(values - x).max() <= bound * (x.max() - x.min() + np.abs(x).max()) / 2 + 2.0**-25 * most + 1e-6


def test_more_bits_are_nearer():
    x = np.random.default_rng(2).standard_normal(256 * 64).astype(np.float32)
    errors = [np.abs(mf.dequantize(name, mf.quantize(name, x)) - x).mean() for name in WEIGHTS]
    assert errors == sorted(errors, reverse=True) and errors[0] > 10 * errors[-1]


@pytest.mark.parametrize("name", QUANTIZERS)
def test_super_blocks_do_not_touch_each_other(name):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((5, 256)).astype(np.float32) * np.float32([[1], [1e3], [0], [1e-3], [7]])
    parts = [mf.quantize(name, block) for block in x]
    assert np.array_equal(mf.quantize(name, x.reshape(-1)), np.concatenate(parts))
    assert len({part.tobytes() for part in parts}) == 5


@pytest.mark.parametrize("name", QUANTIZERS)
@pytest.mark.parametrize("value", [0.0, -0.0, 1e-40, -1e-40, 1e-45, 1e-30])
def test_almost_nothing_stays_finite(name, value):
    values = mf.dequantize(name, mf.quantize(name, np.full(512, value, np.float32)))
    assert np.isfinite(values).all() and np.abs(values).max() <= 2 * abs(value)


@pytest.mark.parametrize("name", QUANTIZERS)
@pytest.mark.parametrize("value", [-3.5, 3.5])
def test_one_hot(name, value):
    for at in range(0, 256, 5):
        x = np.zeros(256, np.float32)
        x[at] = value
        values = mf.dequantize(name, mf.quantize(name, x))
        assert values[at] == pytest.approx(value, rel=0.01)
        assert np.abs(np.delete(values, at)).max() <= 3.5 * 0.01, "zero, or the f16 rounding of min and scale"


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_scale_beyond_f16_becomes_infinite(name):
    x = np.random.default_rng(0).standard_normal(256).astype(np.float32)
    blocks = mf.quantize(name, x * np.float32(6e4)).view(mf.FORMATS[name].dtype)
    assert np.isfinite(blocks["d"]).all(), "the scales of 6e4-large values fit"
    blocks = mf.quantize(name, x * np.float32(1e9)).view(mf.FORMATS[name].dtype)
    assert np.isinf(blocks["d"]).all()


@pytest.mark.parametrize("name", QUANTIZERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused(name, bad):
    x = np.ones(512, np.float32)
    x[300] = bad
    with pytest.raises(mf.ArgumentError, match="NaN or infinity"):
        mf.quantize(name, x)


@pytest.mark.parametrize("name", QUANTIZERS)
@pytest.mark.parametrize(
    ("shape", "says"),
    [((255,), "blocks of 256"), ((32,), "blocks of 256"), ((1, 256), "1 dimension"), ((), "1 dimension")],
)
def test_other_shapes_are_refused(name, shape, says):
    with pytest.raises(mf.ArgumentError, match=says):
        mf.quantize(name, np.ones(shape, np.float32))


def test_ggmls_q8_k_gives_the_largest_value_minus_127():
    for sign in (1, -1):
        x = np.linspace(-1, 1, 256, dtype=np.float32) * np.float32(sign)
        x[17] = 5 * sign
        block = mf.quantize("Q8_K_GGML", x).view(mf.FORMATS["Q8_K_GGML"].dtype)[0]
        assert block["qs"][17] == -127 and np.sign(block["d"]) == -sign
        assert block["bsums"].tolist() == block["qs"].reshape(16, 16).sum(axis=1).tolist()
    assert not mf.quantize("Q8_K_GGML", np.zeros(256, np.float32)).any(), "the sums of a block of zeros too"


def one_sub_block(name, seed=0):
    """x, the search's arguments, and room for its results."""
    size, most, start, step, tries, absolute = SEARCHES[name]
    x = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
    weights = np.empty(size, np.float32)
    sub_block_weights(x, absolute, weights)
    return x, weights, (most, start, step, tries, absolute), np.empty((2, size), np.float32), np.zeros(tries + 2, TRY)


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("seed", range(5))
def test_the_trace_tells_every_try_and_changes_nothing(name, seed):
    x, weights, how, (codes, trial), trace = one_sub_block(name, seed)
    plain = search_scale_min(x, weights, *how, codes, trial, None)
    best_codes = codes.copy()
    assert search_scale_min(x, weights, *how, codes, trial, trace) == plain
    assert np.array_equal(codes, best_codes)
    kept = trace[trace["kept"]]
    assert kept[0] == trace[0] and (np.diff(kept["error"]) < 0).all(), "each one kept is better than the one before"
    assert plain == (kept[-1]["scale"], -kept[-1]["min"])
    assert kept[-1]["error"] == trace["error"].min()
    again = np.clip(np.rint(kept[-1]["inverse"] * (x - kept[-1]["origin"])), 0, how[0])
    assert np.array_equal(again, codes), "a try's codes follow from its record"


@pytest.mark.parametrize("name", SEARCHES)
def test_the_search_beats_the_extremes(name):
    """For most sub-blocks. (Q2_K counts |errors|, and a least-squares fit does not always lessen those.)"""
    better = 0
    for seed in range(20):
        x, weights, how, (codes, trial), trace = one_sub_block(name, seed)
        search_scale_min(x, weights, *how, codes, trial, trace)
        better += trace["error"].min() < trace["error"][0]
    assert better >= 10


def test_kernels_run_as_plain_python_too():
    """One source, two executions: un-jitted, the same numbers."""
    for name in SEARCHES:
        x, weights, how, room, trace = one_sub_block(name, 3)
        compiled = search_scale_min(x, weights, *how, *room, trace)
        room_, trace_ = np.empty_like(room), np.zeros_like(trace).view(np.recarray)
        assert search_scale_min.py_func(x, weights, *how, *room_, trace_) == compiled
        assert np.array_equal(room, room_) and np.array_equal(trace, trace_)
    for search, most in ((search_scale, 32), (refine_scale, 4)):
        codes = np.empty((2, 16), np.float32)
        assert search(x[:16], most, codes[0]) == search.py_func(x[:16], most, codes[1])
        assert np.array_equal(*codes)


@pytest.mark.parametrize("refine", [True, False])
def test_both_symmetric_searches_reach_the_lowest_code_for_the_largest_weight(refine):
    """The weight of largest magnitude gets a code below zero, whatever its sign: the scale carries the sign."""
    most, top, offset = (4, 32, 32) if refine else (32, 128, 0)
    x = np.random.default_rng(4).standard_normal((3, 16, 16)).astype(np.float32)
    codes, scales, halves = np.empty((3, 16, 16), np.uint8), np.empty((3, 16), np.int8), np.empty(3, np.uint16)
    fit_scale(x, most, top, offset, refine, codes, scales, halves)
    largest = np.abs(x.reshape(48, 16)).argmax(axis=1)
    assert (codes.reshape(48, 16)[np.arange(48), largest] < most).all()


@given(st.floats(-4e6, 4e6, width=32))
def test_nearest_is_half_to_even(value):
    assert nearest(np.float32(value)) == round(value)
