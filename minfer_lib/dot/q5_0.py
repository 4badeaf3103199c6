"""Q5_0 weights x Q8_0 activations.

Q5_0 block, 22 bytes: f16 d, uint32 qh, 16 bytes laid out as in Q4_0. Bit i of qh is the fifth bit of code i;
value = d * (code - 16).
"""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.four_rows import four_16s, four_bits
from minfer_lib.dot.four_rows_32 import four_rows_by_block
from minfer_lib.dot.prefetch_ahead import AHEAD
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import (
    andnot, as_i8, as_u8, as_u16, byte_mask, concat, dpbusd, fmadd, load, load_f16, load_u16, load_u32, madd,
    maddubs, prefetch, sdot, sign, splat, to_f32,
)  # fmt: skip
from minfer_lib.simd.registers import f32x4, f32x8, i8x16, i8x32, i16x16, i32x4, u8x16, u8x32
from minfer_lib.simd.sums import hsum4, hsum8


@inlined
def dot_q5_0_scalar(w, w_at, a, a_at, n_blocks):
    """w, a: uint8 arrays with n_blocks blocks from byte w_at, a_at on -> float32."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 22 * b
        ab = a_at + 34 * b
        qh = load_u32(w, wb + 2)
        isum = np.int32(0)  # exact: at most 32 * 16 * 128
        for j in range(16):
            code = w[wb + 6 + j]
            low = np.int32((code & 15) | ((qh >> j) & 1) << 4) - np.int32(16)
            high = np.int32((code >> 4) | ((qh >> (j + 16)) & 1) << 4) - np.int32(16)
            isum = np.int32(isum + low * np.int32(np.int8(a[ab + 2 + j])))
            isum = np.int32(isum + high * np.int32(np.int8(a[ab + 18 + j])))
        total += np.float32(isum) * load_f16(w, wb) * load_f16(a, ab)
    return total


@inlined
def dot_q5_0_avx2(w, w_at, a, a_at, n_blocks):
    """As dot_q5_0_scalar, 32 products at a time, in the order of dot_q4_0_avx2.

    code - 16 has its upper four bits set where the fifth bit is 0, and clear where it is 1.
    """
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        wb = w_at + 22 * b
        ab = a_at + 34 * b
        prefetch(w, wb + AHEAD)
        d = load_f16(w, wb) * load_f16(a, ab)
        packed = load(u8x16, w, wb + 6)
        nibbles = concat(packed, as_u8(as_u16(packed) >> 4)) & 15
        fifth = byte_mask(load_u32(w, wb + 2))
        qw = as_i8(nibbles | andnot(fifth, splat(u8x32, 0xF0)))
        qa = load(i8x32, a, ab + 2)
        magnitudes = as_u8(sign(qw, qw))
        signed = sign(qa, qw)
        pairs = maddubs(magnitudes, signed)  # exact: at most 2 * 16 * 127
        fours = madd(pairs, splat(i16x16, 1))
        acc = fmadd(splat(f32x8, d), to_f32(fours), acc)
    return hsum8(acc)


@inlined
def _products(start, w, wb, step, low, high):
    """See `four_rows_32.py`."""
    packed = four_16s(w, wb + 6, step)
    low_codes = packed & 15 | four_bits(w, wb + 2, step) & 16
    high_codes = as_u8(as_u16(packed) >> 4) & 15 | four_bits(w, wb + 4, step) & 16
    return dpbusd(dpbusd(start, low_codes, low), high_codes, high)


dot4_q5_0_avx512vnni = four_rows_by_block("Q5_0", _products, offset=16)


@inlined
def dot_q5_0_neon(w, w_at, a, a_at, n_blocks):
    """As dot_q5_0_scalar, 16 products at a time, in the order of dot_q4_0_neon."""
    acc = splat(f32x4, 0)
    for b in range(n_blocks):
        wb = w_at + 22 * b
        ab = a_at + 34 * b
        prefetch(w, wb + AHEAD)
        d = load_f16(w, wb) * load_f16(a, ab)
        packed = load(u8x16, w, wb + 6)
        low = as_i8(packed & 15 | byte_mask(load_u16(w, wb + 2)) & 16) - 16
        high = as_i8(packed >> 4 | byte_mask(load_u16(w, wb + 4)) & 16) - 16
        fours = sdot(splat(i32x4, 0), low, load(i8x16, a, ab + 2))
        fours = sdot(fours, high, load(i8x16, a, ab + 18))
        acc = fmadd(splat(f32x4, d), to_f32(fours), acc)
    return hsum4(acc)


@inlined
def _codes(w, wb):
    """i8x32: the codes of the block at byte wb, with their sign."""
    packed = load(u8x16, w, wb + 6)
    nibbles = concat(packed, as_u8(as_u16(packed) >> 4)) & 15
    return as_i8(nibbles | byte_mask(load_u32(w, wb + 2)) & 16) - 16


KERNELS = FormatKernels(
    "Q5_0",
    scalar=dot_q5_0_scalar,
    avx2=dot_q5_0_avx2,
    neon=dot_q5_0_neon,
    avx512vnni=dot4_q5_0_avx512vnni,
    codes=_codes,
)
