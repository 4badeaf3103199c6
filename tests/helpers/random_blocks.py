"""Rows of blocks for tests: any bytes at all, with tame scales; and activations of any codes that quantizers write."""

import numpy as np

import minfer_lib as mf


def random_blocks(name: str, n: int, rng: np.random.Generator, largest: float = 0.1) -> np.ndarray:
    """A record array of n blocks of weight format `name`: arbitrary bytes, but f16 fields within ± `largest`."""
    row = mf.FORMATS[name]
    blocks = rng.integers(0, 256, n * row.block_bytes, dtype=np.uint8).view(row.dtype)
    for field in row.fields:
        if field.name in ("d", "m", "dmin"):
            blocks[field.name] = rng.uniform(-largest, largest, n)
    return blocks


def random_row(name: str, n_values: int, rng: np.random.Generator, largest: float = 0.1) -> np.ndarray:
    """As random_blocks, the bytes of a row: uint8[row_bytes]. Formats of single values have small positive bytes."""
    row = mf.FORMATS[name]
    if row.block_values == 1:
        return rng.integers(0, 60, row.row_bytes(n_values), dtype=np.uint8)
    return random_blocks(name, n_values // row.block_values, rng, largest).view(np.uint8)


def weight_codes(name: str, raw: np.ndarray) -> np.ndarray:
    """int64[n_blocks, 32], what kernels multiply of a row of 32-value blocks: its weights where d is 1 and m is 0."""
    row = mf.FORMATS[name]
    blocks = raw.copy().view(row.dtype)
    blocks["d"] = 1
    if row.has_min:
        blocks["m"] = 0
    return mf.dequantize(name, blocks.view(np.uint8)).astype(np.int64).reshape(-1, row.block_values)


def random_activations(
    name: str, n_values: int, rng: np.random.Generator, codes: np.ndarray | None = None
) -> np.ndarray:
    """A record array of Q8_0 or Q8_K blocks: codes in [-127, 127], or these; the sums that belong to them."""
    row = mf.FORMATS[name]
    blocks = np.zeros(n_values // row.block_values, row.dtype)
    shape = len(blocks), row.block_values
    blocks["d"] = rng.uniform(-0.1, 0.1, len(blocks))
    blocks["qs"] = rng.integers(-127, 128, shape) if codes is None else codes
    if "bsums" in row.dtype.names:
        blocks["bsums"] = blocks["qs"].reshape(len(blocks), 16, 16).sum(axis=2, dtype=np.int64)
    return blocks


def random_activation_row(name: str | None, n_values: int, rng: np.random.Generator) -> np.ndarray:
    """The bytes of a row of activations: uint8[row_bytes]; None: float32."""
    if name is None:
        return rng.standard_normal(n_values).astype(np.float32).view(np.uint8)
    return random_activations(name, n_values, rng).view(np.uint8)
