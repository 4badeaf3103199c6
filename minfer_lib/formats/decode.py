"""Blocks -> float32: the checks and the loop; what the values are, `decoders.py` says."""

from __future__ import annotations

import numpy as np

from minfer_lib.errors import ArgumentError
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
            slab[:] = row.decode(row, blocks[first : first + step]).reshape(slab.shape)
    return out.reshape(-1)
