"""SwiGLU: the gate of the feed-forward network, silu(gate) * up."""

from __future__ import annotations

import numpy as np
from numba import carray

from minfer_lib.model.config import Config
from minfer_lib.model.memory import Memory
from minfer_lib.model.operation import Operation
from minfer_lib.native.address import floats_at, int64_record, pointer, record_of
from minfer_lib.native.jit import inlined, kernel
from minfer_lib.simd.exp import exp8
from minfer_lib.simd.ops import first as first_lane
from minfer_lib.simd.ops import load, splat, store
from minfer_lib.simd.registers import f32x8


@kernel
def swiglu(gate, up, first, last, out):
    """out = silu(gate) * up in columns [first, last) of f32[n_tokens, ffn_width]; silu(g) = g / (1 + e^-g)."""
    n_tokens, width = gate.shape
    whole = first + (last - first) // 8 * 8
    gates, ups = gate.reshape(gate.size).view(np.uint8), up.reshape(up.size).view(np.uint8)
    outs = out.reshape(out.size).view(np.uint8)
    for t in range(n_tokens):
        for i in range(first, whole, 8):
            at = 4 * (t * width + i)
            store(outs, at, _silu(load(f32x8, gates, at)) * load(f32x8, ups, at))
        for i in range(whole, last):
            out[t, i] = first_lane(_silu(splat(f32x8, gate[t, i]))) * up[t, i]


@inlined
def _silu(g):
    return g / (splat(f32x8, 1) + exp8(splat(f32x8, 0) - g))


_SWIGLU = int64_record("gate", "up", "out", "width")


@kernel
def _swiglu(operands, run, n, first, last, worker):
    """Columns [first, last) of n tokens."""
    o = carray(pointer(operands), 1, _SWIGLU)[0]
    swiglu(floats_at(o.gate, n, o.width), floats_at(o.up, n, o.width), first, last, floats_at(o.out, n, o.width))


class SwiGlu(Operation):
    """out = silu(gate) * up, as soon as the rows of both matrices are there."""

    unit, job = "row", _swiglu

    def __init__(self, name: str, gate: str, up: str, out: str) -> None:
        super().__init__(name, {name: out})
        self.gate, self.up, self.out = gate, up, out

    def units(self, config: Config) -> int:
        return config.ffn_width

    def bind(self, memory: Memory, layer: int) -> np.ndarray:
        return record_of(
            _SWIGLU, gate=memory.address(self.gate), up=memory.address(self.up), out=memory.address(self.out),
            width=memory.config.ffn_width,
        )  # fmt: skip
