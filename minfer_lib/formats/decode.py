"""Blocks -> float32, exact to the bit. Source: ggml `ggml-quants.c`, dequantize_row_*.

Each decoder takes a record array [n_blocks] (Format.dtype) and returns its values, n_blocks * block_values of them in
any shape. All arithmetic is float32, one operation at a time, as ggml's is: NumPy never fuses a product and a sum.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.formats.packing import unpack, unpack_scales_mins
from minfer_lib.formats.table import FORMATS

SLAB = 1 << 16  # values decoded at a time, so that intermediate arrays stay in the cache


def dequantize(name: str, raw: np.ndarray) -> np.ndarray:
    """Decode `raw`, uint8 of any shape holding whole blocks of format `name`, to a flat f32[n].

    Every name in FORMATS is decoded; "Q8_K" is the engine's 306-byte block, "Q8_K_GGML" ggml's of 292 bytes.
    Raises ArgumentError (not a format, not uint8, not whole blocks).
    """
    if name not in FORMATS:
        raise ArgumentError(f"{name!r} is not a format. Choose one of: {', '.join(FORMATS)}.")
    row, raw = FORMATS[name], np.asarray(raw)
    if raw.dtype != np.uint8 or raw.size % row.block_bytes:
        raise ArgumentError(
            f"{name} is uint8 in blocks of {row.block_bytes} bytes; got {raw.dtype}, {raw.size} values."
        )
    blocks = np.ascontiguousarray(raw).reshape(-1).view(row.dtype)
    out = np.empty((len(blocks), row.block_values), np.float32)
    step = SLAB // row.block_values
    with np.errstate(over="ignore", invalid="ignore"):  # infinite scales decode as in ggml, silently
        for first in range(0, len(blocks), step):
            slab = out[first : first + step]
            slab[:] = DECODERS[name](blocks[first : first + step]).reshape(slab.shape)
    return out.reshape(-1)


def _scale(blocks: np.ndarray, field: str = "d") -> np.ndarray:
    """f32[n_blocks, 1]"""
    return blocks[field].astype(np.float32)[:, None]


def _f32(blocks: np.ndarray) -> np.ndarray:
    return blocks["value"].astype(np.float32)


def _bf16(blocks: np.ndarray) -> np.ndarray:
    return (blocks["value"].astype(np.uint32) << 16).view(np.float32)


# Blocks of 32: value = d * (code - offset), or d * code + m


def _q4_0(blocks: np.ndarray) -> np.ndarray:
    return (unpack(blocks["qs"], 16, 4).view(np.int8) - np.int8(8)) * _scale(blocks)


def _q4_1(blocks: np.ndarray) -> np.ndarray:
    return unpack(blocks["qs"], 16, 4) * _scale(blocks) + _scale(blocks, "m")


def _five_bits(blocks: np.ndarray) -> np.ndarray:
    """uint8[n_blocks, 32]: nibbles as in Q4_0, and bit i of the number qh is the fifth bit of code i."""
    fifth = np.ascontiguousarray(blocks["qh"]).view(np.uint8).reshape(-1, 4)
    return unpack(blocks["qs"], 16, 4) | unpack(fifth, 1, 1) << 4


def _q5_0(blocks: np.ndarray) -> np.ndarray:
    return (_five_bits(blocks).view(np.int8) - np.int8(16)) * _scale(blocks)


def _q5_1(blocks: np.ndarray) -> np.ndarray:
    return _five_bits(blocks) * _scale(blocks) + _scale(blocks, "m")


def _q8(blocks: np.ndarray) -> np.ndarray:
    return blocks["qs"] * _scale(blocks)


# Super-blocks of 256: each sub-block of 16 or 32 has a scale of its own, an integer times the block's d


def _q2_k(blocks: np.ndarray) -> np.ndarray:
    scales = (blocks["scales"] & 15) * _scale(blocks)
    mins = (blocks["scales"] >> 4) * _scale(blocks, "dmin")
    codes = unpack(blocks["qs"], 32, 2).reshape(-1, 16, 16)
    return codes * scales[:, :, None] - mins[:, :, None]


def _q3_k(blocks: np.ndarray) -> np.ndarray:
    low, high = blocks["scales"][:, :8], blocks["scales"][:, 8:]
    scales = (unpack(low, 8, 4) | unpack(high, 4, 2) << 4).view(np.int8) - np.int8(32)
    codes = unpack(blocks["qs"], 32, 2) | unpack(blocks["hmask"], 32, 1) << 2
    codes = codes.view(np.int8).reshape(-1, 16, 16) - np.int8(4)
    return codes * (scales * _scale(blocks))[:, :, None]


def _scales_mins(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f32[n_blocks, 8, 1] each: what Q4_K and Q5_K multiply a code with, and what they then subtract."""
    scales, mins = unpack_scales_mins(blocks["scales"])
    return (scales * _scale(blocks))[:, :, None], (mins * _scale(blocks, "dmin"))[:, :, None]


def _q4_k(blocks: np.ndarray) -> np.ndarray:
    scales, mins = _scales_mins(blocks)
    return unpack(blocks["qs"], 32, 4).reshape(-1, 8, 32) * scales - mins


def _q5_k(blocks: np.ndarray) -> np.ndarray:
    scales, mins = _scales_mins(blocks)
    codes = unpack(blocks["qs"], 32, 4) | unpack(blocks["qh"], 32, 1) << 4
    return codes.reshape(-1, 8, 32) * scales - mins


def _q6_k(blocks: np.ndarray) -> np.ndarray:
    codes = unpack(blocks["ql"], 64, 4) | unpack(blocks["qh"], 32, 2) << 4
    codes = codes.view(np.int8).reshape(-1, 16, 16) - np.int8(32)
    return codes * (blocks["scales"] * _scale(blocks))[:, :, None]


DECODERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "F32": _f32,
    "F16": _f32,
    "BF16": _bf16,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8,
    "Q8_1": _q8,
    "Q2_K": _q2_k,
    "Q3_K": _q3_k,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
    "Q8_K": _q8,
    "Q8_K_GGML": _q8,
    "Q8_0_PAD40": _q8,
}
