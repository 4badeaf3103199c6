"""AVX-512: four blocks of four rows at a time, for formats with 4-bit and 5-bit codes.

    codes     a register a row: the 16 bytes of each of its four blocks
    products  i32x16 a row: four lanes a block
    sums      i32x16: lane 4 k + r is block k of row r, all its products; the scales, f32x16, likewise

What is not the product itself is so done for sixteen blocks at once. They are still folded block after block.
"""

import numpy as np

from minfer_lib.dot.parts import four_16s, four_halfs, twice
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import (
    add_pairs,
    as_i8,
    as_u8,
    as_u16,
    dpbusd,
    even_eights_first,
    fmadd,
    fourfold,
    high_half,
    load,
    low_half,
    shuffle,
    splat,
)
from minfer_lib.simd.registers import i8x16, i32x16, u8x64


@inlined
def activations_of_four(a, ab):
    """Four Q8_0 blocks from byte ab on: codes 0 to 15 of each and codes 16 to 31 of each, i8x64; d, f32x16."""
    low, high = as_i8(four_16s(a, ab + 2, 34)), as_i8(four_16s(a, ab + 18, 34))
    return low, high, fourfold(four_halfs(a, ab, 34))


@inlined
def activations_of_one(a, ab):
    """The Q8_0 block at byte ab, as for four blocks that are all multiplied by it: codes 0 to 15, codes 16 to 31."""
    return twice(twice(load(i8x16, a, ab + 2))), twice(twice(load(i8x16, a, ab + 18)))


@inlined
def times_sums(times, low, high):
    """i32x16, four lanes a block: so many times the sum of its activations."""
    many = splat(u8x64, times)
    return dpbusd(dpbusd(splat(i32x16, 0), many, low), many, high)


@inlined
def dot_nibbles(start, packed, low, high):
    """start, i32x16, + the products of four blocks: packed, u8x64, holds codes 0 to 15 low and codes 16 to 31 high."""
    return dpbusd(dpbusd(start, packed & 15, low), as_u8(as_u16(packed) >> 4) & 15, high)


@inlined
def by_block(x0, x1, x2, x3):
    """Four rows' products, i32x16 each, four lanes a block -> i32x16: lane 4 k + r is the sum of block k of row r."""
    return add_pairs(add_pairs(x0, x1), add_pairs(x2, x3))


def heads(block_bytes, *fields, start=0):
    """How `scales_by_block` finds the f16 at these bytes of a block, when it reads from byte `start` of the first on.

    For each row 64 bytes for `shuffle`. It finds that of block k only in the k-th sixteen bytes; of others it makes 0.
    """
    index = np.full((4, 4, 16), 128, np.uint8)  # row, block, byte; 128: zero
    for k in range(4):
        for number, field in enumerate(fields):
            at = k * (block_bytes - 16) + field - start
            if 0 <= at <= 14:
                for row in range(4):
                    index[row, k, 8 * number + 2 * row : 8 * number + 2 * row + 2] = at, at + 1
    return index.reshape(-1)


@inlined
def scales_by_block(w, wb, row_bytes, index):
    """u16x32: the first of the fields of `heads`, lane 4 k + r that of block k of row r; in the second half the other.

    Reads 64 bytes from byte wb on of each row.
    """
    first = shuffle(load(u8x64, w, wb), load(u8x64, index, 0))
    second = shuffle(load(u8x64, w, wb + row_bytes), load(u8x64, index, 64))
    third = shuffle(load(u8x64, w, wb + 2 * row_bytes), load(u8x64, index, 128))
    fourth = shuffle(load(u8x64, w, wb + 3 * row_bytes), load(u8x64, index, 192))
    return as_u16(even_eights_first(first | second | third | fourth))


@inlined
def quarters(v):
    """f32x16 -> four f32x4"""
    low, high = low_half(v), high_half(v)
    return low_half(low), high_half(low), low_half(high), high_half(high)


@inlined
def fold(total, d, sums):
    """total: f32x4, a row each, + d * sums, f32x16 each, block after block by fused multiply-adds."""
    d, sums = quarters(d), quarters(sums)
    total = fmadd(d[0], sums[0], total)
    total = fmadd(d[1], sums[1], total)
    total = fmadd(d[2], sums[2], total)
    return fmadd(d[3], sums[3], total)


@inlined
def fold_two(total, d, sums, m, others):
    """As fold, and of each block also m * others."""
    d, sums, m, others = quarters(d), quarters(sums), quarters(m), quarters(others)
    total = fmadd(m[0], others[0], fmadd(d[0], sums[0], total))
    total = fmadd(m[1], others[1], fmadd(d[1], sums[1], total))
    total = fmadd(m[2], others[2], fmadd(d[2], sums[2], total))
    return fmadd(m[3], others[3], fmadd(d[3], sums[3], total))
