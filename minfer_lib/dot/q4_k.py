"""Q4_K weights x Q8_K activations.

Q4_K super-block, 144 bytes: f16 d, f16 dmin, 12 bytes of scales and mins, 128 bytes of codes. Sub-block s of 32 codes
has scale s and min s, 6 bits each. Byte 32 c + l of the codes holds code 64 c + l low, code 64 c + 32 + l high.
value = d * scale * code - dmin * min, so that a super-block adds

    - dmin * d_a * sum of min * (sum of its activations)      the min term, from the sums that the Q8_K block carries
    + d * d_a * sum of scale * code * activation              the value term

Q8_K block, 306 bytes: f16 d_a at 0, 256 int8 at 2, at 274 the int16 sums of 16 activations each.
"""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.four_rows import both
from minfer_lib.dot.four_rows_k import four_rows_with_mins
from minfer_lib.dot.k_scales import bsum, mins_of_16, scale_min, scale_of_32, scale_of_each_16, scales_mins, spread_32
from minfer_lib.dot.prefetch_ahead import AHEAD, prefetch_lines
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import as_i8, as_u8, as_u16, lane, load, load_f16, madd, maddubs, sdot, splat
from minfer_lib.simd.registers import i8x16, i8x32, i16x16, i32x4, i32x8, u8x16, u8x32
from minfer_lib.simd.sums import halves, sum4, twice


@inlined
def dot_q4_k_scalar(w, w_at, a, a_at, n_blocks):
    """w, a: uint8 arrays with n_blocks super-blocks from byte w_at, a_at on -> float32.

    Seed 1 §3.2, dot_q4_k_q8_k_scalar: super-block by super-block first the min term, then the value term, in plain
    float32, each (super-scale * d_a) * integer sum.
    """
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 144 * b
        ab = a_at + 306 * b
        values, mins = np.int32(0), np.int32(0)  # exact: at most 256 * 63 * 15 * 127
        for s in range(8):
            scale, min_ = scale_min(w, wb + 4, s)
            isum = np.int32(0)
            for i in range(32):
                code = (w[wb + 16 + 32 * (s // 2) + i] >> 4 * (s % 2)) & 15
                isum = np.int32(isum + np.int32(code) * np.int32(np.int8(a[ab + 2 + 32 * s + i])))
            values = np.int32(values + scale * isum)
            mins = np.int32(mins + min_ * (bsum(a, ab, 2 * s) + bsum(a, ab, 2 * s + 1)))
        d_a = load_f16(a, ab)
        total -= load_f16(w, wb + 2) * d_a * np.float32(mins)
        total += load_f16(w, wb) * d_a * np.float32(values)
    return total


@inlined
def dot_q4_k_avx2(w, w_at, a, a_at, n_blocks):
    """As dot_q4_k_scalar, to the bit, 32 products at a time."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 144 * b
        ab = a_at + 306 * b
        prefetch_lines(w, wb + AHEAD, 144)
        packed = twice(scales_mins(w, wb + 4))
        values = splat(i32x8, 0)
        for c in range(4):
            codes = load(u8x32, w, wb + 16 + 32 * c)
            low = maddubs(codes & 15, load(i8x32, a, ab + 2 + 64 * c))  # exact: at most 2 * 15 * 127
            high = maddubs(as_u8(as_u16(codes) >> 4) & 15, load(i8x32, a, ab + 34 + 64 * c))
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
    one, other = both(u8x32, w, wb + 16, wb + 80), both(u8x32, w, wb + 48, wb + 112)
    codes = one & 15, as_u8(as_u16(one) >> 4) & 15, other & 15, as_u8(as_u16(other) >> 4) & 15
    return codes, spread_32(packed), mins_of_16(twice(packed))


dot4_q4_k_avx512vnni = four_rows_with_mins("Q4_K", _super_block)


@inlined
def dot_q4_k_neon(w, w_at, a, a_at, n_blocks):
    """As dot_q4_k_scalar, to the bit, 16 products at a time."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 144 * b
        ab = a_at + 306 * b
        prefetch_lines(w, wb + AHEAD, 144)
        packed = scales_mins(w, wb + 4)
        values, mins = splat(i32x4, 0), np.int32(0)
        for s in range(8):
            at = s + (s & 4)  # where scale s is
            isum = splat(i32x4, 0)
            for half in range(0, 32, 16):
                codes = load(u8x16, w, wb + 16 + 32 * (s // 2) + half) >> 4 * (s & 1) & 15
                isum = sdot(isum, as_i8(codes), load(i8x16, a, ab + 2 + 32 * s + half))
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
    return as_i8(as_u8(as_u16(load(u8x32, w, wb + 16 + 32 * (k // 2))) >> 4 * (k % 2)) & 15)


@inlined
def _scales(w, wb):
    """i16x16: for each 16 codes the scale."""
    return scale_of_each_16(twice(scales_mins(w, wb + 4)))


@inlined
def _mins(w, wb):
    """i16x16: for each 16 codes the min."""
    return mins_of_16(twice(scales_mins(w, wb + 4)))


KERNELS = FormatKernels(
    "Q4_K",
    scalar=dot_q4_k_scalar,
    avx2=dot_q4_k_avx2,
    neon=dot_q4_k_neon,
    avx512vnni=dot4_q4_k_avx512vnni,
    codes=_codes,
    scales=_scales,
    mins=_mins,
)
