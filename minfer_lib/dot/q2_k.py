"""Q2_K weights x Q8_K activations.

Q2_K super-block, 84 bytes: 16 bytes with a scale (low) and a min (high) for each 16 codes, 64 bytes of codes, f16 d,
f16 dmin. Code byte 32 h + l holds codes 128 h + l, 128 h + 32 + l, 128 h + 64 + l and 128 h + 96 + l, from bit 0 on.
value = d * scale * code - dmin * min: a value term and a min term, as in Q4_K.
"""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.four_rows_k import four_rows_with_mins
from minfer_lib.dot.k_scales import bsum, eight_scales, scales_of_16, spread_16
from minfer_lib.dot.prefetch_ahead import AHEAD, prefetch_lines
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import as_i8, as_i16, as_u8, as_u16, lane, load, load_f16, madd, maddubs, sdot, splat, widen
from minfer_lib.simd.registers import i8x16, i8x32, i16x16, i32x4, i32x8, u8x16, u8x32, u8x64
from minfer_lib.simd.sums import halves, sum4, twice


@inlined
def dot_q2_k_scalar(w, w_at, a, a_at, n_blocks):
    """w, a: uint8 arrays with n_blocks super-blocks from byte w_at, a_at on -> float32, in dot_q4_k_scalar's order."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 84 * b
        ab = a_at + 306 * b
        values, mins = np.int32(0), np.int32(0)  # exact: at most 256 * 15 * 3 * 127
        for g in range(16):
            h, k, at = g // 8, g % 8 // 2, 16 * (g % 2)  # which half, which 32 of it, where in them
            isum = np.int32(0)
            for i in range(at, at + 16):
                code = (w[wb + 16 + 32 * h + i] >> 2 * k) & 3
                isum = np.int32(isum + np.int32(code) * np.int32(np.int8(a[ab + 2 + 128 * h + 32 * k + i])))
            values = np.int32(values + np.int32(w[wb + g] & 15) * isum)
            mins = np.int32(mins + np.int32(w[wb + g] >> 4) * bsum(a, ab, g))
        d_a = load_f16(a, ab)
        total -= load_f16(w, wb + 82) * d_a * np.float32(mins)
        total += load_f16(w, wb + 80) * d_a * np.float32(values)
    return total


@inlined
def _scales_mins(w, at):
    """Two i16x16: 16 scales, 16 mins."""
    packed = load(u8x16, w, at)
    return as_i16(widen(packed & 15)), as_i16(widen(as_u8(as_u16(packed) >> 4) & 15))


@inlined
def dot_q2_k_avx2(w, w_at, a, a_at, n_blocks):
    """As dot_q2_k_scalar, to the bit, 32 products at a time."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 84 * b
        ab = a_at + 306 * b
        prefetch_lines(w, wb + AHEAD, 84)
        scales, mins = _scales_mins(w, wb)
        values = splat(i32x8, 0)
        for h in range(2):
            eight = twice(eight_scales(scales, h))
            packed = as_u16(load(u8x32, w, wb + 16 + 32 * h))
            for k in range(4):
                codes = as_u8(packed >> 2 * k) & 3
                products = maddubs(codes, load(i8x32, a, ab + 2 + 128 * h + 32 * k))  # exact: at most 2 * 3 * 127
                values = values + madd(scales_of_16(eight, k), products)
        d_a = load_f16(a, ab)
        total -= load_f16(w, wb + 82) * d_a * np.float32(sum4(halves(madd(mins, load(i16x16, a, ab + 274)))))
        total += load_f16(w, wb + 80) * d_a * np.float32(sum4(halves(values)))
    return total


@inlined
def _super_block(w, wb):
    """See `four_rows_k.py`."""
    scales, mins = _scales_mins(w, wb)
    packed = as_u16(load(u8x64, w, wb + 16))
    codes = as_u8(packed) & 3, as_u8(packed >> 2) & 3, as_u8(packed >> 4) & 3, as_u8(packed >> 6) & 3
    return codes, spread_16(scales), mins


dot4_q2_k_avx512vnni = four_rows_with_mins("Q2_K", _super_block)


@inlined
def dot_q2_k_neon(w, w_at, a, a_at, n_blocks):
    """As dot_q2_k_scalar, to the bit, 16 products at a time."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 84 * b
        ab = a_at + 306 * b
        prefetch_lines(w, wb + AHEAD, 84)
        packed = load(u8x16, w, wb)
        values, mins = splat(i32x4, 0), np.int32(0)
        for h in range(2):
            for k in range(4):
                for at in range(0, 32, 16):
                    g = 8 * h + 2 * k + at // 16
                    codes = as_i8(load(u8x16, w, wb + 16 + 32 * h + at) >> 2 * k & 3)
                    isum = sdot(splat(i32x4, 0), codes, load(i8x16, a, ab + 2 + 16 * g))
                    values = values + isum * np.int32(lane(packed & 15, g))
                    mins = np.int32(mins + np.int32(lane(packed >> 4, g)) * bsum(a, ab, g))
        d_a = load_f16(a, ab)
        total -= load_f16(w, wb + 82) * d_a * np.float32(mins)
        total += load_f16(w, wb + 80) * d_a * np.float32(sum4(values))
    return total


@inlined
def _codes(w, wb, k):
    """i8x32: codes 32 k to 32 k + 31 of the super-block at byte wb."""
    return as_i8(as_u8(as_u16(load(u8x32, w, wb + 16 + 32 * (k // 4))) >> 2 * (k % 4)) & 3)


@inlined
def _scales(w, wb):
    """i16x16: for each 16 codes the scale."""
    return _scales_mins(w, wb)[0]


@inlined
def _mins(w, wb):
    """i16x16: for each 16 codes the min."""
    return _scales_mins(w, wb)[1]


KERNELS = FormatKernels(
    "Q2_K",
    scalar=dot_q2_k_scalar,
    avx2=dot_q2_k_avx2,
    neon=dot_q2_k_neon,
    avx512vnni=dot4_q2_k_avx512vnni,
    codes=_codes,
    scales=_scales,
    mins=_mins,
)
