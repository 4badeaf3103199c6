"""Activations as the matrices take them: a buffer's rows quantized, and laid out for tiles where several tokens are."""

from __future__ import annotations

import numpy as np
from numba import carray

from minfer_lib.formats.table import FORMATS
from minfer_lib.matmul.panels import fill_panels
from minfer_lib.matmul.tiles import TILES_FROM
from minfer_lib.model.config import Config
from minfer_lib.model.memory import Memory
from minfer_lib.model.operation import Operation
from minfer_lib.model.run import RUN
from minfer_lib.native.address import int64_record, pointer, record_of
from minfer_lib.native.jit import kernel
from minfer_lib.quantize.activations import call_quantizer, rows_quantizer

_QUANTIZE = int64_record("x", "x_own", "width", "formats", "n_formats")
_FORMAT = int64_record("quantize", "block_values", "blocks", "row_bytes", "panels")  # an element of `formats`


@kernel
def _quantize(operands, run, n, first, last, worker):
    """Tokens [first, last) of n, in every format. Of a single token each worker makes a row of its own."""
    o = carray(pointer(operands), 1, _QUANTIZE)[0]
    own = worker if n == 1 else 0
    x = o.x + first * 4 * o.width + own * o.x_own
    for f in carray(pointer(o.formats), o.n_formats, _FORMAT):
        blocks = f.blocks + (own + first) * f.row_bytes
        if call_quantizer(f.quantize, x, last - first, o.width, blocks) == 0:
            carray(pointer(run), 1, RUN)[0].bad = 1
        if n >= TILES_FROM and f.panels != 0:
            fill_panels(f.block_values, f.blocks, f.row_bytes, first, last, o.width // f.block_values, f.panels)


class Quantize(Operation):
    """The rows of buffer x in the formats of the matrices that take it; nothing to do where all take float32."""

    unit, job = "token", _quantize

    def __init__(self, name: str, x: str) -> None:
        super().__init__(name)
        self.x = x

    def units(self, config: Config) -> int:
        return 1

    def bind(self, memory: Memory, layer: int) -> np.ndarray:
        names = memory.formats(self.x)
        self._formats = np.zeros(len(names), _FORMAT)
        for row, name in zip(self._formats, names, strict=True):
            blocks, panels = memory.blocks[self.x, name], memory.panels.get((self.x, name))
            row["quantize"], row["block_values"] = rows_quantizer(name), FORMATS[name].block_values
            row["blocks"], row["row_bytes"] = blocks.ctypes.data, blocks.strides[0]
            row["panels"] = 0 if panels is None else panels.ctypes.data
        return record_of(
            _QUANTIZE, x=memory.address(self.x), x_own=memory.own_bytes(self.x), width=memory.floats[self.x].shape[1],
            formats=self._formats.ctypes.data, n_formats=len(names),
        )  # fmt: skip
