"""Every kernel of every set: compiled = stepped to the bit, and the integers of a block are the same in all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_blocks import random_activation_row, random_row, weight_codes

import minfer_lib as mf
from minfer_lib.dot.format_kernels import ROWS_AT_ONCE
from minfer_lib.dot.kernel_key import kernel_for
from minfer_lib.dot.registry import DOTS, KERNELS
from minfer_lib.formats.table import WEIGHT_FORMATS
from minfer_lib.simd.instruction import INSTRUCTIONS
from minfer_lib.simd.ops import fmadd
from minfer_lib.simd.step import step

BLOCKS = tuple(name for name in KERNELS if mf.FORMATS[name].activation == "Q8_0")
FLOATS = tuple(name for name in KERNELS if mf.FORMATS[name].activation is None)
PAIRS = [key for key in DOTS if key[0] in BLOCKS]
HERE = mf.isas()
GOLDEN_ROWS = ("normal", "outliers", "positive", "zeros", "ties", "spike", "tiny", "large", "constant")

f32 = np.float32


def stepped(name, isa, w, a):
    """(the result, its trace); of a four-row kernel, the first row's, with other rows beside it."""
    n_blocks = w.size // mf.FORMATS[name].block_bytes
    if ROWS_AT_ONCE[isa] == 1:
        trace = step(DOTS[name, isa], w, 0, a, 0, n_blocks)
        return trace.result, trace
    rows = np.concatenate([w, w[::-1], np.roll(w, 1), w])
    with np.errstate(all="ignore"):
        trace = step(DOTS[name, isa], rows, 0, w.size, a, 0, n_blocks)
    assert np.array_equal(trace.result[0], trace.result[3], equal_nan=True)
    return trace.result[0], trace


def compiled(name, isa, w, a):
    return f32(mf.dot(name, w, a, isa=isa))


def integers(name, isa, trace):
    """The integer sum of each block, [n_blocks]: the lanes that are turned into floats and scaled by d."""
    of_both = [s.inputs[0].value for s in trace.steps if s.name == "to_f32"]
    if mf.FORMATS[name].has_min:
        of_both = of_both[::2]  # every other one is a sum of activations
    if ROWS_AT_ONCE[isa] == 4:  # a lane is a row; of sixteen, a row of one of four blocks
        return [int(lane) for v in of_both for lane in v[::4]]
    return [int(v.sum()) for v in of_both]


def right_integers(name, w, a):
    """The same from the decoded codes, without the library's kernels."""
    codes = a.reshape(-1, 34)[:, 2:].view(np.int8).astype(np.int64)
    return (weight_codes(name, w) * codes).sum(axis=1).tolist()


def check(name, isa, w, a):
    result, trace = stepped(name, isa, w, a)
    if isa != "scalar":
        assert integers(name, isa, trace) == right_integers(name, w, a)
    if isa in HERE:
        assert np.array_equal(compiled(name, isa, w, a), f32(result), equal_nan=True)
    return result


@pytest.mark.parametrize("row", [*GOLDEN_ROWS, "bytes"])
@pytest.mark.parametrize(("name", "isa"), PAIRS)
def test_golden_rows(golden, name, isa, row):
    """ggml's rows: compiled = stepped, integers right, and the float sum within rounding of the exact one."""
    w = golden[f"{row}/{name.lower()}/bytes"]
    a = golden[f"{'normal' if row == 'bytes' else row}/act_simd/q8_0"]
    result = check(name, isa, w, a)
    terms = mf.dequantize(name, w).astype(np.float64) * mf.dequantize("Q8_0", a).astype(np.float64)
    if mf.FORMATS[name].has_min:  # the two sums of a block are added one by one, so each counts
        m = w.reshape(-1, mf.FORMATS[name].block_bytes)[:, 2:4].copy().view(np.float16).astype(np.float64)
        slack = (np.abs(m) * np.abs(mf.dequantize("Q8_0", a).reshape(-1, 32)).sum(axis=1, keepdims=True)).sum()
    else:
        slack = 0
    assert abs(result - terms.sum()) <= 2e-6 * (np.abs(terms).sum() + slack)


@pytest.mark.parametrize("row", [*GOLDEN_ROWS, "bytes"])
@pytest.mark.parametrize("name", [name for name in BLOCKS if not mf.FORMATS[name].has_min])  # ggml's have Q8_1
def test_golden_numbers(golden, name, row):
    """ggml's own products of the same rows."""
    w = golden[f"{row}/{name.lower()}/bytes"]
    a = golden[f"{'normal' if row == 'bytes' else row}/act/q8_0"]
    size = np.abs(mf.dequantize(name, w).astype(np.float64) * mf.dequantize("Q8_0", a)).sum()
    theirs = golden[f"{row}/{name.lower()}/dot_scalar_simd"]
    assert not np.isnan(theirs).all()
    for isa in HERE:
        for number in theirs[~np.isnan(theirs)]:
            assert abs(mf.dot(name, w, a, isa=isa) - number) <= 2e-6 * size


@pytest.mark.parametrize("k", [32, 96, 160, 2048])
@pytest.mark.parametrize(("name", "isa"), PAIRS)
def test_any_weight_bytes(name, isa, k):
    rng = np.random.default_rng(k)
    for _ in range(5):
        check(name, isa, random_row(name, k, rng), random_activation_row("Q8_0", k, rng))


@pytest.mark.parametrize("code", [0, 1, 7, 8, 15, 127, 128, 129, 255])
@pytest.mark.parametrize(("name", "isa"), PAIRS)
def test_extreme_codes(name, isa, code):
    """Every code at its end, -128 among the weights too, under activations of -127 and 127."""
    row = mf.FORMATS[name]
    for most in (-127, 127):
        w = np.full((2, row.block_bytes), code, np.uint8)
        for field in row.fields:
            if field.name in ("d", "m"):
                w[:, field.offset : field.offset + 2] = np.frombuffer(np.float16(1).tobytes(), np.uint8)
        a = np.full((2, 34), most, np.int8).view(np.uint8)
        a[:, :2] = np.frombuffer(np.float16(1).tobytes(), np.uint8)
        w, a = w.reshape(-1), a.reshape(-1)
        result = check(name, isa, w, a)
        assert result == (mf.dequantize(name, w).astype(np.float64) * mf.dequantize("Q8_0", a)).sum()


@settings(max_examples=40)
@given(data=st.data())
def test_made_up_rows(data):
    """Rows that hypothesis makes up, with scales that are NaN and infinite among them."""
    name, isa = data.draw(st.sampled_from(PAIRS))
    n = data.draw(st.integers(1, 3))
    w = np.frombuffer(data.draw(st.binary(min_size=n * mf.FORMATS[name].block_bytes,
                                          max_size=n * mf.FORMATS[name].block_bytes)), np.uint8)  # fmt: skip
    a = np.frombuffer(data.draw(st.binary(min_size=34 * n, max_size=34 * n)), np.uint8).copy()
    a[a == 128] = 129  # codes are never -128
    check(name, isa, w, a)


@pytest.mark.parametrize("scale", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("name", "isa"), PAIRS)
def test_a_scale_that_is_no_number_shows(name, isa, scale):
    rng = np.random.default_rng(3)
    for field in mf.FORMATS[name].fields:
        if field.name in ("d", "m"):
            w, a = random_row(name, 96, rng), random_activation_row("Q8_0", 96, rng)
            at = mf.FORMATS[name].block_bytes + field.offset
            w[at : at + 2] = np.frombuffer(np.float16(scale).tobytes(), np.uint8)
            assert not np.isfinite(check(name, isa, w, a))


@pytest.mark.skipif("avx512vnni" not in HERE, reason="this CPU has no AVX-512 VNNI")
@pytest.mark.parametrize("name", BLOCKS)
def test_avx512_adds_a_block_at_a_time(name):
    """The order that its docstring states, which is that of the tiles: the block's integer is folded by one fmadd."""
    rng = np.random.default_rng(4)
    for k in (32, 96, 576, 1536):
        w, a = random_row(name, k, rng), random_activation_row("Q8_0", k, rng)
        total = np.zeros(1, f32)
        scales, d_a = decoded_scales(name, w), decoded_scales("Q8_0", a)["d"]
        sums = a.reshape(-1, 34)[:, 2:].view(np.int8).sum(axis=1, dtype=np.int64)
        for b, isum in enumerate(right_integers(name, w, a)):
            total = fused(scales["d"][b] * d_a[b], f32(isum), total)
            if "m" in scales:
                total = fused(scales["m"][b], f32(sums[b]) * d_a[b], total)
        assert compiled(name, "avx512vnni", w, a) == total[0]


def fused(a, b, c):
    return INSTRUCTIONS[fmadd].meaning(np.array([a]), np.array([b]), c)


def decoded_scales(name, blocks):
    """Field name -> float32 a block."""
    row = mf.FORMATS[name]
    blocks = blocks.reshape(-1, row.block_bytes)
    return {
        field.name: blocks[:, field.offset : field.offset + 2].copy().view(np.float16)[:, 0].astype(f32)
        for field in row.fields
        if field.name in ("d", "m")
    }


@pytest.mark.parametrize("name", [*BLOCKS, *FLOATS])
def test_a_row_does_not_depend_on_its_neighbours(name):
    """1 to 9 rows, any number of threads: the same bits as the row alone, odd rows at the end included."""
    rng = np.random.default_rng(5)
    k = 96
    x = rng.standard_normal((3, k)).astype(f32)
    for n_out in range(1, 10):
        w = np.stack([random_row(name, k, rng) for _ in range(n_out)])
        rows = [mf.quantize_activations("Q8_0", token) for token in x] if name in BLOCKS else list(x)
        alone = np.array([[mf.dot(name, row, token) for row in w] for token in rows], f32)
        for threads in (1, 2, 5):
            assert np.array_equal(mf.matmul(name, w, x, threads), alone)


@pytest.mark.parametrize("k", [1, 5, 31, 32, 33, 64, 160])
@pytest.mark.parametrize("name", FLOATS)
def test_float_weights(name, k):
    """Compiled = stepped, and the order that the file states."""
    rng = np.random.default_rng(k)
    x, raw = rng.standard_normal(k).astype(f32), rng.integers(0, 64, mf.FORMATS[name].row_bytes(k), dtype=np.uint8)
    a = x.view(np.uint8)
    for isa in ("avx2", "scalar"):
        result = step(DOTS[name, isa], raw, 0, a, 0, k).result
        if isa in HERE:
            assert compiled(name, isa, raw, x) == result
    values, whole = mf.dequantize(name, raw).astype(np.float64), k - k % 32
    lanes = np.zeros(32, f32)
    for i in range(0, whole, 32):  # the products are exact in float64 here: f16, bf16 and small f32 have few bits
        lanes = (values[i : i + 32] * x[i : i + 32] + lanes).astype(f32)
    x0, x1, x2, x3 = lanes.reshape(4, 8)
    eight = (x0 + x1) + (x2 + x3)
    four = eight[:4] + eight[4:]
    two = four[:2] + four[2:]
    total = two[0] + two[1]
    for i in range(whole, k):
        total += f32(values[i]) * x[i]
    assert step(DOTS[name, "avx2"], raw, 0, a, 0, k).result == pytest.approx(total, rel=1e-6)


def test_every_weight_format_has_its_row():
    """Kernels that are in no row would run nowhere, and no test here would step them."""
    assert tuple(KERNELS) == WEIGHT_FORMATS
    for name, row in KERNELS.items():
        assert row.format == name and {"scalar", "avx2"} <= row.dots.keys()
        if mf.FORMATS[name].activation:
            assert row.dots.keys() == ROWS_AT_ONCE.keys() and row.codes is not None


def test_the_best_kernel_is_chosen():
    for name in BLOCKS:
        assert kernel_for(name).isa == HERE[0]
    with pytest.raises(mf.UnsupportedError, match="there is no avx512vnni kernel for F16"):
        if "avx512vnni" not in HERE:
            pytest.skip("this CPU has no AVX-512 VNNI")
        kernel_for("F16", "avx512vnni")
