"""Q5_K weights x Q8_K activations.

Q5_K super-block, 176 bytes: f16 d, f16 dmin, 12 bytes of scales and mins as in Q4_K, 32 bytes of fifth bits, 128 bytes
of codes laid out as in Q4_K. Bit s of fifth-bit byte l belongs to code 32 s + l.
value = d * scale * code - dmin * min: a value term and a min term, as in Q4_K.
"""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.four_rows import both
from minfer_lib.dot.four_rows_k import four_rows_with_mins
from minfer_lib.dot.k_scales import (
    bsum, mins_of_16, scale_min, scale_of_32, scale_of_each_16, scales_mins, shifts, spread_32,
)  # fmt: skip
from minfer_lib.dot.prefetch_ahead import AHEAD, prefetch_lines
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import as_i8, as_u8, as_u16, lane, load, load_f16, madd, maddubs, sdot, splat
from minfer_lib.simd.registers import i8x16, i8x32, i16x16, i32x4, i32x8, u8x16, u8x32
from minfer_lib.simd.sums import halves, sum4, twice


@inlined
def dot_q5_k_scalar(w, w_at, a, a_at, n_blocks):
    """w, a: uint8 arrays with n_blocks super-blocks from byte w_at, a_at on -> float32, in dot_q4_k_scalar's order."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 176 * b
        ab = a_at + 306 * b
        values, mins = np.int32(0), np.int32(0)  # exact: at most 256 * 63 * 31 * 127
        for s in range(8):
            scale, min_ = scale_min(w, wb + 4, s)
            isum = np.int32(0)
            for i in range(32):
                low = (w[wb + 48 + 32 * (s // 2) + i] >> 4 * (s % 2)) & 15
                fifth = (w[wb + 16 + i] >> s) & 1
                isum = np.int32(isum + np.int32(low | fifth << 4) * np.int32(np.int8(a[ab + 2 + 32 * s + i])))
            values = np.int32(values + scale * isum)
            mins = np.int32(mins + min_ * (bsum(a, ab, 2 * s) + bsum(a, ab, 2 * s + 1)))
        d_a = load_f16(a, ab)
        total -= load_f16(w, wb + 2) * d_a * np.float32(mins)
        total += load_f16(w, wb) * d_a * np.float32(values)
    return total


@inlined
def dot_q5_k_avx2(w, w_at, a, a_at, n_blocks):
    """As dot_q5_k_scalar, to the bit, 32 products at a time."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 176 * b
        ab = a_at + 306 * b
        prefetch_lines(w, wb + AHEAD, 176)
        packed = twice(scales_mins(w, wb + 4))
        fifths = as_u16(load(u8x32, w, wb + 16))
        values = splat(i32x8, 0)
        for c in range(4):
            codes = load(u8x32, w, wb + 48 + 32 * c)
            low = codes & 15 | as_u8(fifths >> 2 * c << 4) & 16
            high = as_u8(as_u16(codes) >> 4) & 15 | as_u8(fifths >> 2 * c + 1 << 4) & 16
            low = maddubs(low, load(i8x32, a, ab + 2 + 64 * c))  # exact: at most 2 * 31 * 127
            high = maddubs(high, load(i8x32, a, ab + 34 + 64 * c))
            values = values + madd(scale_of_32(packed, 2 * c), low)
            values = values + madd(scale_of_32(packed, 2 * c + 1), high)
        mins = madd(mins_of_16(packed), load(i16x16, a, ab + 274))
        d_a = load_f16(a, ab)
        total -= load_f16(w, wb + 2) * d_a * np.float32(sum4(halves(mins)))
        total += load_f16(w, wb) * d_a * np.float32(sum4(halves(values)))
    return total


@inlined
def _super_block(w, wb):
    """See `four_rows_k.py`."""
    packed = scales_mins(w, wb + 4)
    fifths = as_u16(twice(load(u8x32, w, wb + 16))) >> shifts(0, 4)  # code register k: bit k
    one, other = both(u8x32, w, wb + 48, wb + 112), both(u8x32, w, wb + 80, wb + 144)
    codes = (
        one & 15 | as_u8(fifths << 4) & 16,
        as_u8(as_u16(one) >> 4) & 15 | as_u8(fifths << 3) & 16,
        other & 15 | as_u8(fifths << 2) & 16,
        as_u8(as_u16(other) >> 4) & 15 | as_u8(fifths << 1) & 16,
    )
    return codes, spread_32(packed), mins_of_16(twice(packed))


dot4_q5_k_avx512vnni = four_rows_with_mins("Q5_K", _super_block)


@inlined
def dot_q5_k_neon(w, w_at, a, a_at, n_blocks):
    """As dot_q5_k_scalar, to the bit, 16 products at a time."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 176 * b
        ab = a_at + 306 * b
        prefetch_lines(w, wb + AHEAD, 176)
        packed = scales_mins(w, wb + 4)
        values, mins = splat(i32x4, 0), np.int32(0)
        for s in range(8):
            at = s + (s & 4)  # where scale s is
            isum = splat(i32x4, 0)
            for half in range(0, 32, 16):
                low = load(u8x16, w, wb + 48 + 32 * (s // 2) + half) >> 4 * (s & 1) & 15
                fifth = load(u8x16, w, wb + 16 + half) >> s << 4 & 16
                isum = sdot(isum, as_i8(low | fifth), load(i8x16, a, ab + 2 + 32 * s + half))
            values = values + isum * np.int32(lane(packed, at))
            min_ = np.int32(lane(packed, at + 4))
            mins = np.int32(mins + min_ * (bsum(a, ab, 2 * s) + bsum(a, ab, 2 * s + 1)))
        d_a = load_f16(a, ab)
        total -= load_f16(w, wb + 2) * d_a * np.float32(mins)
        total += load_f16(w, wb) * d_a * np.float32(sum4(values))
    return total


@inlined
def _codes(w, wb, k):
    """i8x32: codes 32 k to 32 k + 31 of the super-block at byte wb."""
    low = as_u8(as_u16(load(u8x32, w, wb + 48 + 32 * (k // 2))) >> 4 * (k % 2)) & 15
    return as_i8(low | as_u8(as_u16(load(u8x32, w, wb + 16)) >> k << 4) & 16)


@inlined
def _scales(w, wb):
    """i16x16: for each 16 codes the scale."""
    return scale_of_each_16(twice(scales_mins(w, wb + 4)))


@inlined
def _mins(w, wb):
    """i16x16: for each 16 codes the min."""
    return mins_of_16(twice(scales_mins(w, wb + 4)))


KERNELS = FormatKernels(
    "Q5_K",
    scalar=dot_q5_k_scalar,
    avx2=dot_q5_k_avx2,
    neon=dot_q5_k_neon,
    avx512vnni=dot4_q5_k_avx512vnni,
    codes=_codes,
    scales=_scales,
    mins=_mins,
)
