"""Dot products: the documented sum to the bit, ggml's number to rounding, and no wrong number for a wrong row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from random_blocks import random_activation_row, random_row, weight_codes

import minfer_lib as mf
from minfer_lib.dot.kernel_key import KernelKey, dot_row, kernel_for
from minfer_lib.dot.registry import DOTS, KERNELS

ROWS = ("normal", "outliers", "positive", "zeros", "ties", "spike", "tiny", "constant")
QUANTIZED = tuple(name for name in KERNELS if mf.FORMATS[name].activation == "Q8_0")
FLOATS = ("F32", "F16", "BF16")
KS = (32, 96, 160)

f32 = np.float32


def parts(name, raw):
    """(f16 fields as float32 [n_blocks, 1 or 2], int codes [n_blocks, 32])"""
    row = mf.FORMATS[name]
    blocks = raw.reshape(-1, row.block_bytes)
    return blocks[:, : 4 if row.has_min else 2].copy().view("<f2").astype(f32), weight_codes(name, raw)


def documented(name, w, a):
    """The scalar order: block by block, sum += (isum * d_w) * d_a, each step rounded to float32."""
    (w_scales, w_codes), (a_scales, a_codes) = parts(name, w), parts("Q8_0", a)
    total = f32(0)
    for (d_w, *m), codes, (d_a,), a_block in zip(w_scales, w_codes, a_scales, a_codes, strict=True):
        total = f32(total + f32(f32(f32(int(codes @ a_block)) * d_w) * d_a))
        if m:
            total = f32(total + f32(f32(f32(int(a_block.sum())) * m[0]) * d_a))
    return total


def exact(name, w, a):
    """(the sum of products of the decoded rows in float64, the sum of their magnitudes)"""
    terms = mf.dequantize(name, w).astype(np.float64) * mf.dequantize("Q8_0", a).astype(np.float64)
    return terms.sum(), np.abs(terms).sum()


@pytest.mark.parametrize("k", [*KS, 1024])
@pytest.mark.parametrize("name", QUANTIZED)
def test_scalar_is_the_documented_sum_to_the_bit(name, k):
    rng = np.random.default_rng(k)
    for _ in range(20):
        w, a = random_row(name, k, rng), random_activation_row("Q8_0", k, rng)
        assert f32(mf.dot(name, w, a, isa="scalar")) == documented(name, w, a)


@pytest.mark.parametrize("name", QUANTIZED)
def test_scalar_multiplies_the_weights_scale_first(name):
    """Large integer sums need more than float32's 24 bits after one scale: the order of the two products shows."""
    rng, shows = np.random.default_rng(9), 0
    for _ in range(200):
        w, a = random_row(name, 32, rng), random_activation_row("Q8_0", 32, rng)
        (scales, codes), blocks = parts(name, w), a.reshape(-1, 34)
        blocks[:, 2:] = (
            (np.where(codes < 0, -1, 1) * rng.integers(100, 128, codes.shape)).astype(np.int8).view(np.uint8)
        )
        assert f32(mf.dot(name, w, a, isa="scalar")) == documented(name, w, a)
        isum, d_a = f32(int((codes * blocks[:, 2:].view(np.int8)).sum())), parts("Q8_0", a)[0][0, 0]
        shows += f32(isum * scales[0, 0]) * d_a != isum * f32(scales[0, 0] * d_a)
    assert shows > 0


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize(
    ("name", "isa"), [(name, isa) for name, isa in DOTS if mf.FORMATS[name].activation == "Q8_0" and isa in mf.isas()]
)
def test_every_kernel_set_is_the_product_of_the_decoded_rows(name, k, isa):
    """1e0 off is a layout fault, 1e-6 is rounding."""
    rng = np.random.default_rng(k + 1)
    for _ in range(20):
        w, a = random_row(name, k, rng), random_activation_row("Q8_0", k, rng)
        right, size = exact(name, w, a)
        assert abs(mf.dot(name, w, a, isa) - right) <= 2e-6 * size


@pytest.mark.parametrize("row", [*ROWS, "bytes"])
@pytest.mark.parametrize("name", ["Q4_0", "Q8_0"])
def test_golden(golden, name, row):
    w, a = golden[f"{row}/{name.lower()}/bytes"], golden[f"{'normal' if row == 'bytes' else row}/act/q8_0"]
    ours, (_, size) = mf.dot(name, w, a, isa="scalar"), exact(name, w, a)
    for theirs in golden[f"{row}/{name.lower()}/dot_scalar_simd"]:
        assert abs(ours - theirs) <= 2e-6 * size, (
            f"off by {abs(ours - theirs) / (size or 1):.1e} of the terms' magnitude"
        )


@pytest.mark.parametrize("row", [*ROWS, "bytes"])
def test_golden_q4_1_within_the_rounding_of_ggmls_sums(golden, row):
    """ggml pairs Q4_1 with Q8_1, whose sums of codes are f16: the numbers differ by that rounding (2^-11) at most."""
    a_name = "normal" if row == "bytes" else row
    w, a = golden[f"{row}/q4_1/bytes"], golden[f"{a_name}/act/q8_0"]
    ours, (right, size) = mf.dot("Q4_1", w, a, isa="scalar"), exact("Q4_1", w, a)
    assert abs(ours - right) <= 2e-6 * size
    m = w.reshape(-1, 20)[:, 2:4].copy().view("<f2").astype(np.float64)[:, 0]
    sums = mf.dequantize("Q8_0", a).reshape(-1, 32).astype(np.float64).sum(axis=1)
    for theirs in golden[f"{row}/q4_1/dot_scalar_simd"]:
        if np.isnan(theirs):  # where ggml's own number is not the product of the rows
            continue
        slack = (np.abs(m * sums) * 2.0**-10).sum() + np.abs(m).sum() * 2.0**-24 * 32
        assert abs(ours - theirs) <= slack + 2e-6 * size


@pytest.mark.parametrize("code", [0, 1, 7, 8, 15, 127, 128, 255])
@pytest.mark.parametrize("name", QUANTIZED)
def test_extreme_codes_are_exact_integers(name, code):
    """Scales of 1: the whole product is an integer, and must be that integer."""
    row = mf.FORMATS[name]
    for a_code in (-127, 127):
        blocks = np.full((3, row.block_bytes), code, np.uint8)
        for field in row.fields[: 2 if row.has_min else 1]:
            blocks[:, field.offset : field.offset + 2] = np.frombuffer(np.float16(1).tobytes(), np.uint8)
        a = np.full((3, 34), a_code, np.int8).view(np.uint8)
        a[:, :2] = np.frombuffer(np.float16(1).tobytes(), np.uint8)
        w, a = blocks.reshape(-1), a.reshape(-1)
        assert mf.dot(name, w, a) == exact(name, w, a)[0]


@settings(max_examples=60)
@given(data=st.data())
def test_any_bytes_with_any_scales(data):
    """Whatever the bytes, infinite and NaN scales included, the result is the documented one."""
    name = data.draw(st.sampled_from(QUANTIZED))
    n = data.draw(st.integers(1, 3))
    w = np.frombuffer(
        data.draw(st.binary(min_size=n * mf.FORMATS[name].block_bytes, max_size=n * mf.FORMATS[name].block_bytes)),
        np.uint8,
    )
    a = np.frombuffer(data.draw(st.binary(min_size=34 * n, max_size=34 * n)), np.uint8).copy()
    a[a == 128] = 129  # codes are never -128
    with np.errstate(all="ignore"):
        right = documented(name, w, a)
    assert np.array_equal(f32(mf.dot(name, w, a, isa="scalar")), right, equal_nan=True)


@pytest.mark.parametrize("k", [1, 5, 32, 160])
@pytest.mark.parametrize("name", FLOATS)
def test_float_weights_are_summed_left_to_right_in_float32(name, k):
    rng = np.random.default_rng(k)
    w, x = rng.standard_normal((2, k)).astype(f32)
    raw = {"F32": w, "F16": w.astype(np.float16), "BF16": (w.view(np.uint32) >> 16).astype(np.uint16)}[name].view(
        np.uint8
    )
    total = f32(0)
    for weight, value in zip(mf.dequantize(name, raw), x, strict=True):
        total = f32(total + f32(weight * value))
    assert mf.dot(name, raw, x, "scalar") == mf.dot(name, raw, x.view(np.uint8), "scalar") == total


def test_f32_weights_may_come_as_they_are():
    w, x = np.random.default_rng(0).standard_normal((2, 7)).astype(f32)
    assert mf.dot("F32", w, x) == mf.dot("F32", w.view(np.uint8), x)


@njit
def at_offset(dot, w, w_at, a, a_at, n_blocks):
    return dot_row(dot, w, w_at, a, a_at, n_blocks)


@pytest.mark.parametrize(("name", "isa"), DOTS)
def test_rows_that_begin_anywhere_in_a_buffer(name, isa):
    if isa not in mf.isas():
        pytest.skip(f"this CPU has no {isa}")
    rng, row = np.random.default_rng(2), mf.FORMATS[name]
    k = 3 * max(32, row.block_values)
    w, a = random_row(name, k, rng), random_activation_row(row.activation, k, rng)
    right = mf.dot(name, w, a, isa)
    for w_at, a_at in ((1, 0), (0, 1), (3, 5), (64, 33)):
        w_buffer = np.concatenate([np.full(w_at, 255, np.uint8), w, np.full(9, 255, np.uint8)])
        a_buffer = np.concatenate([np.full(a_at, 255, np.uint8), a, np.full(9, 255, np.uint8)])
        assert at_offset(KernelKey(name, isa), w_buffer, w_at, a_buffer, a_at, k // row.block_values) == right


def test_a_strided_or_read_only_row():
    rng = np.random.default_rng(4)
    w, a = random_row("Q4_0", 96, rng), random_activation_row("Q8_0", 96, rng)
    right = mf.dot("Q4_0", w, a)
    spread = np.zeros((w.size, 2), np.uint8)
    spread[:, 1] = w
    frozen = a.copy()
    frozen.flags.writeable = False
    assert mf.dot("Q4_0", spread[:, 1], frozen) == right
    assert w.flags.writeable and a.flags.writeable, "the caller's arrays stay as they were"


# What is refused


@pytest.mark.parametrize("activation", ["Q8_K", "Q8_1", "Q8_0_PAD40", "Q8_K_GGML", "F32"])
@pytest.mark.parametrize("name", QUANTIZED)
def test_activations_of_another_format(name, activation):
    w, a = (
        np.zeros(mf.FORMATS[name].row_bytes(256), np.uint8),
        np.zeros(mf.FORMATS[activation].row_bytes(256), np.uint8),
    )
    with pytest.raises(mf.PairingError, match=f"{name} weights take Q8_0"):
        mf.dot(name, w, a)
    if activation == "F32":
        with pytest.raises(mf.PairingError, match=f"{name} weights take Q8_0 activations, not float32"):
            mf.dot(name, w, a.view(f32))


@pytest.mark.parametrize("name", FLOATS)
def test_float_weights_take_no_quantized_activations(name):
    with pytest.raises(mf.PairingError, match=f"{name} weights take float32"):
        mf.dot(name, np.zeros(mf.FORMATS[name].row_bytes(256), np.uint8), np.zeros(272, np.uint8))


def test_float32_is_never_read_as_blocks():
    """17 float32s have the 68 bytes of two Q8_0 blocks, and 9 those of two Q4_0 blocks."""
    blocks = np.zeros(36, np.uint8)
    for n in (9, 17):  # a length that fits by chance, and one that does not
        with pytest.raises(mf.PairingError, match="not float32"):
            mf.dot("Q4_0", blocks, np.ones(n, f32))
    with pytest.raises(mf.ArgumentError):
        mf.dot("Q4_0", np.ones(9, f32), np.zeros(68, np.uint8))
    with pytest.raises(mf.ArgumentError):
        mf.dot("F16", np.ones(16, f32), np.ones(32, f32))


@pytest.mark.parametrize(
    ("w", "a"),
    [
        (np.zeros(18, np.int8), np.zeros(34, np.uint8)),
        (np.zeros(18, np.uint8), np.zeros(34, np.int8)),
        (np.zeros(18, np.uint8), np.zeros(34, np.float64)),
        (np.zeros((1, 18), np.uint8), np.zeros(34, np.uint8)),
        (np.zeros(18, np.uint8), np.zeros((1, 34), np.uint8)),
        (np.zeros(17, np.uint8), np.zeros(34, np.uint8)),
        (np.zeros(18, np.uint8), np.zeros(33, np.uint8)),
        (np.zeros(36, np.uint8), np.zeros(34, np.uint8)),
        (np.zeros(18, np.uint8), np.zeros(68, np.uint8)),
        (np.zeros(0, np.uint8), np.zeros(0, np.uint8)),
        ([0] * 18, [0] * 34),
        (b"x" * 18, b"y" * 34),
        (None, None),
    ],
)
def test_rows_of_a_wrong_length_dtype_or_shape(w, a):
    with pytest.raises(mf.ArgumentError):
        mf.dot("Q4_0", w, a)


def test_unknown_names():
    w, a = np.zeros(18, np.uint8), np.zeros(34, np.uint8)
    for isa in ("avx1024", "", "SCALAR"):
        with pytest.raises(mf.ArgumentError, match="this CPU runs the kernel sets"):
            mf.dot("Q4_0", w, a, isa=isa)
    for name in ("Q4_9", "Q8_1", "Q8_K"):
        with pytest.raises(mf.ArgumentError, match="is not a weight format"):
            mf.dot(name, w, a)
    built = {name for name, _ in DOTS}
    for name, row in mf.FORMATS.items():
        if row.activation and name not in built:
            with pytest.raises(mf.UnsupportedError, match=name):
                kernel_for(name)
