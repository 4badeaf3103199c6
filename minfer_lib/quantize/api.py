"""mf.quantize: float32 weights -> blocks of any format, with the checks that all of them share."""

from __future__ import annotations

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.formats.arrays import float_array
from minfer_lib.formats.table import FORMATS
from minfer_lib.quantize import blocks32, kquants

QUANTIZERS = blocks32.QUANTIZERS | kquants.QUANTIZERS  # format -> f(x[n_blocks, block_values], blocks[n_blocks])

SLAB = 1 << 16  # values quantized at a time, so that intermediate arrays stay in the cache


def quantize(name: str, x: np.ndarray) -> np.ndarray:
    """Quantize f32[n] to format `name` -> uint8[n / block_values * block_bytes], as ggml's quantize_row_*_ref does.

    IQ4_NL as llama-quantize makes it, by ggml's quantize_iq4_nl: the reference tries one scale alone.

    The weight formats, and ggml's reference activation blocks "Q8_1" and "Q8_K_GGML". A scale beyond f16 becomes
    infinite, as in ggml. Raises ArgumentError (no such format, not whole blocks, NaN or infinity).
    """
    if name not in QUANTIZERS:
        raise ArgumentError(f"there is no weight quantizer for {name!r}. Choose one of: {', '.join(QUANTIZERS)}.")
    row = FORMATS[name]
    x = float_array(x, f"what is quantized to {name}", ndim=1)
    if x.size % row.block_values:
        raise ArgumentError(f"{name} takes whole blocks of {row.block_values} values; {x.size} do not divide.")
    if not np.isfinite(x).all():
        raise ArgumentError(f"{name}: the values hold NaN or infinity.")
    x = x.reshape(-1, row.block_values)
    blocks = np.empty(len(x), row.dtype)
    step = SLAB // row.block_values
    with np.errstate(all="ignore"):  # overflow and underflow are part of the definition
        for first in range(0, len(x), step):
            QUANTIZERS[name](x[first : first + step], blocks[first : first + step])
    return blocks.view(np.uint8).reshape(-1)
