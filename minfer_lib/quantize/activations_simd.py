"""The run-time quantizers in registers: the bytes of those in `activations`, 32 values at a time.

Seed 1 §3.2, quantize_avx2. Without its sign bit a float is its magnitude, and of two magnitudes the larger has the
larger bits, read as an integer; NaN's are larger than those of infinity.
"""

from __future__ import annotations

import numpy as np

from minfer_lib.native.jit import inlined, kernel
from minfer_lib.simd.ops import (
    add_pairs,
    andnot,
    as_f32,
    as_i16,
    as_i32,
    f32_to_f16,
    first,
    high_half,
    in_order,
    load,
    low_half,
    madd,
    maddubs,
    maximum,
    odd_lanes,
    pack_i8,
    pack_i16,
    round_to_i32,
    splat,
    store,
)
from minfer_lib.simd.registers import f32x8, i16x16, i32x8, u8x16, u8x32


@kernel
def quantize_q8_0_avx2(x, x_at, out, at, n_blocks):
    """x: uint8[:] with 32 * n_blocks float32 from byte x_at on -> n_blocks Q8_0 blocks from byte `at` of out on.

    False if a value is NaN or infinite.
    """
    finite = True
    for b in range(n_blocks):
        xb = x_at + 128 * b
        ob = at + 34 * b
        amax = _largest(_magnitudes(x, xb))
        finite &= amax < np.inf  # false for NaN too
        _store_scale(out, ob, amax)
        store(out, ob + 2, _codes(x, xb, _inverse(amax)))
    return finite


@kernel
def quantize_q8_k_avx2(x, x_at, out, at, n_blocks):
    """x: uint8[:] with 256 * n_blocks float32 from byte x_at on -> n_blocks Q8_K blocks from byte `at` of out on.

    False if a value is NaN or infinite.
    """
    finite = True
    for b in range(n_blocks):
        xb = x_at + 1024 * b
        ob = at + 306 * b
        magnitudes = _magnitudes(x, xb)
        for i in range(128, 1024, 128):
            magnitudes = maximum(magnitudes, _magnitudes(x, xb + i))
        amax = _largest(magnitudes)
        finite &= amax < np.inf  # false for NaN too
        _store_scale(out, ob, amax)
        inverse = _inverse(amax)
        store(out, ob + 258, splat(u8x16, 0))
        for h in range(2):
            xh, oh = xb + 512 * h, ob + 2 + 128 * h
            q0, q1 = _codes(x, xh, inverse), _codes(x, xh + 128, inverse)
            q2, q3 = _codes(x, xh + 256, inverse), _codes(x, xh + 384, inverse)
            store(out, oh, q0)
            store(out, oh + 32, q1)
            store(out, oh + 64, q2)
            store(out, oh + 96, q3)
            store(out, ob + 274 + 16 * h, _sums_of_16(q0, q1, q2, q3))
    return finite


@inlined
def _magnitudes(x, xb):
    """i32x8: the bits of the largest magnitudes of each four of the 32 float32 from byte xb on."""
    signs = splat(i32x8, -(2**31))
    v0, v1 = load(f32x8, x, xb), load(f32x8, x, xb + 32)
    v2, v3 = load(f32x8, x, xb + 64), load(f32x8, x, xb + 96)
    m01 = maximum(andnot(signs, as_i32(v0)), andnot(signs, as_i32(v1)))
    m23 = maximum(andnot(signs, as_i32(v2)), andnot(signs, as_i32(v3)))
    return maximum(m01, m23)


@kernel
def _largest(v):
    """i32x8 -> the float32 whose bits are the largest lane."""
    four = maximum(low_half(v), high_half(v))
    two = maximum(low_half(four), high_half(four))
    return first(as_f32(maximum(two, odd_lanes(two))))


@inlined
def _inverse(amax):
    """127 / amax, by which the values are multiplied."""
    inverse = np.float32(127) / amax
    if not inverse < np.inf:  # all zeros, or so small that every code is zero anyway: d is zero too
        inverse = np.float32(0)
    return inverse


@inlined
def _store_scale(out, ob, amax):
    d = f32_to_f16(amax / np.float32(127))
    out[ob] = d & 255
    out[ob + 1] = d >> 8


@inlined
def _codes(x, xb, inverse):
    """i8x32: the codes of the 32 float32 from byte xb on."""
    v0, v1 = load(f32x8, x, xb), load(f32x8, x, xb + 32)
    v2, v3 = load(f32x8, x, xb + 64), load(f32x8, x, xb + 96)
    low = pack_i16(round_to_i32(v0 * inverse), round_to_i32(v1 * inverse))
    high = pack_i16(round_to_i32(v2 * inverse), round_to_i32(v3 * inverse))
    return in_order(pack_i8(low, high))


@inlined
def _sums_of_16(q0, q1, q2, q3):
    """Four i8x32 -> i16x8: the sum of each 16 codes, in order."""
    eights = add_pairs(add_pairs(_sums_of_4(q0), _sums_of_4(q1)), add_pairs(_sums_of_4(q2), _sums_of_4(q3)))
    return as_i16(low_half(eights) & 0xFFFF | high_half(eights) << 16)  # the sums 0, 2, 4, 6, and 1, 3, 5, 7


@inlined
def _sums_of_4(q):
    """i8x32 -> i32x8"""
    return madd(maddubs(splat(u8x32, 1), q), splat(i16x16, 1))


@kernel
def quantize_rows_q8_0_avx2(x, out):
    """x: f32[n_tokens, n] -> out: uint8[n_tokens, n / 32 * 34]. False if a value is NaN or infinite."""
    n_tokens, n = x.shape
    raw, flat = x.reshape(x.size).view(np.uint8), out.reshape(out.size)
    finite = True
    for t in range(n_tokens):
        finite &= quantize_q8_0_avx2(raw, t * n * 4, flat, t * out.shape[1], n // 32)
    return finite


@kernel
def quantize_rows_q8_k_avx2(x, out):
    """x: f32[n_tokens, n] -> out: uint8[n_tokens, n / 256 * 306]. False if a value is NaN or infinite."""
    n_tokens, n = x.shape
    raw, flat = x.reshape(x.size).view(np.uint8), out.reshape(out.size)
    finite = True
    for t in range(n_tokens):
        finite &= quantize_q8_k_avx2(raw, t * n * 4, flat, t * out.shape[1], n // 256)
    return finite
