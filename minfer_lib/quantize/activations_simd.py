"""The run-time Q8_0 quantizer in registers: the bytes of `activations.quantize_rows_q8_0`, 32 values at a time."""

from __future__ import annotations

import numpy as np

from minfer_lib.jit import kernel
from minfer_lib.simd.ops import (
    andnot,
    as_f32,
    as_i32,
    f32_to_f16,
    first,
    high_half,
    in_order,
    load,
    low_half,
    maximum,
    odd_lanes,
    pack_i8,
    pack_i16,
    round_to_i32,
    splat,
    store,
)
from minfer_lib.simd.registers import f32x8, i32x8


@kernel
def quantize_q8_0_avx2(x, x_at, out, at, n_blocks):
    """x: uint8[:] with 32 * n_blocks float32 from byte x_at on -> n_blocks Q8_0 blocks from byte `at` of out on.

    False if a value is NaN or infinite. Seed 1 §3.2, quantize_avx2. Without its sign bit a float is its magnitude, and
    of two magnitudes the larger has the larger bits, read as an integer; NaN's are larger than those of infinity.
    """
    signs = splat(i32x8, -(2**31))
    finite = True
    for b in range(n_blocks):
        xb = x_at + 128 * b
        ob = at + 34 * b
        v0, v1 = load(f32x8, x, xb), load(f32x8, x, xb + 32)
        v2, v3 = load(f32x8, x, xb + 64), load(f32x8, x, xb + 96)
        m01 = maximum(andnot(signs, as_i32(v0)), andnot(signs, as_i32(v1)))
        m23 = maximum(andnot(signs, as_i32(v2)), andnot(signs, as_i32(v3)))
        amax = _largest(maximum(m01, m23))
        finite &= amax < np.inf  # false for NaN too
        inverse = np.float32(127) / amax
        if not inverse < np.inf:  # all zeros, or so small that every code is zero anyway: d is zero too
            inverse = np.float32(0)
        low = pack_i16(round_to_i32(v0 * inverse), round_to_i32(v1 * inverse))
        high = pack_i16(round_to_i32(v2 * inverse), round_to_i32(v3 * inverse))
        d = f32_to_f16(amax / np.float32(127))
        out[ob] = d & 255
        out[ob + 1] = d >> 8
        store(out, ob + 2, in_order(pack_i8(low, high)))
    return finite


@kernel
def _largest(v):
    """i32x8 -> the float32 whose bits are the largest lane."""
    four = maximum(low_half(v), high_half(v))
    two = maximum(low_half(four), high_half(four))
    return first(as_f32(maximum(two, odd_lanes(two))))


@kernel
def quantize_rows_q8_0_avx2(x, out):
    """x: f32[n_tokens, n] -> out: uint8[n_tokens, n / 32 * 34]. False if a value is NaN or infinite."""
    n_tokens, n = x.shape
    raw, flat = x.reshape(x.size).view(np.uint8), out.reshape(out.size)
    finite = True
    for t in range(n_tokens):
        finite &= quantize_q8_0_avx2(raw, t * n * 4, flat, t * out.shape[1], n // 32)
    return finite
