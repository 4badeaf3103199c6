"""Tile registers, Intel AMX: eight, `tmm0` to `tmm7`, of at most 16 rows of 64 bytes. One instruction multiplies two.

They are named, not passed on: `tile_dot(tmm0, tmm1, tmm2)` adds to tmm0 the product of tmm1 and tmm2. The shapes of all
eight are set at once, by `tile_shapes`, before any of them is used. `isa.has_amx` says whether they may be.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.core.typing.templates import signature
from numba.extending import register_model, typeof_impl

from minfer_lib.simd.instruction import call_llvm, instruction, wide
from minfer_lib.simd.memory import address_of, is_bytes

_I8, _I64, _VOID = ir.IntType(8), ir.IntType(64), ir.VoidType()


class Tile:
    """A tile register. `bytes`: what it holds where a kernel is stepped, uint8[rows, row_bytes]."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.bytes = np.zeros((0, 0), np.uint8)

    def fill(self, values: np.ndarray) -> np.ndarray:
        """Hold these values, of any dtype -> a copy that stays as it is."""
        self.bytes = np.ascontiguousarray(values).view(np.uint8)
        return self.bytes.view(values.dtype).copy()


class TileName(types.Opaque):
    """What `tmm0` is inside a kernel: no value at run time, all of it in the type."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(name=f"tmm{number}")


register_model(TileName)(models.OpaqueModel)


@typeof_impl.register(Tile)
def _typeof_tile(tile, context):
    return TileName(tile.number)


TILES = tmm0, tmm1, tmm2, tmm3, tmm4, tmm5, tmm6, tmm7 = tuple(Tile(number) for number in range(8))


def shapes(*of_tiles: tuple[int, int]) -> np.ndarray:
    """uint8[64], what `tile_shapes` reads, from (rows, bytes a row) of tmm0, tmm1 …"""
    config = np.zeros(64, np.uint8)
    config[0] = 1  # the palette: eight tiles of 1 KB
    rows, row_bytes = zip(*of_tiles, strict=True)
    config[16 : 16 + 2 * len(of_tiles)].view(np.uint16)[:] = row_bytes
    config[48 : 48 + len(of_tiles)] = rows
    return config


def _shapes_types(raw, at):
    return signature(types.none, raw, types.int64) if is_bytes(raw) else None


def _shapes(context, builder, sig, raw, at):
    call_llvm(builder, "llvm.x86.ldtilecfg", _VOID, address_of(context, builder, sig.args[0], raw, at, _I8))
    return context.get_dummy_value()


@instruction(_shapes_types, _shapes, x86="ldtilecfg", arm="")
def tile_shapes(raw, at):
    """Set rows and bytes a row of every tile from the 64 bytes at byte `at`, see `shapes`; all tiles become zero."""
    config = raw[at : at + 64]
    for tile in TILES:
        row_bytes = config[16 + 2 * tile.number : 18 + 2 * tile.number].copy().view(np.uint16)[0]
        tile.fill(np.zeros((config[48 + tile.number], row_bytes), np.uint8))


def _release(context, builder, sig):
    call_llvm(builder, "llvm.x86.tilerelease", _VOID)
    return context.get_dummy_value()


@instruction(lambda: signature(types.none), _release, x86="tilerelease", arm="")
def tile_release():
    """Done with the tiles: the system need not keep them when it changes threads."""
    for tile in TILES:
        tile.fill(np.zeros((0, 0), np.uint8))


def _zero(context, builder, sig, tile):
    call_llvm(builder, "llvm.x86.tilezero", _VOID, ir.Constant(_I8, sig.args[0].number))
    return tile


@instruction(lambda tile: signature(tile, tile) if isinstance(tile, TileName) else None, _zero, x86="tilezero", arm="")
def tile_zero(tile):
    """Every byte 0."""
    return tile.fill(np.zeros_like(tile.bytes))


def _load_types(tile, raw, at, stride):
    fits = isinstance(tile, TileName) and is_bytes(raw)
    return signature(tile, tile, raw, types.int64, types.int64) if fits else None


def _load(context, builder, sig, tile, raw, at, stride):
    address = address_of(context, builder, sig.args[1], raw, at, _I8)
    call_llvm(builder, "llvm.x86.tileloadd64", _VOID, ir.Constant(_I8, sig.args[0].number), address, stride)
    return tile


@instruction(_load_types, _load, x86="tileloadd", arm="")
def tile_load(tile, raw, at, stride):
    """Its rows from byte `at` of `raw` on, `stride` bytes apart."""
    rows, row_bytes = tile.bytes.shape
    return tile.fill(raw[at + stride * np.arange(rows)[:, None] + np.arange(row_bytes)])


def _store_types(raw, at, stride, tile):
    fits = isinstance(tile, TileName) and is_bytes(raw) and raw.mutable
    return signature(types.none, raw, types.int64, types.int64, tile) if fits else None


def _store(context, builder, sig, raw, at, stride, tile):
    address = address_of(context, builder, sig.args[0], raw, at, _I8)
    call_llvm(builder, "llvm.x86.tilestored64", _VOID, ir.Constant(_I8, sig.args[3].number), address, stride)
    return context.get_dummy_value()


@instruction(_store_types, _store, x86="tilestored", arm="")
def tile_store(raw, at, stride, tile):
    """Its rows to byte `at` of `raw` on, `stride` bytes apart."""
    for row, values in enumerate(tile.bytes):
        raw[at + stride * row : at + stride * row + values.size] = values


def _dot(context, builder, sig, total, a, b):
    call_llvm(builder, "llvm.x86.tdpbssd", _VOID, *(ir.Constant(_I8, tile.number) for tile in sig.args))
    return total


def _dot_types(total, a, b):
    return signature(total, total, a, b) if all(isinstance(tile, TileName) for tile in (total, a, b)) else None


@instruction(_dot_types, _dot, x86="tdpbssd", arm="")
def tile_dot(total, a, b):
    """Add to each total the product of a's row and b's column. total: int32[m, n], a: int8[m, 4 k], b: int8[k, 4 n].

    Four at a time, as in `dpbusd`, but signed: the bytes 4 j to 4 j + 3 of a's row meet the bytes 4 n to 4 n + 3 of
    b's row j.
    """
    m, n, k = len(total.bytes), total.bytes.shape[1] // 4, len(b.bytes)
    left, right = wide(a.bytes.view(np.int8)).reshape(m, k, 4), wide(b.bytes.view(np.int8)).reshape(k, n, 4)
    sums = wide(total.bytes.view(np.int32)) + np.einsum("mkj,knj->mn", left, right)
    return total.fill(sums.astype(np.int32))
