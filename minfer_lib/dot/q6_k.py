"""Q6_K weights x Q8_K activations.

Q6_K super-block, 210 bytes: 128 bytes of low codes, 64 of high codes, 16 int8 scales, one for each 16 codes, f16 d.
In each half h of 128 codes, low byte 64 h + l holds the lower four bits of code l (low) and of code 64 + l (high), and
high byte 128 + 32 h + l the upper two bits of codes l, 32 + l, 64 + l and 96 + l, from bit 0 on.
value = d * scale * (code - 32). There is no min, but 32 comes off in the same way: the sum of
scale * (code - 32) * activation is that of scale * code * activation, minus 32 times that of scale * (sum of its 16
activations), which the Q8_K block carries.
"""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.four_rows import both
from minfer_lib.dot.four_rows_k import four_rows_symmetric
from minfer_lib.dot.k_scales import eight_scales, scales_of_16, spread_16
from minfer_lib.dot.prefetch_ahead import AHEAD, prefetch_lines
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import as_i8, as_u8, as_u16, lane, load, load_f16, madd, maddubs, sdot, splat, widen
from minfer_lib.simd.registers import i8x16, i8x32, i16x16, i32x4, i32x8, u8x16, u8x32, u8x64
from minfer_lib.simd.sums import halves, sum4, twice


@inlined
def dot_q6_k_scalar(w, w_at, a, a_at, n_blocks):
    """w, a: uint8 arrays with n_blocks super-blocks from byte w_at, a_at on -> float32.

    Super-block by super-block in plain float32, (d * d_a) * integer sum, as the value term of seed 1 §3.2.
    """
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 210 * b
        ab = a_at + 306 * b
        values = np.int32(0)  # exact: at most 256 * 128 * 32 * 127
        for g in range(16):
            h, k, at = g // 8, g % 8 // 2, 16 * (g % 2)  # which half, which 32 of it, where in them
            isum = np.int32(0)
            for i in range(at, at + 16):
                low = (w[wb + 64 * h + 32 * (k % 2) + i] >> 4 * (k // 2)) & 15
                high = (w[wb + 128 + 32 * h + i] >> 2 * k) & 3
                code = np.int32(low | high << 4) - np.int32(32)
                isum = np.int32(isum + code * np.int32(np.int8(a[ab + 2 + 128 * h + 32 * k + i])))
            values = np.int32(values + np.int32(np.int8(w[wb + 192 + g])) * isum)
        total += load_f16(w, wb + 208) * load_f16(a, ab) * np.float32(values)
    return total


@inlined
def dot_q6_k_avx2(w, w_at, a, a_at, n_blocks):
    """As dot_q6_k_scalar, to the bit, 32 products at a time."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 210 * b
        ab = a_at + 306 * b
        prefetch_lines(w, wb + AHEAD, 210)
        scales = widen(load(i8x16, w, wb + 192))
        values = splat(i32x8, 0) - (madd(scales, load(i16x16, a, ab + 274)) << 5)
        for h in range(2):
            eight = twice(eight_scales(scales, h))
            high = as_u16(load(u8x32, w, wb + 128 + 32 * h))
            for k in range(4):
                low = as_u16(load(u8x32, w, wb + 64 * h + 32 * (k & 1)))
                codes = as_u8(low >> 4 * (k >> 1)) & 15 | as_u8(high >> 2 * k << 4) & 0x30
                products = maddubs(codes, load(i8x32, a, ab + 2 + 128 * h + 32 * k))  # exact: at most 2 * 63 * 127
                values = values + madd(scales_of_16(eight, k), products)
        total += load_f16(w, wb + 208) * load_f16(a, ab) * np.float32(sum4(halves(values)))
    return total


@inlined
def _super_block(w, wb):
    """See `four_rows_k.py`."""
    scales = _scales(w, wb)
    one, other = both(u8x32, w, wb, wb + 64), both(u8x32, w, wb + 32, wb + 96)
    high = as_u16(load(u8x64, w, wb + 128))  # code register k: bits 2 k and 2 k + 1
    codes = (
        one & 15 | as_u8(high << 4) & 0x30,
        other & 15 | as_u8(high << 2) & 0x30,
        as_u8(as_u16(one) >> 4) & 15 | as_u8(high) & 0x30,
        as_u8(as_u16(other) >> 4) & 15 | as_u8(high >> 2) & 0x30,
    )
    return codes, spread_16(scales), scales


dot4_q6_k_avx512vnni = four_rows_symmetric("Q6_K", _super_block, shift=5)


@inlined
def dot_q6_k_neon(w, w_at, a, a_at, n_blocks):
    """As dot_q6_k_scalar, to the bit, 16 products at a time. sdot takes signed codes, so 32 is subtracted first."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 210 * b
        ab = a_at + 306 * b
        prefetch_lines(w, wb + AHEAD, 210)
        scales = load(i8x16, w, wb + 192)
        values = splat(i32x4, 0)
        for h in range(2):
            for k in range(4):
                for at in range(0, 32, 16):
                    g = 8 * h + 2 * k + at // 16
                    low = load(u8x16, w, wb + 64 * h + 32 * (k & 1) + at) >> 4 * (k >> 1) & 15
                    codes = as_i8(low | load(u8x16, w, wb + 128 + 32 * h + at) >> 2 * k << 4 & 0x30) - 32
                    isum = sdot(splat(i32x4, 0), codes, load(i8x16, a, ab + 2 + 16 * g))
                    values = values + isum * np.int32(lane(scales, g))
        total += load_f16(w, wb + 208) * load_f16(a, ab) * np.float32(sum4(values))
    return total


@inlined
def _codes(w, wb, k):
    """i8x32: codes 32 k to 32 k + 31 of the super-block at byte wb, with their sign."""
    h = k // 4
    low = as_u16(load(u8x32, w, wb + 64 * h + 32 * (k % 2)))
    high = as_u16(load(u8x32, w, wb + 128 + 32 * h))
    return as_i8(as_u8(low >> 4 * (k % 4 // 2)) & 15 | as_u8(high >> 2 * (k % 4) << 4) & 0x30) - 32


@inlined
def _scales(w, wb):
    """i16x16: for each 16 codes the scale."""
    return widen(load(i8x16, w, wb + 192))


KERNELS = FormatKernels(
    "Q6_K",
    scalar=dot_q6_k_scalar,
    avx2=dot_q6_k_avx2,
    neon=dot_q6_k_neon,
    avx512vnni=dot4_q6_k_avx512vnni,
    codes=_codes,
    scales=_scales,
)
