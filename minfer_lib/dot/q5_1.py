"""Q5_1 weights x Q8_0 activations.

Q5_1 block, 24 bytes: f16 d, f16 m, uint32 qh, 16 bytes laid out as in Q4_0. Bit i of qh is the fifth bit of code i;
value = d * code + m, so a block adds d_a * (d_w * sum(code * a) + m * sum(a)), as in Q4_1.
"""

import numpy as np

from minfer_lib.dot.parts import AHEAD, four_sums, hsum4, hsum8, two_nibbles, two_pairs
from minfer_lib.jit import inlined
from minfer_lib.simd.ops import (
    as_i8,
    as_u8,
    as_u16,
    byte_mask,
    concat,
    dpbusd,
    even_lanes,
    fmadd,
    load,
    load_f16,
    load_u16,
    load_u32,
    madd,
    maddubs,
    odd_lanes,
    prefetch,
    sdot,
    splat,
    to_f32,
)
from minfer_lib.simd.registers import f32x4, f32x8, f32x16, i8x16, i8x32, i16x16, i32x4, i32x8, i32x16, u8x16, u8x32


@inlined
def dot_q5_1_scalar(w, w_at, a, a_at, n_blocks):
    """w, a: uint8 arrays with n_blocks blocks from byte w_at, a_at on -> float32."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 24 * b
        ab = a_at + 34 * b
        qh = load_u32(w, wb + 4)
        isum = np.int32(0)  # exact: at most 32 * 31 * 128
        asum = np.int32(0)
        for j in range(16):
            code = w[wb + 8 + j]
            low = np.int32(np.int8(a[ab + 2 + j]))
            high = np.int32(np.int8(a[ab + 18 + j]))
            isum = np.int32(isum + np.int32((code & 15) | ((qh >> j) & 1) << 4) * low)
            isum = np.int32(isum + np.int32((code >> 4) | ((qh >> (j + 16)) & 1) << 4) * high)
            asum = np.int32(asum + low + high)
        d_a = load_f16(a, ab)
        total += np.float32(isum) * load_f16(w, wb) * d_a
        total += np.float32(asum) * load_f16(w, wb + 2) * d_a
    return total


@inlined
def dot_q5_1_avx2(w, w_at, a, a_at, n_blocks):
    """As dot_q5_1_scalar, 32 products at a time, in the order of dot_q4_1_avx2."""
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        wb = w_at + 24 * b
        ab = a_at + 34 * b
        prefetch(w, wb + AHEAD)
        d_a = load_f16(a, ab)
        packed = load(u8x16, w, wb + 8)
        nibbles = concat(packed, as_u8(as_u16(packed) >> 4)) & 15
        codes = nibbles | byte_mask(load_u32(w, wb + 4)) & 16
        qa = load(i8x32, a, ab + 2)
        fours = madd(maddubs(codes, qa), splat(i16x16, 1))  # exact: at most 2 * 31 * 127 a pair
        sums = madd(maddubs(splat(u8x32, 1), qa), splat(i16x16, 1))
        acc = fmadd(splat(f32x8, load_f16(w, wb) * d_a), to_f32(fours), acc)
        acc = fmadd(splat(f32x8, load_f16(w, wb + 2)), to_f32(sums) * d_a, acc)
    return hsum8(acc)


@inlined
def dot4_q5_1_avx512vnni(w, w_at, row_bytes, a, a_at, n_blocks):
    """Four rows, row_bytes apart from byte w_at on -> four float32. Each has the bits of dot_q5_1_avx2."""
    ahead = w_at + 3 * row_bytes + AHEAD  # through the rows end to end; the fourth begins three rows on
    x = splat(f32x16, 0)
    y = splat(f32x16, 0)
    for b in range(n_blocks):
        wb = w_at + 24 * b
        ab = a_at + 34 * b
        prefetch(w, ahead + 96 * b)
        prefetch(w, ahead + 96 * b + 64)
        d_a = load_f16(a, ab)
        qa = load(i8x32, a, ab + 2)
        sums = to_f32(dpbusd(splat(i32x8, 0), splat(u8x32, 1), qa)) * d_a
        x = _two_rows(x, w, wb, row_bytes, d_a, qa, sums)
        y = _two_rows(y, w, wb + 2 * row_bytes, row_bytes, d_a, qa, sums)
    return four_sums(x, y)


@inlined
def _two_rows(acc, w, wb, row_bytes, d_a, qa, sums):
    """acc: f32x16 + a block of the row at byte wb in lanes 0 to 7, and of the next row in lanes 8 to 15."""
    scales = two_pairs(w, wb, wb + row_bytes)  # d and m
    fifth = concat(byte_mask(load_u32(w, wb + 4)), byte_mask(load_u32(w, wb + row_bytes + 4))) & 16
    codes = two_nibbles(w, wb + 8, wb + row_bytes + 8) | fifth
    fours = dpbusd(splat(i32x16, 0), codes, concat(qa, qa))
    acc = fmadd(even_lanes(scales) * d_a, to_f32(fours), acc)
    return fmadd(odd_lanes(scales), concat(sums, sums), acc)


@inlined
def dot_q5_1_neon(w, w_at, a, a_at, n_blocks):
    """As dot_q5_1_scalar, 16 products at a time, in the order of dot_q4_1_neon."""
    acc = splat(f32x4, 0)
    for b in range(n_blocks):
        wb = w_at + 24 * b
        ab = a_at + 34 * b
        prefetch(w, wb + AHEAD)
        d_a = load_f16(a, ab)
        packed = load(u8x16, w, wb + 8)
        qw_low = as_i8(packed & 15 | byte_mask(load_u16(w, wb + 4)) & 16)
        qw_high = as_i8(packed >> 4 | byte_mask(load_u16(w, wb + 6)) & 16)
        low = load(i8x16, a, ab + 2)
        high = load(i8x16, a, ab + 18)
        fours = sdot(sdot(splat(i32x4, 0), qw_low, low), qw_high, high)
        sums = sdot(sdot(splat(i32x4, 0), splat(i8x16, 1), low), splat(i8x16, 1), high)
        acc = fmadd(splat(f32x4, load_f16(w, wb) * d_a), to_f32(fours), acc)
        acc = fmadd(splat(f32x4, load_f16(w, wb + 2)), to_f32(sums) * d_a, acc)
    return hsum4(acc)
