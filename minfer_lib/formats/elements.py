"""Which bits of a block hold what: for every byte of every format, its bit fields, and the values that depend on them.

A block stores numbers: codes, scales, mins, sums. Some are split over several bytes, some share a byte. `layout` cuts
each byte into bit fields, and each says which bits of which number it holds. The decoder goes the other way, from
bytes to values; the tests flip every bit of every format and see that exactly the values named here change.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from minfer_lib.formats.packing import CodeBits
from minfer_lib.formats.table import FORMATS, Field


class BitField(NamedTuple):
    """Bits low … low + n_bits - 1 of a byte, which are bits shift, shift + 1, … of a number."""

    low: int
    n_bits: int
    number: str  # "code", "scale", "min", "d", "dmin", "m", "value", "sum", "s" or "zero"
    index: int  # which of them: code 19 belongs to element 19, scale 2 to a sub-block
    shift: int
    signed: bool  # whether the number is a signed integer; meant for the one that holds its highest bit
    elements: range  # the values that depend on these bits
    of: range  # what a sum is the sum of; no value depends on that, so `elements` is empty


_NONE = range(0)


@cache
def layout(name: str) -> tuple[tuple[BitField, ...], ...]:
    """For each byte of a block of format `name`, its bit fields from bit 0 up: together they are all eight bits."""
    row = FORMATS[name]
    return tuple(tuple(_bit_fields(name, field, i)) for field in row.fields for i in range(_size(field)))


@cache
def field_of(name: str, byte: int) -> Field:
    """The field of format `name` that the byte-th byte of a block belongs to."""
    return next(f for f in FORMATS[name].fields if f.offset <= byte < f.offset + _size(f))


def number(name: str, block: bytes, bits: BitField) -> int:
    """The whole number that `bits` are a piece of, put together from all its bytes; f16 and f32 as their bits."""
    total = 0
    for byte, piece in _pieces(name)[bits.number, bits.index]:
        total |= (int(block[byte]) >> piece.low & ((1 << piece.n_bits) - 1)) << piece.shift
    n_bits = max(piece.shift + piece.n_bits for _, piece in _pieces(name)[bits.number, bits.index])
    return total - (1 << n_bits) if bits.signed and total >> (n_bits - 1) else total


@cache
def _pieces(name: str) -> dict[tuple[str, int], list[tuple[int, BitField]]]:
    """(number, index) -> [(byte, bit field)]"""
    pieces: dict = {}
    for byte, fields in enumerate(layout(name)):
        for bits in fields:
            pieces.setdefault((bits.number, bits.index), []).append((byte, bits))
    return pieces


def _size(field: Field) -> int:
    return field.dtype.itemsize * field.count


def _bit_fields(name: str, field: Field, i: int) -> list[BitField]:
    """What byte i of a field holds."""
    row = FORMATS[name]
    every = range(row.block_values)
    if isinstance(field.packing, CodeBits):
        return _code_bits(*field.packing, i)
    signed, size = field.dtype.kind == "i", field.dtype.itemsize
    if field.packing:  # scales, and mins
        n = row.block_values // (1 + max(bits.index for byte in range(_size(field)) for bits in field.packing(byte)))
        return [BitField(*bits, signed, range(bits.index * n, bits.index * n + n), _NONE) for bits in field.packing(i)]
    index, shift = i // size, 8 * (i % size)
    if field.name == "qs":  # whole bytes
        return [BitField(0, 8, "code", i, 0, True, range(i, i + 1), _NONE)]
    if field.name in ("bsums", "sum", "s"):
        n = row.block_values // field.count
        number_ = "s" if field.name == "s" else "sum"
        return [BitField(0, 8, number_, index, shift, signed, _NONE, range(index * n, index * n + n))]
    return [BitField(0, 8, field.name, index, shift, False, _NONE if field.name == "zero" else every, _NONE)]


def _code_bits(run: int, bits: int, shift: int, i: int) -> list[BitField]:
    """Byte i holds one code from each row of its run."""
    rows = 8 // bits
    first = i // run * run * rows + i % run
    codes = [first + row * run for row in range(rows)]
    return [BitField(bits * row, bits, "code", e, shift, False, range(e, e + 1), _NONE) for row, e in enumerate(codes)]
