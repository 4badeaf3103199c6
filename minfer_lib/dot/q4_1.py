"""Q4_1 weights x Q8_0 activations.

Q4_1 block, 20 bytes: f16 d, f16 m, 16 bytes of codes laid out as in Q4_0; value = d * code + m.
So a block adds d_a * (d_w * sum(code * a) + m * sum(a)). ggml reads the second sum
from a Q8_1 block; here it is counted.
"""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.four_rows import four_16s
from minfer_lib.dot.four_rows_32 import dot_nibbles, field_shuffles, four_rows_by_fours, scales_by_block
from minfer_lib.dot.prefetch_ahead import AHEAD
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import (
    as_i8, as_u8, as_u16, concat, fmadd, load, load_f16, madd, maddubs, prefetch, sdot, splat, to_f32,
)  # fmt: skip
from minfer_lib.simd.registers import f32x4, f32x8, i8x16, i8x32, i16x16, i32x4, u8x16, u8x32
from minfer_lib.simd.sums import hsum4, hsum8


@inlined
def dot_q4_1_scalar(w, w_at, a, a_at, n_blocks):
    """w, a: uint8 arrays with n_blocks blocks from byte w_at, a_at on -> float32."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 20 * b
        ab = a_at + 34 * b
        isum = np.int32(0)  # exact: at most 32 * 15 * 128
        asum = np.int32(0)
        for j in range(16):
            code = w[wb + 4 + j]
            low = np.int32(np.int8(a[ab + 2 + j]))
            high = np.int32(np.int8(a[ab + 18 + j]))
            isum = np.int32(isum + np.int32(code & 15) * low + np.int32(code >> 4) * high)
            asum = np.int32(asum + low + high)
        d_a = load_f16(a, ab)
        total += np.float32(isum) * load_f16(w, wb) * d_a
        total += np.float32(asum) * load_f16(w, wb + 2) * d_a
    return total


@inlined
def dot_q4_1_avx2(w, w_at, a, a_at, n_blocks):
    """As dot_q4_1_scalar, 32 products at a time.

    Lane k sums the products, and the activations, 4k to 4k + 3 of each block, exactly; two fused multiply-adds a block
    add d_w * d_a times the first, then m times (d_a times the second); at the end hsum8.
    """
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        wb = w_at + 20 * b
        ab = a_at + 34 * b
        prefetch(w, wb + AHEAD)
        d_a = load_f16(a, ab)
        packed = load(u8x16, w, wb + 4)
        codes = concat(packed, as_u8(as_u16(packed) >> 4)) & 15
        qa = load(i8x32, a, ab + 2)
        fours = madd(maddubs(codes, qa), splat(i16x16, 1))  # exact: at most 2 * 15 * 127 a pair
        sums = madd(maddubs(splat(u8x32, 1), qa), splat(i16x16, 1))
        acc = fmadd(splat(f32x8, load_f16(w, wb) * d_a), to_f32(fours), acc)
        acc = fmadd(splat(f32x8, load_f16(w, wb + 2)), to_f32(sums) * d_a, acc)
    return hsum8(acc)


_SHUFFLES = field_shuffles(20, 0, 2)


@inlined
def _scales(w, wb, row_bytes):
    """See `four_rows_32.py`."""
    return scales_by_block(w, wb, row_bytes, _SHUFFLES)


@inlined
def _products(start, w, wb, step, low, high):
    """See `four_rows_32.py`."""
    return dot_nibbles(start, four_16s(w, wb + 4, step), low, high)


dot4_q4_1_avx512vnni = four_rows_by_fours("Q4_1", _products, _scales)


@inlined
def dot_q4_1_neon(w, w_at, a, a_at, n_blocks):
    """As dot_q4_1_scalar, 16 products at a time.

    Lane k sums the products, and the activations, 4k to 4k + 3 and 4k + 16 to 4k + 19 of each block, exactly; two fused
    multiply-adds a block, as in dot_q4_1_avx2; at the end hsum4.
    """
    acc = splat(f32x4, 0)
    for b in range(n_blocks):
        wb = w_at + 20 * b
        ab = a_at + 34 * b
        prefetch(w, wb + AHEAD)
        d_a = load_f16(a, ab)
        packed = load(u8x16, w, wb + 4)
        low = load(i8x16, a, ab + 2)
        high = load(i8x16, a, ab + 18)
        fours = sdot(sdot(splat(i32x4, 0), as_i8(packed & 15), low), as_i8(packed >> 4), high)
        sums = sdot(sdot(splat(i32x4, 0), splat(i8x16, 1), low), splat(i8x16, 1), high)
        acc = fmadd(splat(f32x4, load_f16(w, wb) * d_a), to_f32(fours), acc)
        acc = fmadd(splat(f32x4, load_f16(w, wb + 2)), to_f32(sums) * d_a, acc)
    return hsum4(acc)


@inlined
def _codes(w, wb):
    """i8x32: the codes of the block at byte wb."""
    packed = load(u8x16, w, wb + 4)
    return as_i8(concat(packed, as_u8(as_u16(packed) >> 4)) & 15)


KERNELS = FormatKernels(
    "Q4_1",
    scalar=dot_q4_1_scalar,
    avx2=dot_q4_1_avx2,
    neon=dot_q4_1_neon,
    avx512vnni=dot4_q4_1_avx512vnni,
    codes=_codes,
)
