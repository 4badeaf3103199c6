"""Q4_1 weights x Q8_0 activations.

Q4_1 block, 20 bytes: f16 d, f16 m, 16 bytes of codes laid out as in Q4_0; value = d * code + m.
So a block adds d_a * (d_w * sum(code * a) + m * sum(a)). ggml reads the second sum
from a Q8_1 block; here it is counted.
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
    fold_two,
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
    high_half,
    load,
    load_f16,
    low_half,
    madd,
    maddubs,
    prefetch,
    sdot,
    splat,
    to_f32,
)
from minfer_lib.simd.registers import f32x4, f32x8, i8x16, i8x32, i16x16, i32x4, i32x16, u8x16, u8x32


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


_HEADS = heads(20, 0, 2)


@inlined
def dot4_q4_1_avx512vnni(w, w_at, row_bytes, a, a_at, n_blocks):
    """Four rows, row_bytes apart from byte w_at on -> four float32.

    A block's products are one integer, and so is the sum of its activations, which all rows share. Two fused
    multiply-adds a block: d_w * d_a times the first, then m times (d_a times the second). The order of the tiles too.
    """
    ahead = w_at + 3 * row_bytes + AHEAD  # through the rows end to end; the fourth begins three rows on
    total = splat(f32x4, 0)
    fours = n_blocks // 4 * 4
    for b in range(0, fours, 4):
        prefetch_lines(w, ahead + 80 * b, 320)
        total = _four_blocks(total, w, w_at + 20 * b, row_bytes, a, a_at + 34 * b)
    for b in range(fours, n_blocks):
        prefetch_lines(w, ahead + 80 * b, 80)
        total = _block(total, w, w_at + 20 * b, row_bytes, a, a_at + 34 * b)
    return four_floats(total)


@inlined
def _four_blocks(total, w, wb, row_bytes, a, ab):
    """total: f32x4, a row each, + the four blocks from byte wb on of each row, the first by the one at byte ab of a."""
    low, high, d_a = activations_of_four(a, ab)
    zero = splat(i32x16, 0)
    x0 = dot_nibbles(zero, four_16s(w, wb + 4, 20), low, high)
    x1 = dot_nibbles(zero, four_16s(w, wb + row_bytes + 4, 20), low, high)
    x2 = dot_nibbles(zero, four_16s(w, wb + 2 * row_bytes + 4, 20), low, high)
    x3 = dot_nibbles(zero, four_16s(w, wb + 3 * row_bytes + 4, 20), low, high)
    sums = times_sums(1, low, high)
    scales = scales_by_block(w, wb, row_bytes, _HEADS)
    d, m = f16_to_f32(low_half(scales)) * d_a, f16_to_f32(high_half(scales))
    return fold_two(total, d, to_f32(by_block(x0, x1, x2, x3)), m, to_f32(by_block(sums, sums, sums, sums)) * d_a)


@inlined
def _block(total, w, wb, row_bytes, a, ab):
    """total: f32x4, a row each, + the block at byte wb of each row, by the one at byte ab of a."""
    low, high = activations_of_one(a, ab)
    fours = dot_nibbles(splat(i32x16, 0), four_16s(w, wb + 4, row_bytes), low, high)
    d_a = load_f16(a, ab)
    total = fmadd(four_halfs(w, wb, row_bytes) * d_a, to_f32(sum_fours(fours)), total)
    return fmadd(four_halfs(w, wb + 2, row_bytes), to_f32(sum_fours(times_sums(1, low, high))) * d_a, total)


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
def unpack_q4_1(w, w_at, n_blocks, row, flip, out, scales):
    """As unpack_q4_0."""
    for b in range(n_blocks):
        wb = w_at + 20 * b
        packed = load(u8x16, w, wb + 4)
        put_32(out, b, row, as_i8(concat(packed, as_u8(as_u16(packed) >> 4)) & 15), flip)
        scales[b, 0, row], scales[b, 1, row] = load_f16(w, wb), load_f16(w, wb + 2)


KERNELS = FormatKernels(
    "Q4_1",
    scalar=dot_q4_1_scalar,
    avx2=dot_q4_1_avx2,
    neon=dot_q4_1_neon,
    avx512vnni=dot4_q4_1_avx512vnni,
    unpack=unpack_q4_1,
)
