"""FORMATS: one row a block format. What the bytes mean, for everyone who reads or writes them.

Source: ggml `ggml-common.h` (block_* structs) and `ggml.h` (type ids). "Q8_K" and "Q8_0_PAD40" are minfer's own
activation blocks and have no id in a file; ggml's 292-byte block is "Q8_K_GGML".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from minfer_lib.errors import GgufError, UnsupportedError
from minfer_lib.formats import decoders, scale_bits
from minfer_lib.formats.packing import CodeBits
from minfer_lib.formats.scale_bits import ScaleBits


class Field(NamedTuple):
    """`count` values of `dtype`, `offset` bytes into the block."""

    name: str
    offset: int
    dtype: np.dtype
    count: int
    packing: CodeBits | Callable[[int], list[ScaleBits]] | None = None  # None: each value is a number of its own


@dataclass(frozen=True)
class Format:
    """A row of `block_values` values is stored in blocks of `block_bytes` bytes."""

    name: str
    type_id: int | None  # ggml's number in a GGUF file; None: never in a file
    block_values: int
    block_bytes: int
    fields: tuple[Field, ...]
    activation: str | None  # the activation format its dot takes; None: float32 activations, or not a weight format
    decode: Callable[[Format, np.ndarray], np.ndarray]  # its decoder: see decoders.py
    zero_code: int = 0  # the code that stands for 0, where codes are unsigned and nothing is added
    levels: tuple[int, ...] = ()  # what each code stands for, where that is not the code itself: from -128 to 127

    @property
    def bits_per_weight(self) -> float:
        return 8 * self.block_bytes / self.block_values

    def offset(self, field: str) -> int:
        """Byte of a block at which `field` begins."""
        return next(f.offset for f in self.fields if f.name == field)

    @property
    def has_min(self) -> bool:
        """Whether a second float is added to, or subtracted from, each product of scale and code: m or dmin."""
        return any(field.name in ("m", "dmin") for field in self.fields)

    @cached_property
    def dtype(self) -> np.dtype:
        """A NumPy record of one block: `raw.view(FORMATS["Q4_0"].dtype)["d"]` are the scales."""
        names, offsets, dtypes, counts = zip(*[(f.name, f.offset, f.dtype, f.count) for f in self.fields], strict=True)
        formats = [dtype if count == 1 else (dtype, (count,)) for dtype, count in zip(dtypes, counts, strict=True)]
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": self.block_bytes})

    def row_bytes(self, n_values: int) -> int:
        """Bytes of one row of n_values values, a whole number of blocks."""
        return n_values // self.block_values * self.block_bytes


def _format(
    name: str,
    type_id: int | None,
    values: int,
    activation: str | None,
    decode: Callable,
    *fields: tuple,
    zero_code: int = 0,
    levels: tuple[int, ...] = (),
) -> Format:
    """Lay `fields` (name, dtype, count, packing) one after the other: ggml's blocks are packed, without padding."""
    placed, offset = [], 0
    for field, dtype, count, *packing in fields:
        placed.append(Field(field, offset, np.dtype(dtype), count, *packing))
        offset += np.dtype(dtype).itemsize * count
    return Format(name, type_id, values, offset, tuple(placed), activation, decode, zero_code, levels)


_F16, _U8, _I8 = "<f2", "u1", "i1"
_D, _M, _DMIN = ("d", _F16, 1), ("m", _F16, 1), ("dmin", _F16, 1)

# Bits of codes
_NIBBLES, _FIFTHS = ("qs", _U8, 16, CodeBits(16, 4)), ("qh", "<u4", 1, CodeBits(1, 1, 4))
_K_TWO_BITS, _K_NIBBLES = ("qs", _U8, 64, CodeBits(32, 2)), ("qs", _U8, 128, CodeBits(32, 4))
_K_THIRDS, _K_FIFTHS = ("hmask", _U8, 32, CodeBits(32, 1, 2)), ("qh", _U8, 32, CodeBits(32, 1, 4))
_Q6_LOW, _Q6_HIGH = ("ql", _U8, 128, CodeBits(64, 4)), ("qh", _U8, 64, CodeBits(32, 2, 4))

_PAIRS = ("scales", _U8, 12, scale_bits.six_bit_pairs)

_NON_LINEAR = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)  # ggml: kvalues_iq4nl

FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        _format("F32", 0, 1, None, decoders.floats, ("value", "<f4", 1)),
        _format("F16", 1, 1, None, decoders.floats, ("value", _F16, 1)),
        _format("BF16", 30, 1, None, decoders.bf16, ("value", "<u2", 1)),  # the upper half of a float32
        _format("Q4_0", 2, 32, "Q8_0", decoders.symmetric, _D, _NIBBLES, zero_code=8),
        _format("Q4_1", 3, 32, "Q8_0", decoders.with_min, _D, _M, _NIBBLES),
        _format("Q5_0", 6, 32, "Q8_0", decoders.symmetric, _D, _FIFTHS, _NIBBLES, zero_code=16),
        _format("Q5_1", 7, 32, "Q8_0", decoders.with_min, _D, _M, _FIFTHS, _NIBBLES),
        _format("Q8_0", 8, 32, "Q8_0", decoders.q8, _D, ("qs", _I8, 32)),
        _format("IQ4_NL", 20, 32, "Q8_0", decoders.from_levels, _D, _NIBBLES, levels=_NON_LINEAR),
        _format("Q8_1", 9, 32, None, decoders.q8, _D, ("s", _F16, 1), ("qs", _I8, 32)),
        _format(
            "Q2_K", 10, 256, "Q8_K", decoders.q2_k,
            ("scales", _U8, 16, scale_bits.nibbles), _K_TWO_BITS, _D, _DMIN,
        ),
        _format(
            "Q3_K", 11, 256, "Q8_K", decoders.q3_k,
            _K_THIRDS, _K_TWO_BITS, ("scales", _U8, 12, scale_bits.six_bits), _D, zero_code=4,
        ),
        _format("Q4_K", 12, 256, "Q8_K", decoders.q4_k, _D, _DMIN, _PAIRS, _K_NIBBLES),
        _format("Q5_K", 13, 256, "Q8_K", decoders.q4_k, _D, _DMIN, _PAIRS, _K_FIFTHS, _K_NIBBLES),
        _format(
            "Q6_K", 14, 256, "Q8_K", decoders.q6_k,
            _Q6_LOW, _Q6_HIGH, ("scales", _I8, 16, scale_bits.whole), _D, zero_code=32,
        ),
        _format("Q8_K_GGML", 15, 256, None, decoders.q8, ("d", "<f4", 1), ("qs", _I8, 256), ("bsums", "<i2", 16)),
        _format("Q8_K", None, 256, None, decoders.q8, _D, ("qs", _I8, 256), ("zero", _U8, 16), ("bsums", "<i2", 16)),
        _format("Q8_0_PAD40", None, 32, None, decoders.q8, _D, ("zero", _U8, 2), ("qs", _I8, 32), ("sum", "<i4", 1)),
    )
}  # fmt: skip

WEIGHT_FORMATS = tuple(name for name, row in FORMATS.items() if row.activation or row.block_values == 1)

BY_TYPE_ID: dict[int, Format] = {row.type_id: row for row in FORMATS.values() if row.type_id is not None}

# ggml types that files use and this engine does not: known by name, so that the refusal can name them.
_UNSUPPORTED = {
    16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
    24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
    40: "NVFP4", 41: "Q1_0", 42: "Q2_0",
}  # fmt: skip


def format_of_type(type_id: int, where: str) -> Format:
    """The row of ggml's `type_id`; UnsupportedError names a known type without a row, GgufError an unknown id."""
    if type_id in BY_TYPE_ID:
        return BY_TYPE_ID[type_id]
    if type_id in _UNSUPPORTED:
        raise UnsupportedError(
            f"{where} is stored as {_UNSUPPORTED[type_id]} (ggml type {type_id}), which this engine does not decode. "
            f"Use a file quantized to one of: {', '.join(row.name for row in BY_TYPE_ID.values())}."
        )
    raise GgufError(f"{where} has ggml type {type_id}, which does not exist. The file is damaged or too new.")
