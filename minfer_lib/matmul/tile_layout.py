"""How 16 rows of weights lie when they are unpacked for many tokens, and the loops that put them there.

Each block becomes a tile, 16 rows of int8 codes with their sign:

    32-value formats    one tile of 32 bytes a row; two floats a row: d, and m where the format has one
    K-quants            eight tiles of 64 bytes a row; two floats a row: d, and dmin where the format has one

A K-quant's codes come multiplied with their integer scale. The product has up to 13 bits, so it is two digits,
high * 64 + low, with four tiles each. Then one sum over the super-block is the exact integer of the dot product.

A format's row in `dot/` gives what is in a block; the loop over blocks is here, once for each of the two families.
"""

from functools import cache

import numpy as np
from numba.core.dispatcher import Dispatcher

from minfer_lib.dot.registry import KERNELS
from minfer_lib.formats.table import FORMATS
from minfer_lib.native.jit import composed, inlined
from minfer_lib.simd.ops import as_i16, as_u8, concat, lane, load_f16, narrow, splat, store, widen
from minfer_lib.simd.registers import i16x16

ROWS = 16  # of a tile
TILE_32 = 512  # bytes: 16 rows of 32
TILE_64 = 1024
DIGIT = 4 * TILE_64  # where the low digits are, behind the high ones
MINS = 2 * DIGIT  # and behind both, for each row 16 int16: the min of each 16 codes
SUPER = MINS + ROWS * 32  # bytes of a super-block of 16 rows
UNSIGNED = 128  # codes ^ UNSIGNED are codes + 128, unsigned: what vpdpbusd takes


@cache
def unpacker(format_: str) -> Dispatcher:
    """Return what unpacks a row of `format_`, compiled: unpack(w, w_at, n_blocks, row, flip, out, scales).

    The row of blocks at byte w_at of w becomes row `row` of 16. flip: 0, or UNSIGNED. out: uint8[:], the tiles; scales:
    f32[n_blocks, 2, 16], d, and m or dmin where the format has one.
    """
    row, kernels = FORMATS[format_], KERNELS[format_]
    size, d_at, has_min = row.block_bytes, row.offset("d"), row.has_min
    codes, scales_of, mins_of = kernels.codes, kernels.scales, kernels.mins

    def blocks_of_32(w, w_at, n_blocks, row, flip, out, scales):
        for b in range(n_blocks):
            wb = w_at + size * b
            store(out, TILE_32 * b + 32 * row, as_u8(codes(w, wb)) ^ flip)
            _put_floats(w, wb + d_at, has_min, b, row, scales)

    def super_blocks(w, w_at, n_blocks, row, flip, out, scales):
        for b in range(n_blocks):
            wb = w_at + size * b
            if has_min:
                store(out, SUPER * b + MINS + 32 * row, mins_of(w, wb))
            each_16 = scales_of(w, wb)
            for k in range(8):
                products = _scaled(codes(w, wb, k), lane(each_16, 2 * k), lane(each_16, 2 * k + 1))
                _put_digits(products, b, row, k, flip, out)
            _put_floats(w, wb + d_at, has_min, b, row, scales)

    return composed(blocks_of_32 if row.block_values == 32 else super_blocks)


@inlined
def _put_digits(products, b, row, k, flip, out):
    """products: i16x32, scale * code of codes 32 k to 32 k + 31 of super-block b, as two digits to their tiles."""
    at = SUPER * b + TILE_64 * (k // 2) + 64 * row + 32 * (k % 2)
    store(out, at, as_u8(narrow(products >> 6)) ^ flip)
    store(out, at + DIGIT, as_u8(narrow(products & 63)) ^ flip)


@inlined
def _put_floats(w, at, has_min, b, row, scales):
    """d of block b, at byte `at`; where the format has one, also m or dmin, which is two bytes on."""
    scales[b, 0, row] = load_f16(w, at)
    if has_min:
        scales[b, 1, row] = load_f16(w, at + 2)


@inlined
def _scaled(codes, first, second):
    """codes: u8x32 or i8x32 -> i16x32: the first 16 times one scale, the others times another."""
    scales = concat(splat(i16x16, np.int16(first)), splat(i16x16, np.int16(second)))
    return as_i16(widen(codes)) * scales
