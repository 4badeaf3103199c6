"""Which bits of a block hold what: for every byte of every format, its parts, and the values that depend on them.

A block stores numbers: codes, scales, mins, sums. Some are split over several bytes, some share a byte. `layout` cuts
each byte into parts, and each part says which bits of which number it holds. The decoder goes the other way, from
bytes to values; the tests flip every bit of every format and see that exactly the values named here change.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from minfer_lib.formats.table import FORMATS, Field


class Part(NamedTuple):
    """Bits low … low + n_bits - 1 of a byte, which are bits shift, shift + 1, … of a number."""

    low: int
    n_bits: int
    number: str  # "code", "scale", "min", "d", "dmin", "m", "value", "sum", "s" or "zero"
    index: int  # which of them: code 19 belongs to element 19, scale 2 to a sub-block
    shift: int
    signed: bool  # whether the number is a signed integer; meant for the part that holds its highest bit
    elements: range  # the values that depend on the part
    of: range  # what a sum is the sum of; no value depends on that, so `elements` is empty


_NONE = range(0)

# Where the bits of codes lie, by (format, field): (run, bits, shift), as in packing.py: a run of bytes holds 8 / bits
# rows of codes, one above the other; the bits are shift, shift + 1, … of their code.
_CODES = {
    ("Q4_0", "qs"): (16, 4, 0),
    ("Q4_1", "qs"): (16, 4, 0),
    ("Q5_0", "qs"): (16, 4, 0),
    ("Q5_0", "qh"): (1, 1, 4),
    ("Q5_1", "qs"): (16, 4, 0),
    ("Q5_1", "qh"): (1, 1, 4),
    ("Q2_K", "qs"): (32, 2, 0),
    ("Q3_K", "qs"): (32, 2, 0),
    ("Q3_K", "hmask"): (32, 1, 2),
    ("Q4_K", "qs"): (32, 4, 0),
    ("Q5_K", "qs"): (32, 4, 0),
    ("Q5_K", "qh"): (32, 1, 4),
    ("Q6_K", "ql"): (64, 4, 0),
    ("Q6_K", "qh"): (32, 2, 4),
}


@cache
def layout(name: str) -> tuple[tuple[Part, ...], ...]:
    """For each byte of a block of format `name`, its parts from bit 0 up: together they are all eight bits."""
    row = FORMATS[name]
    return tuple(tuple(_parts(name, field, i)) for field in row.fields for i in range(_size(field)))


@cache
def field_of(name: str, byte: int) -> Field:
    """The field of format `name` that the byte-th byte of a block belongs to."""
    return next(f for f in FORMATS[name].fields if f.offset <= byte < f.offset + _size(f))


def number(name: str, block: bytes, part: Part) -> int:
    """The whole number that `part` is a piece of, put together from all its bytes; f16 and f32 as their bits."""
    total = 0
    for byte, piece in _pieces(name)[part.number, part.index]:
        total |= (int(block[byte]) >> piece.low & ((1 << piece.n_bits) - 1)) << piece.shift
    n_bits = max(piece.shift + piece.n_bits for _, piece in _pieces(name)[part.number, part.index])
    return total - (1 << n_bits) if part.signed and total >> (n_bits - 1) else total


@cache
def _pieces(name: str) -> dict[tuple[str, int], list[tuple[int, Part]]]:
    """(number, index) -> [(byte, part)]"""
    pieces: dict = {}
    for byte, parts in enumerate(layout(name)):
        for part in parts:
            pieces.setdefault((part.number, part.index), []).append((byte, part))
    return pieces


def _size(field: Field) -> int:
    return field.dtype.itemsize * field.count


def _parts(name: str, field: Field, i: int) -> list[Part]:
    """The parts of byte i of a field."""
    every = range(FORMATS[name].block_values)
    if (name, field.name) in _CODES:
        return _code_parts(*_CODES[name, field.name], i)
    if field.name == "scales":
        return _SCALE_PARTS[name](i)
    size = field.dtype.itemsize
    index, shift, signed = i // size, 8 * (i % size), field.dtype.kind == "i"
    if field.name == "qs":  # whole bytes
        return [_part(0, 8, "code", i, 0, range(i, i + 1), signed=True)]
    if field.name in ("bsums", "sum", "s"):
        n = len(every) // field.count
        of = range(index * n, index * n + n)
        name_of_it = "s" if field.name == "s" else "sum"
        return [_part(0, 8, name_of_it, index, shift, _NONE, signed=signed, of=of)]
    return [_part(0, 8, field.name, index, shift, _NONE if field.name == "zero" else every)]


def _part(low, n_bits, number, index, shift, elements, signed=False, of=_NONE) -> Part:
    return Part(low, n_bits, number, index, shift, signed, elements, of)


def _code_parts(run: int, bits: int, shift: int, i: int) -> list[Part]:
    """Byte i holds one code from each row of its run."""
    rows = 8 // bits
    first = i // run * run * rows + i % run
    codes = [first + row * run for row in range(rows)]
    return [_part(bits * row, bits, "code", e, shift, range(e, e + 1)) for row, e in enumerate(codes)]


def _sub_block(j: int, n: int) -> range:
    return range(j * n, j * n + n)


def _scales_q2_k(j: int) -> list[Part]:
    of = _sub_block(j, 16)
    return [_part(0, 4, "scale", j, 0, of), _part(4, 4, "min", j, 0, of)]


def _scales_q3_k(i: int) -> list[Part]:
    """Byte i < 8: the low four bits of scales i and i + 8. The last four bytes: the upper two bits of four scales."""
    if i < 8:
        return [_part(4 * h, 4, "scale", i + 8 * h, 0, _sub_block(i + 8 * h, 16)) for h in range(2)]
    return [_part(2 * h, 2, "scale", i - 8 + 4 * h, 4, _sub_block(i - 8 + 4 * h, 16)) for h in range(4)]


def _scales_q4_k(i: int) -> list[Part]:
    """Scales and mins of six bits; ggml: get_scale_min_k4."""
    j = i % 4
    if i < 8:  # a whole scale or min of the first half, and the upper two bits of one of the second
        what = "scale" if i < 4 else "min"
        return [_part(0, 6, what, j, 0, _sub_block(j, 32)), _part(6, 2, what, j + 4, 4, _sub_block(j + 4, 32))]
    of = _sub_block(j + 4, 32)
    return [_part(0, 4, "scale", j + 4, 0, of), _part(4, 4, "min", j + 4, 0, of)]


def _scales_q6_k(j: int) -> list[Part]:
    return [_part(0, 8, "scale", j, 0, _sub_block(j, 16), signed=True)]


_SCALE_PARTS = {
    "Q2_K": _scales_q2_k,
    "Q3_K": _scales_q3_k,
    "Q4_K": _scales_q4_k,
    "Q5_K": _scales_q4_k,
    "Q6_K": _scales_q6_k,
}
