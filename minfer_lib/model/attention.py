"""Attention of each query head over the cached keys and values (seed 1 §5: one head a piece of parallel work)."""

from __future__ import annotations

import numpy as np

from minfer_lib.jit import kernel
from minfer_lib.simd.ops import f16_to_f32


@kernel
def attend(q, keys, values, position, scale, first, last, out):
    """Pieces [first, last) of n_tokens * n_heads; piece p is head p % n_heads of token p // n_heads.

    q, out: f32[n_tokens, n_heads * head_dim]; keys, values: uint16 (f16 bits) [n_kv_heads, context, head_dim].
    Token t stands at position + t and sees the keys up to its own. softmax(q·k * scale) · v, max subtracted first,
    the exponentials summed in double as ggml does.
    """
    n_kv_heads, _, head_dim = keys.shape
    n_heads = q.shape[1] // head_dim
    group = n_heads // n_kv_heads  # query heads that share a key/value head
    for piece in range(first, last):
        t, h = piece // n_heads, piece % n_heads
        kv, at = h // group, h * head_dim
        n_keys = position + t + 1
        scores = np.empty(n_keys, np.float32)
        highest = np.float32(-np.inf)
        for j in range(n_keys):
            score = np.float32(0)
            for i in range(head_dim):
                score += q[t, at + i] * f16_to_f32(keys[kv, j, i])
            scores[j] = score * np.float32(scale)
            highest = max(highest, scores[j])
        total = 0.0
        for j in range(n_keys):
            scores[j] = np.exp(scores[j] - highest)
            total += scores[j]
        out[t, at : at + head_dim] = 0
        for j in range(n_keys):
            weight = scores[j] / np.float32(total)
            for i in range(head_dim):
                out[t, at + i] += weight * f16_to_f32(values[kv, j, i])
