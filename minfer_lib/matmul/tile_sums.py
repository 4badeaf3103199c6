"""The products of 16 rows of weights and 16 tokens, as exact integers: int32[16, 16], from AMX or from vpdpbusd.

codes: 16 rows as `tile_layout.py` lays them out, with their sign for AMX and + 128 for vpdpbusd, whose first side
is unsigned. panel: 16 tokens as `panels.py` does. Both: uint8[:]. sums: uint8[:], rows of 64 bytes.
"""

from minfer_lib.matmul.panels import BLOCK_32, BLOCK_256, OFFSETS_32, OFFSETS_256
from minfer_lib.matmul.tile_layout import DIGIT, SUPER, TILE_32, TILE_64
from minfer_lib.native.jit import inlined
from minfer_lib.simd.amx import (
    shapes,
    tile_dot,
    tile_load,
    tile_store,
    tile_zero,
    tmm0,
    tmm1,
    tmm2,
    tmm3,
    tmm4,
    tmm5,
    tmm6,
    tmm7,
)
from minfer_lib.simd.ops import as_u8, dpbusd, load, load_u32, splat, store
from minfer_lib.simd.registers import i8x64, i32x16, u32x16

# tmm0 to tmm3 are sums, tmm4 and tmm6 have 16 rows of codes, tmm5 and tmm7 what these meet, of 16 tokens.
_SUMS = [(16, 64)] * 4
SHAPES_32 = shapes(*_SUMS, (16, 32), (8, 64), (16, 32), (8, 64))
SHAPES_256 = shapes(*_SUMS, (16, 64), (16, 64), (16, 64), (16, 64))


@inlined
def sums_32_amx(codes, panel, b, sums):
    """Block b: 32 products each -> sums. 8,192 products in one instruction."""
    tile_zero(tmm0)
    tile_load(tmm4, codes, TILE_32 * b, 32)
    tile_load(tmm5, panel, BLOCK_32 * b, 64)
    tile_dot(tmm0, tmm4, tmm5)
    tile_store(sums, 0, 64, tmm0)


@inlined
def four_sums_32_amx(codes, panel, b, sums, at):
    """Blocks b to b + 3 -> sums, one after the other: four tiles, so that none waits for another."""
    tile_zero(tmm0)
    tile_load(tmm4, codes, TILE_32 * b, 32)
    tile_load(tmm5, panel, BLOCK_32 * b, 64)
    tile_dot(tmm0, tmm4, tmm5)
    tile_zero(tmm1)
    tile_load(tmm6, codes, TILE_32 * (b + 1), 32)
    tile_load(tmm7, panel, BLOCK_32 * (b + 1), 64)
    tile_dot(tmm1, tmm6, tmm7)
    tile_zero(tmm2)
    tile_load(tmm4, codes, TILE_32 * (b + 2), 32)
    tile_load(tmm5, panel, BLOCK_32 * (b + 2), 64)
    tile_dot(tmm2, tmm4, tmm5)
    tile_zero(tmm3)
    tile_load(tmm6, codes, TILE_32 * (b + 3), 32)
    tile_load(tmm7, panel, BLOCK_32 * (b + 3), 64)
    tile_dot(tmm3, tmm6, tmm7)
    tile_store(sums, at, 64, tmm0)
    tile_store(sums, at + TILE_64, 64, tmm1)
    tile_store(sums, at + 2 * TILE_64, 64, tmm2)
    tile_store(sums, at + 3 * TILE_64, 64, tmm3)


@inlined
def sums_256_amx(codes, panel, b, sums):
    """Super-block b: the sums of its 256 high digits, then those of its low digits."""
    tile_zero(tmm0)
    tile_zero(tmm1)
    for c in range(4):  # 64 codes each
        at = SUPER * b + TILE_64 * c
        tile_load(tmm5, panel, BLOCK_256 * b + TILE_64 * c, 64)
        tile_load(tmm4, codes, at, 64)
        tile_load(tmm6, codes, at + DIGIT, 64)
        tile_dot(tmm0, tmm4, tmm5)
        tile_dot(tmm1, tmm6, tmm5)
    tile_store(sums, 0, 64, tmm0)
    tile_store(sums, TILE_64, 64, tmm1)


@inlined
def sums_32_avx512vnni(codes, panel, b, sums):
    """As sums_32_amx, four rows at a time."""
    offsets = load(i32x16, panel, BLOCK_32 * b + OFFSETS_32)
    for row in range(0, 16, 4):
        at = TILE_32 * b + 32 * row
        x0, x1, x2, x3 = _four_rows(offsets, offsets, offsets, offsets, codes, at, 32, panel, BLOCK_32 * b, 8)
        _store_four(sums, 64 * row, x0, x1, x2, x3)


@inlined
def sums_256_avx512vnni(codes, panel, b, sums):
    """As sums_256_amx, four rows at a time."""
    offsets = load(i32x16, panel, BLOCK_256 * b + OFFSETS_256)
    for digit in range(2):
        for row in range(0, 16, 4):
            x0, x1, x2, x3 = offsets, offsets, offsets, offsets
            for c in range(4):
                at = SUPER * b + DIGIT * digit + TILE_64 * c + 64 * row
                x0, x1, x2, x3 = _four_rows(x0, x1, x2, x3, codes, at, 64, panel, BLOCK_256 * b + TILE_64 * c, 16)
            _store_four(sums, TILE_64 * digit + 64 * row, x0, x1, x2, x3)


@inlined
def _four_rows(x0, x1, x2, x3, codes, at, row_bytes, panel, p_at, groups):
    """i32x16 each, a lane a token: + the products of so many groups of four codes, of four rows."""
    for g in range(groups):
        met = load(i8x64, panel, p_at + 64 * g)
        x0 = dpbusd(x0, _four_codes(codes, at + 4 * g), met)
        x1 = dpbusd(x1, _four_codes(codes, at + 4 * g + row_bytes), met)
        x2 = dpbusd(x2, _four_codes(codes, at + 4 * g + 2 * row_bytes), met)
        x3 = dpbusd(x3, _four_codes(codes, at + 4 * g + 3 * row_bytes), met)
    return x0, x1, x2, x3


@inlined
def _four_codes(codes, at):
    """u8x64: the same four codes for every token."""
    return as_u8(splat(u32x16, load_u32(codes, at)))


@inlined
def _store_four(sums, at, x0, x1, x2, x3):
    store(sums, at, x0)
    store(sums, at + 64, x1)
    store(sums, at + 128, x2)
    store(sums, at + 192, x3)
