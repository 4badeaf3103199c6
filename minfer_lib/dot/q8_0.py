"""Q8_0 weights x Q8_0 activations. Block, 34 bytes: f16 d, 32 int8; value = d * code."""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.four_rows import four_16s
from minfer_lib.dot.four_rows_32 import four_rows_by_block
from minfer_lib.dot.prefetch_ahead import AHEAD
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import as_u8, dpbusd, fmadd, load, load_f16, madd, maddubs, prefetch, sdot, sign, splat, to_f32
from minfer_lib.simd.registers import f32x4, f32x8, i8x16, i8x32, i16x16, i32x4
from minfer_lib.simd.sums import hsum4, hsum8


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
def _products(start, w, wb, step, low, high):
    """See `four_rows_32.py`. dpbusd takes unsigned weights: w + 128 is w with its top bit flipped."""
    products = dpbusd(start, four_16s(w, wb + 2, step) ^ 128, low)
    return dpbusd(products, four_16s(w, wb + 18, step) ^ 128, high)


dot4_q8_0_avx512vnni = four_rows_by_block("Q8_0", _products, offset=128)


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
def _codes(w, wb):
    """i8x32: the codes of the block at byte wb."""
    return load(i8x32, w, wb + 2)


KERNELS = FormatKernels(
    "Q8_0",
    scalar=dot_q8_0_scalar,
    avx2=dot_q8_0_avx2,
    neon=dot_q8_0_neon,
    avx512vnni=dot4_q8_0_avx512vnni,
    codes=_codes,
)
