"""RoPE: each pair of values of a head is turned by an angle that grows with the token's position."""

from __future__ import annotations

import math

import numpy as np
from numba import carray

from minfer_lib.model.config import Config
from minfer_lib.model.heads import QKV, K, Q, V, head_of, qkv_fields
from minfer_lib.model.kv_cache import store_f16
from minfer_lib.model.memory import Memory
from minfer_lib.model.operation import Operation
from minfer_lib.model.run import RUN
from minfer_lib.native.address import floats_at, int64_record, pointer, record_of
from minfer_lib.native.jit import kernel


def rope_frequencies(config: Config, factors: np.ndarray | None) -> np.ndarray:
    """f64[rope_dim / 2]: by how many radians each pair turns from one position to the next.

    base^(-2i / dim), divided by factor_i where the file has such (Llama 3), and by the scaling's factor: linear divides
    all, YaRN only the slow pairs, which did not turn once in the context that the model was trained for.
    Source: ggml `ops.cpp` (rope_yarn, rope_yarn_ramp), `ggml.c` (ggml_rope_yarn_corr_dims).
    """
    dim = config.rope_dim
    frequencies = config.rope_base ** (-2.0 * np.arange(dim // 2) / dim)
    if factors is not None:
        frequencies = frequencies / factors
    if config.rope_scaling == "yarn":
        return frequencies * (_kept(config) + (1 - _kept(config)) / config.rope_factor)
    return frequencies / config.rope_factor


def _kept(config: Config) -> np.ndarray:
    """f64[rope_dim / 2], for YaRN: 1 for pairs that turn 32 times or more in rope_context, 0 for less than once."""
    dim, base, context = config.rope_dim, config.rope_base, config.rope_context

    def pair(turns: int) -> float:
        """Which pair, as a real number, turns so many times."""
        return dim * math.log(context / (turns * 2 * math.pi)) / (2 * math.log(base))

    first, last = max(0, math.floor(pair(32))), min(dim - 1, math.ceil(pair(1)))
    return 1 - np.clip((np.arange(dim // 2) - first) / max(0.001, last - first), 0, 1)


def rope_angles(positions: np.ndarray, frequencies: np.ndarray, magnitude: float) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin of position * frequency, times `magnitude`, each f32[n_tokens, rope_dim / 2]."""
    angles = positions[:, None] * frequencies
    return (magnitude * np.cos(angles)).astype(np.float32), (magnitude * np.sin(angles)).astype(np.float32)


@kernel
def rope_pairs(x, cos, sin):
    """Rotate one head, x: f32[2 * half], in place: pair (2i, 2i + 1) by the angle whose cos and sin are f32[half].

    This is ggml's NORM order, which llama files are converted to.
    """
    for i in range(cos.size):
        even, odd = x[2 * i], x[2 * i + 1]
        x[2 * i] = even * cos[i] - odd * sin[i]
        x[2 * i + 1] = even * sin[i] + odd * cos[i]


@kernel
def rope_halves(x, cos, sin):
    """As rope_pairs, for the pairs (i, half + i): ggml's NEOX order, in which Qwen's models are trained."""
    half = cos.size
    for i in range(half):
        left, right = x[i], x[half + i]
        x[i] = left * cos[i] - right * sin[i]
        x[half + i] = left * sin[i] + right * cos[i]


_ROPE = int64_record(*QKV, "keys", "values", "context", "halves")


@kernel
def _rope(operands, run, n, first, last, worker):
    """Heads [first, last) of q, k and v of n tokens: those of q and k turned, those of k and v into the cache."""
    o, r = carray(pointer(operands), 1, _ROPE)[0], carray(pointer(run), 1, RUN)[0]
    cos, sin = floats_at(r.cos, n, o.head_dim // 2), floats_at(r.sin, n, o.head_dim // 2)
    for unit in range(first, last):
        whose, t, head, address = head_of(o, unit)
        values = floats_at(address, 1, o.head_dim)[0]
        if whose != V:
            if o.halves:
                rope_halves(values, cos[t], sin[t])
            else:
                rope_pairs(values, cos[t], sin[t])
        if whose != Q:
            cache = carray(
                pointer(o.keys if whose == K else o.values), (o.n_kv_heads, o.context, o.head_dim), np.uint16
            )
            store_f16(values, cache[head, r.position + t])


class Rope(Operation):
    """Turn each head of q and k by its position, and append k and v to the cache as f16."""

    kind, unit, job = "attention", "head", _rope

    def __init__(self, name: str) -> None:
        super().__init__(name, {"q_rope": "q", "k_rope": "k"})

    def units(self, config: Config) -> int:
        return config.n_heads + 2 * config.n_kv_heads

    def bind(self, memory: Memory, layer: int) -> np.ndarray:
        return record_of(
            _ROPE, **qkv_fields(memory), keys=memory.address("keys", layer), values=memory.address("values", layer),
            context=memory.cache.keys.shape[2], halves=memory.config.kind.rope_order == "halves",
        )  # fmt: skip
