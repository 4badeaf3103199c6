"""Q4_0 weights x Q8_0 activations.

Q4_0 block, 18 bytes: f16 d, 16 bytes of codes. Byte j holds code j low, code j + 16 high; value = d * (code - 8).
Q8_0 block, 34 bytes: f16 d, 32 int8.
"""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.parts import (
    AHEAD,
    four_16s,
    four_floats,
    four_halfs,
    hsum4,
    hsum8,
    prefetch_lines,
    sum_fours,
)
from minfer_lib.dot.parts_fours import (
    activations_of_four,
    activations_of_one,
    by_block,
    dot_nibbles,
    fold,
    heads,
    scales_by_block,
    times_sums,
)
from minfer_lib.dot.parts_tiles import put_32
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import (
    as_i8,
    as_u8,
    as_u16,
    concat,
    f16_to_f32,
    fmadd,
    load,
    load_f16,
    low_half,
    madd,
    maddubs,
    prefetch,
    sdot,
    sign,
    splat,
    to_f32,
)
from minfer_lib.simd.registers import f32x4, f32x8, i8x16, i8x32, i16x16, i32x4, i32x16, u8x16


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


_HEADS = heads(18, 0)


@inlined
def dot4_q4_0_avx512vnni(w, w_at, row_bytes, a, a_at, n_blocks):
    """Four rows, row_bytes apart from byte w_at on -> four float32.

    Sum of (code - 8) * a = sum of code * a, minus 8 * sum of a, which all rows share.
    A block's products are one integer, which one fused multiply-add a block adds times d_w * d_a. The tiles fold in the
    same order (`matmul/tiles.py`): a token has the same bits alone and among others.
    """
    ahead = w_at + 3 * row_bytes + AHEAD  # through the rows end to end; the fourth begins three rows on
    total = splat(f32x4, 0)
    fours = n_blocks // 4 * 4
    for b in range(0, fours, 4):
        prefetch_lines(w, ahead + 72 * b, 288)
        total = _four_blocks(total, w, w_at + 18 * b, row_bytes, a, a_at + 34 * b)
    for b in range(fours, n_blocks):
        prefetch_lines(w, ahead + 72 * b, 72)
        total = _block(total, w, w_at + 18 * b, row_bytes, a, a_at + 34 * b)
    return four_floats(total)


@inlined
def _four_blocks(total, w, wb, row_bytes, a, ab):
    """total: f32x4, a row each, + the four blocks from byte wb on of each row, the first by the one at byte ab of a."""
    low, high, d_a = activations_of_four(a, ab)
    start = splat(i32x16, 0) - times_sums(8, low, high)
    x0 = dot_nibbles(start, four_16s(w, wb + 2, 18), low, high)
    x1 = dot_nibbles(start, four_16s(w, wb + row_bytes + 2, 18), low, high)
    x2 = dot_nibbles(start, four_16s(w, wb + 2 * row_bytes + 2, 18), low, high)
    x3 = dot_nibbles(start, four_16s(w, wb + 3 * row_bytes + 2, 18), low, high)
    d = f16_to_f32(low_half(scales_by_block(w, wb, row_bytes, _HEADS))) * d_a
    return fold(total, d, to_f32(by_block(x0, x1, x2, x3)))


@inlined
def _block(total, w, wb, row_bytes, a, ab):
    """total: f32x4, a row each, + the block at byte wb of each row, by the one at byte ab of a."""
    low, high = activations_of_one(a, ab)
    start = splat(i32x16, 0) - times_sums(8, low, high)
    fours = dot_nibbles(start, four_16s(w, wb + 2, row_bytes), low, high)
    d = four_halfs(w, wb, row_bytes) * load_f16(a, ab)
    return fmadd(d, to_f32(sum_fours(fours)), total)


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
def unpack_q4_0(w, w_at, n_blocks, row, flip, out, scales):
    """The row at byte w_at as row `row` of 16. out, scales: see `parts_tiles.py`; scales is f32[n_blocks, 2, 16]."""
    for b in range(n_blocks):
        wb = w_at + 18 * b
        packed = load(u8x16, w, wb + 2)
        codes = concat(packed, as_u8(as_u16(packed) >> 4)) & 15
        put_32(out, b, row, as_i8(codes) - 8, flip)
        scales[b, 0, row] = load_f16(w, wb)


KERNELS = FormatKernels(
    "Q4_0",
    scalar=dot_q4_0_scalar,
    avx2=dot_q4_0_avx2,
    neon=dot_q4_0_neon,
    avx512vnni=dot4_q4_0_avx512vnni,
    unpack=unpack_q4_0,
)
