"""Weights to measure with: any codes, and scales so tame that every result is a number."""

from __future__ import annotations

import numpy as np

from minfer_lib.formats.table import FORMATS

DISTINCT = 4096  # rows; more than that repeat these, so that a large matrix is made quickly


def random_rows(name: str, n_rows: int, n_in: int) -> np.ndarray:
    """Return uint8[n_rows, row_bytes]: rows of n_in random weights of format `name`, the same ones in every run."""
    row, rng = FORMATS[name], np.random.default_rng(0)
    blocks = rng.integers(0, 256, min(n_rows, DISTINCT) * row.row_bytes(n_in), np.uint8).view(row.dtype)
    for field in {"d", "dmin", "m"} & set(row.dtype.names):
        blocks[field] = rng.uniform(0.01, 0.02, blocks.shape)
    if row.block_values == 1:
        values = rng.standard_normal(len(blocks)).astype(np.float32)
        blocks["value"] = values.view(np.uint32) >> 16 if name == "BF16" else values
    return np.resize(blocks.view(np.uint8), (n_rows, row.row_bytes(n_in)))
