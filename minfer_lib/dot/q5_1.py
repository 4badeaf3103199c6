"""Q5_1 weights x Q8_0 activations.

Q5_1 block, 24 bytes: f16 d, f16 m, uint32 qh, 16 bytes laid out as in Q4_0. Bit i of qh is the fifth bit of code i;
value = d * code + m, so a block adds d_a * (d_w * sum(code * a) + m * sum(a)), as in Q4_1.
"""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.four_rows import four_16s, four_bits
from minfer_lib.dot.four_rows_32 import field_shuffles, four_rows_by_fours, scales_by_block
from minfer_lib.dot.prefetch_ahead import AHEAD
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import (
    as_i8, as_u8, as_u16, byte_mask, concat, dpbusd, fmadd, load, load_f16, load_u16, load_u32, madd,
    maddubs, prefetch, sdot, splat, to_f32,
)  # fmt: skip
from minfer_lib.simd.registers import f32x4, f32x8, i8x16, i8x32, i16x16, i32x4, u8x16, u8x32
from minfer_lib.simd.sums import hsum4, hsum8


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


_SHUFFLES, _LATER_SHUFFLES = field_shuffles(24, 0, 2), field_shuffles(24, 0, 2, start=16)


@inlined
def _scales(w, wb, row_bytes):
    """See `four_rows_32.py`."""
    first = scales_by_block(w, wb, row_bytes, _SHUFFLES)
    return first | scales_by_block(w, wb + 16, row_bytes, _LATER_SHUFFLES)


@inlined
def _products(start, w, wb, step, low, high):
    """See `four_rows_32.py`."""
    packed = four_16s(w, wb + 8, step)
    low_codes = packed & 15 | four_bits(w, wb + 4, step) & 16
    high_codes = as_u8(as_u16(packed) >> 4) & 15 | four_bits(w, wb + 6, step) & 16
    return dpbusd(dpbusd(start, low_codes, low), high_codes, high)


dot4_q5_1_avx512vnni = four_rows_by_fours("Q5_1", _products, _scales)


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


@inlined
def _codes(w, wb):
    """i8x32: the codes of the block at byte wb."""
    packed = load(u8x16, w, wb + 8)
    nibbles = concat(packed, as_u8(as_u16(packed) >> 4)) & 15
    return as_i8(nibbles | byte_mask(load_u32(w, wb + 4)) & 16)


KERNELS = FormatKernels(
    "Q5_1",
    scalar=dot_q5_1_scalar,
    avx2=dot_q5_1_avx2,
    neon=dot_q5_1_neon,
    avx512vnni=dot4_q5_1_avx512vnni,
    codes=_codes,
)
