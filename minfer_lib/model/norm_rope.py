"""The small stages between the matrix products: RMSNorm, RoPE, SwiGLU."""

from __future__ import annotations

import numpy as np

from minfer_lib.jit import kernel


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


def rope_angles(
    positions: np.ndarray, dim: int, base: float, factors: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin, each f32[n_tokens, dim / 2], of position * base^(-2i / dim) / factor_i."""
    frequencies = base ** (-2.0 * np.arange(dim // 2) / dim)
    if factors is not None:
        frequencies = frequencies / factors
    angles = positions[:, None] * frequencies
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


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
def swiglu(gate, up, first, last, out):
    """out = silu(gate) * up in columns [first, last) of f32[n_tokens, ffn_width]."""
    for t in range(gate.shape[0]):
        for i in range(first, last):
            g = gate[t, i]
            out[t, i] = g / (np.float32(1) + np.exp(-g)) * up[t, i]
