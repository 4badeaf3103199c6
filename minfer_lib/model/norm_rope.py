"""The small stages between the matrix products: RMSNorm, RoPE, SwiGLU."""

from __future__ import annotations

import math

import numpy as np

from minfer_lib.model.config import Config
from minfer_lib.native.jit import inlined, kernel
from minfer_lib.simd.exp import exp8
from minfer_lib.simd.ops import first as first_lane
from minfer_lib.simd.ops import load, splat, store
from minfer_lib.simd.registers import f32x8


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
