"""What a tile instruction multiplies, laid out by the engine's own code, on any machine."""

from __future__ import annotations

import numpy as np

from minfer_lib.formats.table import FORMATS
from minfer_lib.matmul.panels import TOKENS, fill_panels, panels_bytes
from minfer_lib.matmul.tile_layout import ROWS, SUPER, TILE_32, unpacker
from minfer_lib.simd.step import step


def tile_operands(name: str, w: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first block of 16 rows of weights and of 16 tokens -> (codes, panel), uint8: what A and B are loaded from.

    w: uint8[>= 16, row_bytes] of format `name`; a: uint8[>= 16, a_row_bytes] of its activation format.
    """
    block_values, w, a = FORMATS[name].block_values, w[:ROWS], np.ascontiguousarray(a[:TOKENS])
    codes = np.zeros(TILE_32 if block_values == 32 else SUPER, np.uint8)
    scales = np.zeros((1, 2, ROWS), np.float32)
    for row, raw in enumerate(w):
        step(unpacker(name), raw, 0, 1, row, 0, codes, scales)  # compiled, it may want instructions not on this CPU
    panel = np.zeros(panels_bytes(block_values, TOKENS, 1), np.uint8)
    fill_panels(block_values, a.ctypes.data, a.shape[1], 0, len(a), 1, panel.ctypes.data)
    return codes, panel
