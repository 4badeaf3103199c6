"""RMSNorm: a token's values divided by their root mean square, times a learned weight each."""

from __future__ import annotations

import numpy as np
from numba import carray

from minfer_lib.model.config import Config
from minfer_lib.model.memory import Memory
from minfer_lib.model.operation import Operation
from minfer_lib.model.run import RUN
from minfer_lib.native.address import floats_at, int64_record, pointer, record_of
from minfer_lib.native.jit import kernel


@kernel
def rms_norm(x, weight, eps, out):
    """x, out: f32[n_tokens, width]; out = x / sqrt(mean(x²) + eps) * weight, squares summed in double as ggml does."""
    n_tokens, width = x.shape
    for t in range(n_tokens):
        total = 0.0
        for i in range(width):
            total += np.float64(x[t, i] * x[t, i])
        scale = np.float32(1) / np.sqrt(np.float32(total / width) + np.float32(eps))
        for i in range(width):
            out[t, i] = x[t, i] * scale * weight[i]


_NORM = np.dtype([*int64_record("x", "weight", "out", "out_own", "width").descr, ("eps", np.float64)])


@kernel
def _norm(operands, run, n, first, last, worker):
    """Tokens [first, last) of the last n. A single one is written to the worker's own row."""
    o, r = carray(pointer(operands), 1, _NORM)[0], carray(pointer(run), 1, RUN)[0]
    row_bytes = 4 * o.width
    x = floats_at(o.x + (r.n_tokens - n + first) * row_bytes, last - first, o.width)
    out = o.out + first * row_bytes + (worker * o.out_own if n == 1 else 0)
    rms_norm(x, floats_at(o.weight, 1, o.width)[0], o.eps, floats_at(out, last - first, o.width))


class Norm(Operation):
    """out = the norm of x, token by token."""

    unit, job = "token", _norm

    def __init__(self, name: str, x: str, weight: np.ndarray, out: str) -> None:
        super().__init__(name, {name: out})
        self.x, self.weight, self.out = x, weight, out

    def units(self, config: Config) -> int:
        return 1

    def prepare(self, memory: Memory) -> None:
        memory.own.add(self.out)

    def bind(self, memory: Memory, layer: int) -> np.ndarray:
        return record_of(
            _NORM, x=memory.address(self.x), weight=self.weight.ctypes.data, out=memory.address(self.out),
            out_own=memory.own_bytes(self.out), width=self.weight.size, eps=memory.config.norm_eps,
        )  # fmt: skip
