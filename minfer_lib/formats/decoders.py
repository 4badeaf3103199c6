"""What the values of a block are, family by family, exact to the bit. Source: ggml `ggml-quants.c`, dequantize_row_*.

Each decoder takes a format's row of FORMATS and a record array [n_blocks] (Format.dtype), and returns the values,
n_blocks * block_values of them in any shape. All arithmetic is float32, one operation at a time, as ggml's is: NumPy
never fuses a product and a sum.
"""

from __future__ import annotations

import numpy as np

from minfer_lib.formats.packing import unpack, unpack_codes, unpack_scales_mins


def _scale(blocks: np.ndarray, field: str = "d") -> np.ndarray:
    """f32[n_blocks, 1]"""
    return blocks[field].astype(np.float32)[:, None]


def _signed_codes(row, blocks: np.ndarray) -> np.ndarray:
    """int8[n_blocks, block_values]: the codes, less the one that stands for 0."""
    return unpack_codes(row.fields, blocks).view(np.int8) - np.int8(row.zero_code)


def floats(row, blocks: np.ndarray) -> np.ndarray:
    """F32, F16"""
    return blocks["value"].astype(np.float32)


def bf16(row, blocks: np.ndarray) -> np.ndarray:
    return (blocks["value"].astype(np.uint32) << 16).view(np.float32)


# Blocks of 32


def symmetric(row, blocks: np.ndarray) -> np.ndarray:
    """d * (code - zero_code)"""
    return _signed_codes(row, blocks) * _scale(blocks)


def with_min(row, blocks: np.ndarray) -> np.ndarray:
    """d * code + m"""
    return unpack_codes(row.fields, blocks) * _scale(blocks) + _scale(blocks, "m")


def from_levels(row, blocks: np.ndarray) -> np.ndarray:
    """d * levels[code]"""
    return np.array(row.levels, np.int8)[unpack_codes(row.fields, blocks)] * _scale(blocks)


def q8(row, blocks: np.ndarray) -> np.ndarray:
    """d * code, a byte each"""
    return blocks["qs"] * _scale(blocks)


# Super-blocks of 256: each sub-block of 16 or 32 has a scale of its own, an integer times the block's d


def q2_k(row, blocks: np.ndarray) -> np.ndarray:
    scales = (blocks["scales"] & 15) * _scale(blocks)
    mins = (blocks["scales"] >> 4) * _scale(blocks, "dmin")
    codes = unpack_codes(row.fields, blocks).reshape(-1, 16, 16)
    return codes * scales[:, :, None] - mins[:, :, None]


def q3_k(row, blocks: np.ndarray) -> np.ndarray:
    low, high = blocks["scales"][:, :8], blocks["scales"][:, 8:]
    scales = (unpack(low, 8, 4) | unpack(high, 4, 2) << 4).view(np.int8) - np.int8(32)
    return _signed_codes(row, blocks).reshape(-1, 16, 16) * (scales * _scale(blocks))[:, :, None]


def q4_k(row, blocks: np.ndarray) -> np.ndarray:
    """Q5_K too"""
    scales, mins = unpack_scales_mins(blocks["scales"])
    scales, mins = (scales * _scale(blocks))[:, :, None], (mins * _scale(blocks, "dmin"))[:, :, None]
    return unpack_codes(row.fields, blocks).reshape(-1, 8, 32) * scales - mins


def q6_k(row, blocks: np.ndarray) -> np.ndarray:
    return _signed_codes(row, blocks).reshape(-1, 16, 16) * (blocks["scales"] * _scale(blocks))[:, :, None]
