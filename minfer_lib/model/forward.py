"""One pass of some tokens through the model: ids -> logits of the last one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minfer_lib.matmul.chunks import even_split
from minfer_lib.matmul.pool import par_for
from minfer_lib.matmul.rows import Matrix, multiply
from minfer_lib.model.attention import attend
from minfer_lib.model.config import Config
from minfer_lib.model.kv_cache import KvCache, store_f16
from minfer_lib.model.norm_rope import rms_norm, rope_angles, rope_pairs, swiglu
from minfer_lib.model.weights import Weights
from minfer_lib.quantize.activations import activation_rows

Watch = Callable[[str, np.ndarray], None]  # called with every stage's name and its array, f32[n_tokens, …]

LAYER_STAGES = (
    "attn_norm", "q", "k", "v", "q_rope", "k_rope", "heads", "attn_output", "after_attention",
    "ffn_norm", "gate", "up", "swiglu", "ffn_down", "after_ffn",
)  # fmt: skip
STAGES = ("embedding", *LAYER_STAGES, "output_norm", "logits")  # each once, in order


def unwatched(name: str, array: np.ndarray) -> None:
    """The watch of a pass that nobody looks at."""


class Forward:
    """The model's arithmetic over one cache: call it with tokens and the position of the first."""

    def __init__(self, config: Config, weights: Weights, cache: KvCache, threads: int) -> None:
        self.config, self.weights, self.cache, self.threads = config, weights, cache, threads

    def __call__(self, ids: list[int], position: int, watch: Watch = unwatched, wanted: int = 1) -> np.ndarray:
        """Tokens `ids` at position, position + 1 … -> f32[wanted, n_vocab], the logits after the last `wanted` tokens.

        Fills the cache. Only the wanted rows go through the output matrix: to continue a text, the last is enough.
        """
        config, weights = self.config, self.weights
        x = weights.embed(ids)  # the residual stream: every layer adds to it
        watch("embedding", x)
        positions = np.arange(position, position + len(ids))
        angles = rope_angles(positions, config.rope_dim, config.rope_base, weights.rope_factors)
        for i in range(config.n_layers):
            self._layer(i, x, position, angles, lambda stage, array, i=i: watch(f"blk.{i}.{stage}", array))
        h = self._norm(x[len(ids) - wanted :], weights.output_norm)
        watch("output_norm", h)
        (logits,) = self._project(h, weights.output)
        watch("logits", logits)
        return logits

    def _layer(self, i: int, x: np.ndarray, position: int, angles: tuple, watch: Watch) -> None:
        """x: f32[n_tokens, width] += attention(norm(x)), then += feed_forward(norm(x))"""
        layer = self.weights.layers[i]
        h = self._norm(x, layer.attn_norm)
        watch("attn_norm", h)
        x += self._attention(i, h, position, angles, watch)
        watch("after_attention", x)
        h = self._norm(x, layer.ffn_norm)
        watch("ffn_norm", h)
        x += self._feed_forward(i, h, watch)
        watch("after_ffn", x)

    def _attention(self, i: int, h: np.ndarray, position: int, angles: tuple, watch: Watch) -> np.ndarray:
        layer, config = self.weights.layers[i], self.config
        keys, values = self.cache.keys[i], self.cache.values[i]
        q, k, v = self._project(h, layer.q, layer.k, layer.v)
        watch("q", q)
        watch("k", k)
        watch("v", v)
        rope_pairs(q, *angles)
        rope_pairs(k, *angles)
        watch("q_rope", q)
        watch("k_rope", k)
        store_f16(k, position, keys)
        store_f16(v, position, values)
        heads = np.empty_like(q)

        def attend_part(part: int) -> None:
            first, last = even_split(part, self.threads, len(h) * config.n_heads)
            attend(q, keys, values, position, config.attention_scale, first, last, heads)

        par_for(self.threads, attend_part)
        watch("heads", heads)
        (out,) = self._project(heads, layer.attn_output)
        watch("attn_output", out)
        return out

    def _feed_forward(self, i: int, h: np.ndarray, watch: Watch) -> np.ndarray:
        layer = self.weights.layers[i]
        gate, up = self._project(h, layer.gate, layer.up)
        watch("gate", gate)
        watch("up", up)
        swiglu(gate, up)
        watch("swiglu", gate)
        (out,) = self._project(gate, layer.down)
        watch("ffn_down", out)
        return out

    def _norm(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        rms_norm(x, weight, self.config.norm_eps, out)
        return out

    def _project(self, h: np.ndarray, *matrices: Matrix) -> list[np.ndarray]:
        """h times each matrix; the activations are quantized once for all that take the same format."""
        rows = {name: activation_rows(name, h) for name in {m.activation for m in matrices}}
        return [multiply(m, rows[m.activation], self.threads) for m in matrices]
