"""Q8_0 weights x Q8_0 activations. Block, 34 bytes: f16 d, 32 int8; value = d * code."""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.parts import AHEAD, dot_fours, four_16s, four_floats, four_halfs, hsum4, hsum8, sum_fours
from minfer_lib.dot.parts_tiles import put_32
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import as_u8, fmadd, load, load_f16, madd, maddubs, prefetch, sdot, sign, splat, to_f32
from minfer_lib.simd.registers import f32x4, f32x8, i8x16, i8x32, i16x16, i32x4, u8x64


@inlined
def dot_q8_0_scalar(w, w_at, a, a_at, n_blocks):
    """w, a: uint8 arrays with n_blocks blocks from byte w_at, a_at on -> float32. Seed 1 §3.2."""
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 34 * b
        ab = a_at + 34 * b
        isum = np.int32(0)  # exact: at most 32 * 128 * 127
        for j in range(2, 34):
            isum = np.int32(isum + np.int32(np.int8(w[wb + j])) * np.int32(np.int8(a[ab + j])))
        total += np.float32(isum) * load_f16(w, wb) * load_f16(a, ab)
    return total


@inlined
def dot_q8_0_avx2(w, w_at, a, a_at, n_blocks):
    """As dot_q8_0_scalar, 32 products at a time, in the order of dot_q4_0_avx2. Seed 1 §3.2, dot_q8_0_q8_0_avx2.

    A weight of -128 stays as it is when its sign is taken away, and read as unsigned it is 128: right.
    """
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        wb = w_at + 34 * b
        ab = a_at + 34 * b
        prefetch(w, wb + AHEAD)
        d = load_f16(w, wb) * load_f16(a, ab)
        qw = load(i8x32, w, wb + 2)
        qa = load(i8x32, a, ab + 2)
        magnitudes = as_u8(sign(qw, qw))
        signed = sign(qa, qw)
        pairs = maddubs(magnitudes, signed)  # exact: at most 2 * 128 * 127, just below 2**15
        fours = madd(pairs, splat(i16x16, 1))
        acc = fmadd(splat(f32x8, d), to_f32(fours), acc)
    return hsum8(acc)


@inlined
def dot4_q8_0_avx512vnni(w, w_at, row_bytes, a, a_at, n_blocks):
    """Four rows, row_bytes apart from byte w_at on -> four float32.

    dpbusd takes unsigned weights: w + 128, which is w with its top bit flipped, and the sum of w * a = the sum of
    (w + 128) * a, minus 128 * sum of a, which all rows share. In dot4_q4_0_avx512vnni's order.
    """
    ahead = w_at + 3 * row_bytes + AHEAD  # through the rows end to end; the fourth begins three rows on
    total = splat(f32x4, 0)
    for b in range(n_blocks):
        wb = w_at + 34 * b
        ab = a_at + 34 * b
        prefetch(w, ahead + 136 * b)
        prefetch(w, ahead + 136 * b + 64)
        prefetch(w, ahead + 136 * b + 128)
        qa_low, qa_high = load(i8x16, a, ab + 2), load(i8x16, a, ab + 18)
        low, high = four_16s(w, wb + 2, row_bytes) ^ 128, four_16s(w, wb + 18, row_bytes) ^ 128
        offsets = splat(u8x64, 128)
        fours = dot_fours(low, high, qa_low, qa_high) - dot_fours(offsets, offsets, qa_low, qa_high)
        d = four_halfs(w, wb, row_bytes) * load_f16(a, ab)
        total = fmadd(d, to_f32(sum_fours(fours)), total)
    return four_floats(total)


@inlined
def dot_q8_0_neon(w, w_at, a, a_at, n_blocks):
    """As dot_q8_0_scalar, 16 products at a time, in the order of dot_q4_0_neon."""
    acc = splat(f32x4, 0)
    for b in range(n_blocks):
        wb = w_at + 34 * b
        ab = a_at + 34 * b
        prefetch(w, wb + AHEAD)
        d = load_f16(w, wb) * load_f16(a, ab)
        fours = sdot(splat(i32x4, 0), load(i8x16, w, wb + 2), load(i8x16, a, ab + 2))
        fours = sdot(fours, load(i8x16, w, wb + 18), load(i8x16, a, ab + 18))
        acc = fmadd(splat(f32x4, d), to_f32(fours), acc)
    return hsum4(acc)


@inlined
def unpack_q8_0(w, w_at, n_blocks, row, flip, out, scales):
    """As unpack_q4_0."""
    for b in range(n_blocks):
        wb = w_at + 34 * b
        put_32(out, b, row, load(i8x32, w, wb + 2), flip)
        scales[b, 0, row] = load_f16(w, wb)


KERNELS = FormatKernels(
    "Q8_0",
    scalar=dot_q8_0_scalar,
    avx2=dot_q8_0_avx2,
    neon=dot_q8_0_neon,
    avx512vnni=dot4_q8_0_avx512vnni,
    unpack=unpack_q8_0,
)
