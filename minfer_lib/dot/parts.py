"""What the kernels of several formats share: how far to prefetch, horizontal sums, and four rows at a time."""

import numpy as np

from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import (
    add_pair,
    add_pairs,
    byte_mask,
    concat,
    dpbusd,
    f16_to_f32,
    four,
    fourths,
    high_half,
    lane,
    load,
    load_u16,
    low_half,
    prefetch,
    splat,
)
from minfer_lib.simd.registers import i32x16, u8x16

# Bytes from the block that is computed to the one that is asked for: more than the memory delivers while one request is
# under way. 8 to 16 KB were best where it was measured, 2 KB too late; `minfer bench --kernels` measures again.
AHEAD = 8192


@inlined
def prefetch_lines(w, at, n_bytes):
    """Ask for the cache lines that n_bytes bytes from byte `at` on begin in."""
    for line in range(0, n_bytes, 64):
        prefetch(w, at + line)


@inlined
def hsum4(v):
    """f32x4 -> float32: (0 + 2) + (1 + 3), where numbers stand for lanes."""
    return add_pair(low_half(v) + high_half(v))


@inlined
def hsum8(v):
    """f32x8 -> float32: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). Seed 1 §3.2, hsum_float_8."""
    return hsum4(low_half(v) + high_half(v))


@inlined
def twice(v):
    """A register of twice the size with v in both halves."""
    return concat(v, v)


# AVX-512: four rows at a time, row_bytes apart. A register of 512 bits holds 16 bytes of each.


@inlined
def four_16s(w, at, row_bytes):
    """u8x64: 16 bytes from byte `at` on, and the same of the next three rows."""
    first, second = load(u8x16, w, at), load(u8x16, w, at + row_bytes)
    third, fourth = load(u8x16, w, at + 2 * row_bytes), load(u8x16, w, at + 3 * row_bytes)
    return concat(concat(first, second), concat(third, fourth))


@inlined
def four_bits(w, at, row_bytes):
    """u8x64: 16 bits from byte `at` on, and the same of the next three rows; 255 where a bit is set, else 0."""
    low = np.uint64(load_u16(w, at)) | np.uint64(load_u16(w, at + row_bytes)) << np.uint64(16)
    high = np.uint64(load_u16(w, at + 2 * row_bytes)) | np.uint64(load_u16(w, at + 3 * row_bytes)) << np.uint64(16)
    return byte_mask(low | high << np.uint64(32))


@inlined
def four_halfs(w, at, row_bytes):
    """f32x4: the f16 at byte `at` of four rows."""
    h0, h1 = load_u16(w, at), load_u16(w, at + row_bytes)
    h2, h3 = load_u16(w, at + 2 * row_bytes), load_u16(w, at + 3 * row_bytes)
    return f16_to_f32(four(h0, h1, h2, h3))


@inlined
def dot_fours(low, high, qa_low, qa_high):
    """u8x64 with bytes 0 to 15, and with bytes 16 to 31, of four rows; their activations, i8x16 each -> i32x16.

    Four lanes a row add up to its 32 products.
    """
    fours = dpbusd(splat(i32x16, 0), low, twice(twice(qa_low)))
    return dpbusd(fours, high, twice(twice(qa_high)))


@inlined
def sum_fours(v):
    """i32x16 -> i32x4: lanes 0 to 3 added up, 4 to 7, 8 to 11, 12 to 15."""
    return fourths(_sum_four(v))


@inlined
def _sum_four(v):
    """Within each 128 bits: the sum of the four lanes, in all of them."""
    pairs = add_pairs(v, v)
    return add_pairs(pairs, pairs)


@inlined
def four_floats(v):
    """The lanes of f32x4, as a tuple."""
    return lane(v, 0), lane(v, 1), lane(v, 2), lane(v, 3)
