"""The keys and values of every token so far, as f16: what a token attends to."""

from __future__ import annotations

import math

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.model.config import Config
from minfer_lib.native.jit import kernel
from minfer_lib.simd.ops import f32_to_f16


class KvCache:
    """keys, values: uint16[n_layers, n_kv_heads, context, head_dim], the bits of f16 numbers.

    The arrays start as untouched zero pages, so memory is taken as tokens come, not when the cache is made.
    """

    def __init__(self, config: Config, context: int) -> None:
        shape = (config.n_layers, config.n_kv_heads, context, config.head_dim)
        try:
            self.keys, self.values = np.zeros(shape, np.uint16), np.zeros(shape, np.uint16)
        except MemoryError:
            raise ArgumentError(
                f"a context of {context} tokens needs {4 * math.prod(shape) / 1e9:.0f} GB, which this machine does not "
                "have. Load the model with a smaller context=."
            ) from None


@kernel
def store_f16(x, cache):
    """x: f32[head_dim] -> cache: uint16[head_dim], the bits of f16 numbers."""
    for i in range(x.size):
        cache[i] = f32_to_f16(x[i])
