"""Q4_0 weights x Q8_0 activations.

Q4_0 block, 18 bytes: f16 d, 16 bytes of codes. Byte j holds code j low, code j + 16 high; value = d * (code - 8).
Q8_0 block, 34 bytes: f16 d, 32 int8.
"""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.four_rows import four_16s
from minfer_lib.dot.four_rows_32 import dot_nibbles, field_shuffles, four_rows_by_fours, scales_by_block
from minfer_lib.dot.prefetch_ahead import AHEAD
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import (
    as_i8, as_u8, as_u16, concat, fmadd, load, load_f16, madd, maddubs, prefetch, sdot, sign, splat, to_f32,
)  # fmt: skip
from minfer_lib.simd.registers import f32x4, f32x8, i8x16, i8x32, i16x16, i32x4, u8x16
from minfer_lib.simd.sums import hsum4, hsum8


@inlined
def dot_q4_0_scalar(w, w_at, a, a_at, n_blocks):
    """w, a: uint8 arrays with n_blocks blocks from byte w_at, a_at on -> float32. Seed 1 §3.2, dot_q4_0_q8_0_scalar."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 18 * b
        ab = a_at + 34 * b
        isum = np.int32(0)  # exact: at most 32 * 8 * 128
        for j in range(16):
            code = w[wb + 2 + j]
            low = np.int32(code & 15) - np.int32(8)
            high = np.int32(code >> 4) - np.int32(8)
            isum = np.int32(isum + low * np.int32(np.int8(a[ab + 2 + j])))
            isum = np.int32(isum + high * np.int32(np.int8(a[ab + 18 + j])))
        total += np.float32(isum) * load_f16(w, wb) * load_f16(a, ab)
    return total


@inlined
def dot_q4_0_avx2(w, w_at, a, a_at, n_blocks):
    """As dot_q4_0_scalar, 32 products at a time. Seed 1 §3.2, dot_q4_0_q8_0_avx2.

    Lane k sums the products 4k to 4k + 3 of each block, exactly, and adds them times d_w * d_a by one fused
    multiply-add a block; at the end hsum8. maddubs takes unsigned weights: each activation gets its weight's sign.
    """
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        wb = w_at + 18 * b
        ab = a_at + 34 * b
        prefetch(w, wb + AHEAD)
        d = load_f16(w, wb) * load_f16(a, ab)
        packed = load(u8x16, w, wb + 2)
        codes = concat(packed, as_u8(as_u16(packed) >> 4)) & 15
        qw = as_i8(codes) - 8
        qa = load(i8x32, a, ab + 2)
        magnitudes = as_u8(sign(qw, qw))
        signed = sign(qa, qw)
        pairs = maddubs(magnitudes, signed)  # exact: at most 2 * 8 * 127
        fours = madd(pairs, splat(i16x16, 1))
        acc = fmadd(splat(f32x8, d), to_f32(fours), acc)
    return hsum8(acc)


_SHUFFLES = field_shuffles(18, 0)


@inlined
def _scales(w, wb, row_bytes):
    """See `four_rows_32.py`."""
    return scales_by_block(w, wb, row_bytes, _SHUFFLES)


@inlined
def _products(start, w, wb, step, low, high):
    """See `four_rows_32.py`."""
    return dot_nibbles(start, four_16s(w, wb + 2, step), low, high)


dot4_q4_0_avx512vnni = four_rows_by_fours("Q4_0", _products, _scales, offset=8)


@inlined
def dot_q4_0_neon(w, w_at, a, a_at, n_blocks):
    """As dot_q4_0_scalar, 16 products at a time. Seed 1 §3.2, sdot_vec.

    Lane k sums the products 4k to 4k + 3 and 4k + 16 to 4k + 19 of each block, exactly, and adds them times d_w * d_a
    by one fused multiply-add a block; at the end hsum4.
    """
    acc = splat(f32x4, 0)
    for b in range(n_blocks):
        wb = w_at + 18 * b
        ab = a_at + 34 * b
        prefetch(w, wb + AHEAD)
        d = load_f16(w, wb) * load_f16(a, ab)
        packed = load(u8x16, w, wb + 2)
        low = as_i8(packed & 15) - 8
        high = as_i8(packed >> 4) - 8
        fours = sdot(splat(i32x4, 0), low, load(i8x16, a, ab + 2))
        fours = sdot(fours, high, load(i8x16, a, ab + 18))
        acc = fmadd(splat(f32x4, d), to_f32(fours), acc)
    return hsum4(acc)


@inlined
def _codes(w, wb):
    """i8x32: the codes of the block at byte wb, with their sign."""
    packed = load(u8x16, w, wb + 2)
    return as_i8(concat(packed, as_u8(as_u16(packed) >> 4)) & 15) - 8


KERNELS = FormatKernels(
    "Q4_0",
    scalar=dot_q4_0_scalar,
    avx2=dot_q4_0_avx2,
    neon=dot_q4_0_neon,
    avx512vnni=dot4_q4_0_avx512vnni,
    codes=_codes,
)
