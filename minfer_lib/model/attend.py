"""Attention as an operation of the list: a head of four tokens is a unit of work."""

from __future__ import annotations

import numpy as np
from numba import carray

from minfer_lib.model.attention_fours import attend_fours, tokens_together
from minfer_lib.model.config import Config
from minfer_lib.model.memory import Memory
from minfer_lib.model.operation import Operation
from minfer_lib.model.run import RUN
from minfer_lib.native.address import floats_at, int64_record, pointer, record_of
from minfer_lib.native.jit import kernel

_ATTEND = np.dtype(
    [
        *int64_record("q", "keys", "values", "scores", "out", "n_heads", "n_kv_heads", "head_dim", "context").descr,
        ("scale", np.float64),
    ]
)


@kernel
def _attend(operands, run, n, first, last, worker):
    """Units [first, last) of `attend_fours`, for n tokens over all keys up to their own."""
    o, r = carray(pointer(operands), 1, _ATTEND)[0], carray(pointer(run), 1, RUN)[0]
    shape = o.n_kv_heads, o.context, o.head_dim
    keys, values = carray(pointer(o.keys), shape, np.uint16), carray(pointer(o.values), shape, np.uint16)
    q, out = floats_at(o.q, n, o.n_heads * o.head_dim), floats_at(o.out, n, o.n_heads * o.head_dim)
    scores = floats_at(o.scores + 16 * worker * o.context, 4, o.context)  # four rows a worker
    attend_fours(q, keys, values, r.position, o.scale, first, last, scores, out)


class Attend(Operation):
    """out = for each head of q, the values of the cache weighted by softmax(q · keys * scale)."""

    kind, unit, job = "attention", "head", _attend

    def __init__(self, name: str, q: str, out: str) -> None:
        super().__init__(name, {out: out})
        self.q, self.out = q, out

    def units(self, config: Config) -> int:
        return config.n_heads

    def tokens_together(self, config: Config) -> int:
        return tokens_together(config.head_dim)

    def bind(self, memory: Memory, layer: int) -> np.ndarray:
        c = memory.config
        return record_of(
            _ATTEND, q=memory.address(self.q), keys=memory.address("keys", layer),
            values=memory.address("values", layer), scores=memory.scores.ctypes.data, out=memory.address(self.out),
            n_heads=c.n_heads, n_kv_heads=c.n_kv_heads, head_dim=c.head_dim, context=memory.cache.keys.shape[2],
            scale=c.attention_scale,
        )  # fmt: skip
