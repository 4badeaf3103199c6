"""float32 -> blocks of 32 weights, byte for byte as ggml's quantize_row_*_ref writes them (`ggml-quants.c`).

Vectorised over blocks; each step is one float32 operation, as in ggml, so the bytes are the same on every machine.
IQ4_NL alone follows another function, quantize_iq4_nl, which llama-quantize calls: it searches, see `search.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minfer_lib.formats.packing import pack_codes
from minfer_lib.formats.table import FORMATS
from minfer_lib.quantize.search import fit_levels


def _inverse(d: np.ndarray) -> np.ndarray:
    """1 / d, and 0 where d is 0: a block of zeros divides by nothing."""
    return np.divide(np.float32(1), d, out=np.zeros_like(d), where=d != 0)


def _round_half_away(x: np.ndarray) -> np.ndarray:
    """C's roundf, exactly: 0.49999997 is rounded down, which floor(x + 0.5) in float32 does not do."""
    whole = np.trunc(x)
    return whole + np.copysign(np.abs(x - whole) >= np.float32(0.5), x)


def _take(x: np.ndarray, index: np.ndarray) -> np.ndarray:
    """f32[n_blocks, 1]: value index[b] of block b."""
    return np.take_along_axis(x, index[:, None], axis=1)


def _signed_max(x: np.ndarray) -> np.ndarray:
    """f32[n_blocks, 1]: the value of largest magnitude with its sign; of equals, the first. Never -0.0, as in ggml."""
    return _take(x, np.abs(x).argmax(axis=1)) + np.float32(0)


def _whole(x: np.ndarray) -> np.ndarray:
    """The integer part as int8, and 0 for infinity and NaN, as C compiled for x86 converts them.

    They arise where 1 / d is infinite: weights so small that d is below what float32 can invert.
    """
    return np.where(np.isfinite(x), x, np.float32(0)).astype(np.int8)


def _symmetric(x: np.ndarray, blocks: np.ndarray, half: int) -> np.ndarray:
    """uint8 codes from 0 to 2 * half - 1, half standing for zero: d maps the largest weight to code 0."""
    d = _signed_max(x) / np.float32(-half)
    blocks["d"] = d[:, 0]
    return np.minimum(2 * half - 1, _whole(x * _inverse(d) + np.float32(half + 0.5))).astype(np.uint8)


def _asymmetric(x: np.ndarray, blocks: np.ndarray, most: int) -> np.ndarray:
    """uint8 codes from 0, the smallest weight, to `most`, the largest."""
    low, high = _take(x, x.argmin(axis=1)), _take(x, x.argmax(axis=1))  # of 0.0 and -0.0 the first; min() may differ
    d = (high - low) / np.float32(most)
    blocks["d"], blocks["m"] = d[:, 0], low[:, 0]
    return np.minimum(most, _whole((x - low) * _inverse(d) + np.float32(0.5))).astype(np.uint8)


def _q4_0(x: np.ndarray, blocks: np.ndarray) -> None:
    pack_codes(FORMATS["Q4_0"].fields, _symmetric(x, blocks, 8), blocks)


def _q4_1(x: np.ndarray, blocks: np.ndarray) -> None:
    pack_codes(FORMATS["Q4_1"].fields, _asymmetric(x, blocks, 15), blocks)


def _q5_0(x: np.ndarray, blocks: np.ndarray) -> None:
    pack_codes(FORMATS["Q5_0"].fields, _symmetric(x, blocks, 16), blocks)


def _q5_1(x: np.ndarray, blocks: np.ndarray) -> None:
    pack_codes(FORMATS["Q5_1"].fields, _asymmetric(x, blocks, 31), blocks)


def _iq4_nl(x: np.ndarray, blocks: np.ndarray) -> None:
    row = FORMATS["IQ4_NL"]
    scales, codes = np.empty(len(x), np.float32), np.empty(x.shape, np.uint8)
    fit_levels(x, np.array(row.levels, np.float32), 7, scales, codes)
    blocks["d"] = scales
    pack_codes(row.fields, codes, blocks)


def _q8(x: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Writes d and the codes; returns d, f32[n_blocks]."""
    d = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    blocks["d"] = d[:, 0]
    blocks["qs"] = _whole(_round_half_away(x * _inverse(d)))
    return d[:, 0]


def _q8_0(x: np.ndarray, blocks: np.ndarray) -> None:
    _q8(x, blocks)


def _q8_1(x: np.ndarray, blocks: np.ndarray) -> None:
    d = _q8(x, blocks)
    blocks["s"] = blocks["qs"].sum(axis=1).astype(np.float32) * d


QUANTIZERS: dict[str, Callable[[np.ndarray, np.ndarray], None]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "IQ4_NL": _iq4_nl,
    "Q8_1": _q8_1,
}
