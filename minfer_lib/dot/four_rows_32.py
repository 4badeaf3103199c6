"""The AVX-512 dot of the formats with 32-value blocks: four rows at a time, written once.

A format gives its `products`, and `offset`, by how much its codes are too large in them: vpdpbusd takes unsigned ones.
The sum of (code - offset) * a is that of code * a, minus offset times the sum of a, which all rows share. Where m is
added to each weight, a block also adds m times the sum of a.

    products(start, w, wb, step, low, high)    start, i32x16, + the products of four blocks, four lanes each. The first
                                               block is at byte wb of w and the others follow `step` bytes apart; low,
                                               high: i8x64, their activations, codes 0 to 15 and codes 16 to 31 of each

These four are the same block of four rows, or four blocks of one row. By fours, what is not the product itself is done
for sixteen blocks at once: lane 4 k + r of i32x16 is block k of row r. They are still folded block after block, each by
one fused multiply-add (two with m), as the tiles fold them (`matmul/tiles.py`): a token has the same bits alone and
among others.
"""

import numpy as np
from numba.core.dispatcher import Dispatcher

from minfer_lib.dot.four_rows import composed_dot4, four_16s, four_floats, four_halfs
from minfer_lib.dot.prefetch_ahead import four_rows_ahead, prefetch_lines
from minfer_lib.formats.table import FORMATS
from minfer_lib.native.jit import composed, inlined
from minfer_lib.simd.ops import (
    add_pairs, as_i8, as_u8, as_u16, dpbusd, even_eights_first, f16_to_f32, fmadd, fourfold, high_half, load,
    load_f16, low_half, shuffle, splat, to_f32,
)  # fmt: skip
from minfer_lib.simd.registers import f32x4, i8x16, i32x16, u8x64
from minfer_lib.simd.sums import sum_fours, twice


def four_rows_by_fours(format_: str, products: Dispatcher, scales: Dispatcher, offset: int = 0) -> Dispatcher:
    """Return dot4(w, w_at, row_bytes, a, a_at, n_blocks) -> four float32, of rows that are row_bytes apart.

    products, offset: see above. scales(w, wb, row_bytes): u16x32, the d of four blocks of four rows, and m behind them,
    from `scales_by_block`.
    """
    size, has_min = FORMATS[format_].block_bytes, FORMATS[format_].has_min
    step, four_steps = 4 * size, 16 * size  # bytes of a block of four rows, and of four: known when it is compiled

    def dot4(w, w_at, row_bytes, a, a_at, n_blocks):
        ahead, total = four_rows_ahead(w_at, row_bytes), splat(f32x4, 0)
        fours = n_blocks // 4 * 4
        for b in range(0, fours, 4):
            prefetch_lines(w, ahead + step * b, four_steps)
            wb, ab = w_at + size * b, a_at + 34 * b
            total = _four_blocks(total, products, offset, scales, has_min, size, w, wb, row_bytes, a, ab)
        for b in range(fours, n_blocks):
            prefetch_lines(w, ahead + step * b, step)
            total = _block(total, products, offset, has_min, w, w_at + size * b, row_bytes, a, a_at + 34 * b)
        return four_floats(total)

    return composed_dot4(dot4, format_)


def four_rows_by_block(format_: str, products: Dispatcher, offset: int = 0) -> Dispatcher:
    """As four_rows_by_fours, for blocks whose scales are not worth gathering."""
    size, has_min = FORMATS[format_].block_bytes, FORMATS[format_].has_min
    step = 4 * size  # bytes of a block of four rows

    def dot4(w, w_at, row_bytes, a, a_at, n_blocks):
        ahead, total = four_rows_ahead(w_at, row_bytes), splat(f32x4, 0)
        for b in range(n_blocks):
            prefetch_lines(w, ahead + step * b, step)
            total = _block(total, products, offset, has_min, w, w_at + size * b, row_bytes, a, a_at + 34 * b)
        return four_floats(total)

    return composed_dot4(dot4, format_)


@composed
def _four_blocks(total, products, offset, scales, has_min, size, w, wb, row_bytes, a, ab):
    """total: f32x4, a row each, + the four blocks from byte wb on of each row, the first by the one at byte ab of a."""
    low, high, d_a = _activations_of_four(a, ab)
    start = splat(i32x16, 0) if has_min else splat(i32x16, 0) - times_sums(offset, low, high)
    x0 = products(start, w, wb, size, low, high)
    x1 = products(start, w, wb + row_bytes, size, low, high)
    x2 = products(start, w, wb + 2 * row_bytes, size, low, high)
    x3 = products(start, w, wb + 3 * row_bytes, size, low, high)
    d_m = scales(w, wb, row_bytes)
    d, isums = f16_to_f32(low_half(d_m)) * d_a, to_f32(_by_block(x0, x1, x2, x3))
    if not has_min:
        return _fold(total, d, isums)
    sums = times_sums(1, low, high)
    m, sums_a = f16_to_f32(high_half(d_m)), to_f32(_by_block(sums, sums, sums, sums)) * d_a
    return _fold_two(total, d, isums, m, sums_a)


@composed
def _block(total, products, offset, has_min, w, wb, row_bytes, a, ab):
    """total: f32x4, a row each, + the block at byte wb of each row, by the one at byte ab of a."""
    low, high = twice(twice(load(i8x16, a, ab + 2))), twice(twice(load(i8x16, a, ab + 18)))
    fours, d_a = products(splat(i32x16, 0), w, wb, row_bytes, low, high), load_f16(a, ab)
    isums = to_f32(sum_fours(fours if has_min else fours - times_sums(offset, low, high)))
    total = fmadd(four_halfs(w, wb, row_bytes) * d_a, isums, total)
    if not has_min:
        return total
    return fmadd(four_halfs(w, wb + 2, row_bytes), to_f32(sum_fours(times_sums(1, low, high))) * d_a, total)


# What formats make their products of


@inlined
def dot_nibbles(start, packed, low, high):
    """start, i32x16, + the products of four blocks: packed, u8x64, holds codes 0 to 15 low and codes 16 to 31 high."""
    return dpbusd(dpbusd(start, packed & 15, low), as_u8(as_u16(packed) >> 4) & 15, high)


@inlined
def times_sums(times, low, high):
    """i32x16, four lanes a block: so many times the sum of its activations."""
    many = splat(u8x64, times)
    return dpbusd(dpbusd(splat(i32x16, 0), many, low), many, high)


# Scales: the f16 fields of four blocks of four rows, from 64 bytes a row


def field_shuffles(block_bytes, *fields, start=0):
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
    """u16x32: the first of the fields that `index`, from `field_shuffles`, finds; in the second half the other.

    Lane 4 k + r is that of block k of row r. Reads 64 bytes from byte wb on of each row.
    """
    first = shuffle(load(u8x64, w, wb), load(u8x64, index, 0))
    second = shuffle(load(u8x64, w, wb + row_bytes), load(u8x64, index, 64))
    third = shuffle(load(u8x64, w, wb + 2 * row_bytes), load(u8x64, index, 128))
    fourth = shuffle(load(u8x64, w, wb + 3 * row_bytes), load(u8x64, index, 192))
    return as_u16(even_eights_first(first | second | third | fourth))


# Sixteen blocks at once


@inlined
def _activations_of_four(a, ab):
    """Four Q8_0 blocks from byte ab on: codes 0 to 15 of each and codes 16 to 31 of each, i8x64; d, f32x16."""
    low, high = as_i8(four_16s(a, ab + 2, 34)), as_i8(four_16s(a, ab + 18, 34))
    return low, high, fourfold(four_halfs(a, ab, 34))


@inlined
def _by_block(x0, x1, x2, x3):
    """Four rows' products, i32x16 each, four lanes a block -> i32x16: lane 4 k + r is the sum of block k of row r."""
    return add_pairs(add_pairs(x0, x1), add_pairs(x2, x3))


@inlined
def _quarters(v):
    """f32x16 -> four f32x4"""
    low, high = low_half(v), high_half(v)
    return low_half(low), high_half(low), low_half(high), high_half(high)


@inlined
def _fold(total, d, sums):
    """total: f32x4, a row each, + d * sums, f32x16 each, block after block by fused multiply-adds."""
    d, sums = _quarters(d), _quarters(sums)
    total = fmadd(d[0], sums[0], total)
    total = fmadd(d[1], sums[1], total)
    total = fmadd(d[2], sums[2], total)
    return fmadd(d[3], sums[3], total)


@inlined
def _fold_two(total, d, sums, m, others):
    """As fold, and of each block also m * others."""
    d, sums, m, others = _quarters(d), _quarters(sums), _quarters(m), _quarters(others)
    total = fmadd(m[0], others[0], fmadd(d[0], sums[0], total))
    total = fmadd(m[1], others[1], fmadd(d[1], sums[1], total))
    total = fmadd(m[2], others[2], fmadd(d[2], sums[2], total))
    return fmadd(m[3], others[3], fmadd(d[3], sums[3], total))
