"""Q3_K weights x Q8_K activations.

Q3_K super-block, 110 bytes: 32 bytes of high bits, 64 bytes of low codes, 12 bytes of scales, f16 d. Low byte 32 h + l
holds two bits of codes 128 h + l, 128 h + 32 + l, 128 h + 64 + l and 128 h + 96 + l, from bit 0 on; bit e // 32 of high
byte e % 32 is the third bit of code e. There are 16 scales of 6 bits, one for each 16 codes.
value = d * (scale - 32) * (code - 4). As in Q6_K, the 4 comes off by the sums of 16 activations each.
"""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.four_rows_k import four_rows_symmetric
from minfer_lib.dot.k_scales import by, eight_scales, scales_of_16, shifts, spread_16
from minfer_lib.dot.prefetch_ahead import AHEAD, prefetch_lines
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import (
    as_i8, as_u8, as_u16, concat, lane, load, load_f16, load_u32, madd, maddubs, sdot, splat, widen,
)  # fmt: skip
from minfer_lib.simd.registers import i8x16, i8x32, i16x16, i32x4, i32x8, u8x16, u8x32, u8x64, u32x2, u32x4
from minfer_lib.simd.sums import halves, sum4, twice

_BY_0_2_4_6 = by(0, 2, 4, 6)


@inlined
def dot_q3_k_scalar(w, w_at, a, a_at, n_blocks):
    """w, a: uint8 arrays with n_blocks super-blocks from byte w_at, a_at on -> float32, in dot_q6_k_scalar's order."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 110 * b
        ab = a_at + 306 * b
        values = np.int32(0)  # exact: at most 256 * 32 * 4 * 127
        for g in range(16):
            h, k, at = g // 8, g % 8 // 2, 16 * (g % 2)  # which half, which 32 of it, where in them
            isum = np.int32(0)
            for i in range(at, at + 16):
                low = (w[wb + 32 + 32 * h + i] >> 2 * k) & 3
                high = (w[wb + i] >> (4 * h + k)) & 1
                code = np.int32(low | high << 2) - np.int32(4)
                isum = np.int32(isum + code * np.int32(np.int8(a[ab + 2 + 128 * h + 32 * k + i])))
            low = (w[wb + 96 + g % 8] >> 4 * h) & 15
            high = (w[wb + 104 + g % 4] >> 2 * (g // 4)) & 3
            values = np.int32(values + (np.int32(low | high << 4) - np.int32(32)) * isum)
        total += load_f16(w, wb + 108) * load_f16(a, ab) * np.float32(values)
    return total


@inlined
def _packed_scales(w, at):
    """i8x16: the scales, less 32, from the 12 bytes from byte `at` on; four at a time in 32 bits.

    Bytes 0 to 7 hold the lower four bits of scales 0 to 7 and, above them, of 8 to 15; in bytes 8 to 11 are the upper
    two bits of scales 0 to 3, 4 to 7, 8 to 11 and 12 to 15, from bit 0 on.
    """
    lower = load(u32x2, w, at)
    upper = splat(u32x4, load_u32(w, at + 8)) >> load(u32x4, _BY_0_2_4_6, 0)
    return as_i8(concat(lower, lower >> 4) & 0x0F0F0F0F | (upper & 0x03030303) << 4) - 32


@inlined
def dot_q3_k_avx2(w, w_at, a, a_at, n_blocks):
    """As dot_q3_k_scalar, to the bit, 32 products at a time."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 110 * b
        ab = a_at + 306 * b
        prefetch_lines(w, wb + AHEAD, 110)
        scales = widen(_packed_scales(w, wb + 96))
        high = as_u16(load(u8x32, w, wb))
        values = splat(i32x8, 0) - (madd(scales, load(i16x16, a, ab + 274)) << 2)
        for h in range(2):
            eight = twice(eight_scales(scales, h))
            low = as_u16(load(u8x32, w, wb + 32 + 32 * h))
            for k in range(4):
                codes = as_u8(low >> 2 * k) & 3 | as_u8(high >> 4 * h + k << 2) & 4
                products = maddubs(codes, load(i8x32, a, ab + 2 + 128 * h + 32 * k))  # exact: at most 2 * 7 * 127
                values = values + madd(scales_of_16(eight, k), products)
        total += load_f16(w, wb + 108) * load_f16(a, ab) * np.float32(sum4(halves(values)))
    return total


@inlined
def _super_block(w, wb):
    """See `four_rows_k.py`."""
    scales = _scales(w, wb)
    high = as_u16(twice(load(u8x32, w, wb))) >> shifts(0, 4)  # code register k: bit k
    low = as_u16(load(u8x64, w, wb + 32))  # and bits 2 k and 2 k + 1
    codes = (
        as_u8(low) & 3 | as_u8(high << 2) & 4,
        as_u8(low >> 2) & 3 | as_u8(high << 1) & 4,
        as_u8(low >> 4) & 3 | as_u8(high) & 4,
        as_u8(low >> 6) & 3 | as_u8(high >> 1) & 4,
    )
    return codes, spread_16(scales), scales


dot4_q3_k_avx512vnni = four_rows_symmetric("Q3_K", _super_block, shift=2)


@inlined
def dot_q3_k_neon(w, w_at, a, a_at, n_blocks):
    """As dot_q3_k_scalar, to the bit, 16 products at a time. sdot takes signed codes, so 4 is subtracted first."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 110 * b
        ab = a_at + 306 * b
        prefetch_lines(w, wb + AHEAD, 110)
        scales = _packed_scales(w, wb + 96)
        values = splat(i32x4, 0)
        for h in range(2):
            for k in range(4):
                for at in range(0, 32, 16):
                    g = 8 * h + 2 * k + at // 16
                    low = load(u8x16, w, wb + 32 + 32 * h + at) >> 2 * k & 3
                    codes = as_i8(low | load(u8x16, w, wb + at) >> 4 * h + k << 2 & 4) - 4
                    isum = sdot(splat(i32x4, 0), codes, load(i8x16, a, ab + 2 + 16 * g))
                    values = values + isum * np.int32(lane(scales, g))
        total += load_f16(w, wb + 108) * load_f16(a, ab) * np.float32(sum4(values))
    return total


@inlined
def _codes(w, wb, k):
    """i8x32: codes 32 k to 32 k + 31 of the super-block at byte wb, with their sign."""
    low = as_u8(as_u16(load(u8x32, w, wb + 32 + 32 * (k // 4))) >> 2 * (k % 4)) & 3
    return as_i8(low | as_u8(as_u16(load(u8x32, w, wb)) >> k << 2) & 4) - 4


@inlined
def _scales(w, wb):
    """i16x16: for each 16 codes the scale, less 32."""
    return widen(_packed_scales(w, wb + 96))


KERNELS = FormatKernels(
    "Q3_K",
    scalar=dot_q3_k_scalar,
    avx2=dot_q3_k_avx2,
    neon=dot_q3_k_neon,
    avx512vnni=dot4_q3_k_avx512vnni,
    codes=_codes,
    scales=_scales,
)
