"""How 16 rows of weights lie when they are unpacked for many tokens, and what the formats share in unpacking them.

Each block becomes a tile, 16 rows of int8 codes with their sign:

    32-value formats    one tile of 32 bytes a row; two floats a row: d, and m where the format has one
    K-quants            eight tiles of 64 bytes a row; two floats a row: d, and dmin where the format has one

A K-quant's codes come multiplied with their integer scale. The product has up to 13 bits, so it is two digits,
high * 64 + low, with four tiles each. Then one sum over the super-block is the exact integer of the dot product.
"""

import numpy as np

from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import as_i16, as_u8, concat, narrow, splat, store, widen
from minfer_lib.simd.registers import i16x16

ROWS = 16  # of a tile
TILE_32 = 512  # bytes: 16 rows of 32
TILE_64 = 1024
DIGIT = 4 * TILE_64  # where the low digits are, behind the high ones
MINS = 2 * DIGIT  # and behind both, for each row 16 int16: the min of each 16 codes
SUPER = MINS + ROWS * 32  # bytes of a super-block of 16 rows
UNSIGNED = 128  # codes ^ UNSIGNED are codes + 128, unsigned: what vpdpbusd takes


@inlined
def put_32(out, b, row, codes, flip):
    """codes: i8x32, of block b of this row, to its tile. flip: 0, or UNSIGNED."""
    store(out, TILE_32 * b + 32 * row, as_u8(codes) ^ flip)


@inlined
def put_digits(out, b, row, k, products, flip):
    """products: i16x32, scale * code of codes 32 k to 32 k + 31 of super-block b, as two digits to their tiles."""
    at = SUPER * b + TILE_64 * (k // 2) + 64 * row + 32 * (k % 2)
    store(out, at, as_u8(narrow(products >> 6)) ^ flip)
    store(out, at + DIGIT, as_u8(narrow(products & 63)) ^ flip)


@inlined
def put_mins(out, b, row, mins):
    """mins: i16x16, of each 16 codes."""
    store(out, SUPER * b + MINS + 32 * row, mins)


@inlined
def scaled(codes, first, second):
    """codes: u8x32 or i8x32 -> i16x32: the first 16 times one scale, the others times another."""
    scales = concat(splat(i16x16, np.int16(first)), splat(i16x16, np.int16(second)))
    return as_i16(widen(codes)) * scales
