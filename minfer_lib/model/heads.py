"""What is done to the heads of q, k and v one by one: biases and norms. A unit is one head of one token."""

from __future__ import annotations

import numpy as np
from numba import carray

from minfer_lib.model.config import Config
from minfer_lib.model.memory import Memory
from minfer_lib.model.norm import rms_norm
from minfer_lib.model.operation import Operation
from minfer_lib.native.address import floats_at, int64_record, pointer, record_of
from minfer_lib.native.jit import kernel

QKV = ("q", "k", "v", "n_heads", "n_kv_heads", "head_dim")  # the fields by which head_of finds a head
Q, K, V = 0, 1, 2


@kernel
def head_of(o, unit):
    """Whose head unit `unit` is, Q, K or V; its token; its number among that token's heads; the address of its values.

    Token by token, first the heads of q, then those of k and v. o: a record with the fields QKV.
    """
    each = o.n_heads + 2 * o.n_kv_heads
    t, head = unit // each, unit % each
    if head < o.n_heads:
        return Q, t, head, o.q + 4 * (t * o.n_heads + head) * o.head_dim
    head -= o.n_heads
    if head < o.n_kv_heads:
        return K, t, head, o.k + 4 * (t * o.n_kv_heads + head) * o.head_dim
    head -= o.n_kv_heads
    return V, t, head, o.v + 4 * (t * o.n_kv_heads + head) * o.head_dim


def qkv_fields(memory: Memory) -> dict[str, int]:
    """The fields QKV of an operation's record."""
    sizes = {name: getattr(memory.config, name) for name in QKV[3:]}
    return {name: memory.address(name) for name in QKV[:3]} | sizes


_BIAS = int64_record(*QKV, "q_bias", "k_bias", "v_bias")  # 0: there is none


@kernel
def _bias(operands, run, n, first, last, worker):
    """Heads [first, last) of q, k and v, each with its values of the bias added."""
    o = carray(pointer(operands), 1, _BIAS)[0]
    for unit in range(first, last):
        whose, _, head, address = head_of(o, unit)
        bias = o.q_bias if whose == Q else o.k_bias if whose == K else o.v_bias
        if bias != 0:
            values, added = floats_at(address, 1, o.head_dim)[0], floats_at(bias, head + 1, o.head_dim)[head]
            for i in range(o.head_dim):
                values[i] += added[i]


class Bias(Operation):
    """q, k and v += their biases, f32[heads * head_dim] each, where the model has them."""

    kind, unit, job = "attention", "head", _bias

    def __init__(self, name: str, **biases: np.ndarray | None) -> None:
        super().__init__(name, {f"{of}_bias": of for of, bias in biases.items() if bias is not None})
        self.biases = biases

    def units(self, config: Config) -> int:
        return config.n_heads + 2 * config.n_kv_heads

    def bind(self, memory: Memory, layer: int) -> np.ndarray:
        addresses = {f"{of}_bias": 0 if b is None else b.ctypes.data for of, b in self.biases.items()}
        return record_of(_BIAS, **qkv_fields(memory), **addresses)


_HEAD_NORM = np.dtype([*int64_record(*QKV, "q_norm", "k_norm").descr, ("eps", np.float64)])


@kernel
def _head_norm(operands, run, n, first, last, worker):
    """Heads [first, last) of q, k and v: those of q and k through their norms."""
    o = carray(pointer(operands), 1, _HEAD_NORM)[0]
    for unit in range(first, last):
        whose, _, _, address = head_of(o, unit)
        if whose != V:
            values, weight = floats_at(address, 1, o.head_dim), o.q_norm if whose == Q else o.k_norm
            rms_norm(values, floats_at(weight, 1, o.head_dim)[0], o.eps, values)


class HeadNorm(Operation):
    """Each head of q and of k through a norm with weights f32[head_dim], before RoPE."""

    kind, unit, job = "attention", "head", _head_norm

    def __init__(self, name: str, q: np.ndarray, k: np.ndarray) -> None:
        super().__init__(name, {"q_norm": "q", "k_norm": "k"})
        self.q, self.k = q, k

    def units(self, config: Config) -> int:
        return config.n_heads + 2 * config.n_kv_heads

    def bind(self, memory: Memory, layer: int) -> np.ndarray:
        return record_of(
            _HEAD_NORM, **qkv_fields(memory), q_norm=self.q.ctypes.data, k_norm=self.k.ctypes.data,
            eps=memory.config.norm_eps,
        )  # fmt: skip
