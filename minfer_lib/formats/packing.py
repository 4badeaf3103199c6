"""How codes of fewer than eight bits share bytes. Every field of every format is laid out by one rule, or two.

The rule: a field is cut into runs of `run` bytes. A run holds 8 / bits rows of `run` codes, one above the other: the
first row in the lowest bits of its bytes, the next in the bits above. ggml's nibbles, "byte j holds elements j and
j + 16", are run 16, bits 4; a plain bit string is run 1, bits 1.

The second rule is for the 12 bytes in which Q4_K and Q5_K keep 8 scales and 8 mins of 6 bits (ggml: get_scale_min_k4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class CodeBits(NamedTuple):
    """How a field of FORMATS holds bits of codes: by the first rule, bits shift, shift + 1, … of each code."""

    run: int
    bits: int
    shift: int = 0


def unpack_codes(fields: tuple, blocks: np.ndarray) -> np.ndarray:
    """The codes of a record array [n], uint8[n, block_values], put together from all of its fields that hold any."""
    codes = np.uint8(0)
    for field in fields:
        if isinstance(field.packing, CodeBits):
            run, bits, shift = field.packing
            packed = np.ascontiguousarray(blocks[field.name]).view(np.uint8).reshape(len(blocks), -1)
            codes = unpack(packed, run, bits) << shift | codes
    return codes


def pack_codes(fields: tuple, codes: np.ndarray, blocks: np.ndarray) -> None:
    """The inverse: write uint8[n, block_values] into the fields that hold bits of codes."""
    for field in fields:
        if isinstance(field.packing, CodeBits):
            run, bits, shift = field.packing
            packed = pack(codes >> shift & (1 << bits) - 1, run, bits)
            blocks[field.name] = packed.view(field.dtype).reshape(blocks[field.name].shape)


def unpack(packed: np.ndarray, run: int, bits: int) -> np.ndarray:
    """uint8[n, m] -> the codes in it, uint8[n, m * 8 / bits]."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    rows = packed.reshape(len(packed), -1, 1, run) >> shifts
    return (rows & np.uint8((1 << bits) - 1)).reshape(len(packed), packed.shape[1] * 8 // bits)


def pack(codes: np.ndarray, run: int, bits: int) -> np.ndarray:
    """The inverse of unpack: uint8[n, k], every code below 2 ** bits, -> uint8[n, k * bits / 8]."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    rows = codes.reshape(len(codes), -1, 8 // bits, run) << shifts
    return np.bitwise_or.reduce(rows, axis=2).reshape(len(codes), codes.shape[1] * bits // 8)


def unpack_scales_mins(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """uint8[n, 12] -> scales and mins, uint8[n, 8] each, from 0 to 63.

    Bytes 0-3 hold scales 0-3 and bytes 4-7 mins 0-3, six bits each. Bytes 8-11 hold the lower four bits of scales 4-7
    (low half) and mins 4-7 (high half); the upper two bits of those lie in the bits that bytes 0-7 had left over.
    """
    first, last = packed[:, :8] & 63, packed[:, 8:]
    rest = packed[:, :8] >> 6 << 4
    scales = np.concatenate([first[:, :4], last & 15 | rest[:, :4]], axis=1)
    mins = np.concatenate([first[:, 4:], last >> 4 | rest[:, 4:]], axis=1)
    return scales, mins


def pack_scales_mins(scales: np.ndarray, mins: np.ndarray) -> np.ndarray:
    """The inverse: scales and mins, uint8[n, 8] each, from 0 to 63, -> uint8[n, 12]."""
    first = np.concatenate([scales[:, :4], mins[:, :4]], axis=1)
    rest = np.concatenate([scales[:, 4:], mins[:, 4:]], axis=1) >> 4 << 6
    last = scales[:, 4:] & 15 | mins[:, 4:] << 4
    return np.concatenate([first | rest, last], axis=1)
