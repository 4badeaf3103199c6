"""Attention of four tokens at once has the bits of one after the other, however the work is shared out."""

import numpy as np
import pytest

from minfer_lib.matmul.chunks import even_split
from minfer_lib.model.attention import attend
from minfer_lib.model.attention_fours import attend_fours, tokens_together


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize(
    ("n_tokens", "position", "n_heads", "n_kv_heads", "head_dim"),
    [(4, 0, 9, 3, 64), (5, 3, 4, 2, 32), (7, 0, 4, 1, 96), (33, 20, 3, 3, 64), (6, 2, 3, 3, 40), (9, 1, 2, 1, 8)],
)
def test_four_tokens_at_once(n_tokens, position, n_heads, n_kv_heads, head_dim, workers):
    rng, context = np.random.default_rng(n_tokens), position + n_tokens + 3
    q = rng.standard_normal((n_tokens, n_heads * head_dim)).astype(np.float32)
    keys, values = rng.standard_normal((2, n_kv_heads, context, head_dim)).astype(np.float16).view(np.uint16)
    values[:, position + n_tokens :] = 0x7E00  # NaN: nobody looks behind the last token
    right, out = np.zeros_like(q), np.zeros_like(q)
    attend(q, keys, values, position, 0.125, 0, n_tokens * n_heads, np.zeros(context, np.float32), right)
    units = n_heads * (n_tokens // tokens_together(head_dim) + n_tokens % tokens_together(head_dim))
    for worker in range(workers):
        scores, (first, last) = np.full((4, context), np.nan, np.float32), even_split(worker, workers, units)
        attend_fours(q, keys, values, position, 0.125, first, last, scores, out)
    assert np.array_equal(out, right) and np.isfinite(out).all()


def test_a_token_does_not_see_those_after_it():
    """Infinite values of the next token, in the same four, leave no trace."""
    rng = np.random.default_rng(1)
    q = rng.standard_normal((4, 32)).astype(np.float32)
    keys, values = rng.standard_normal((2, 1, 4, 32)).astype(np.float16)
    values[0, 2] = np.inf
    out = np.zeros_like(q)
    attend_fours(q, keys.view(np.uint16), values.view(np.uint16), 0, 1.0, 0, 1, np.zeros((4, 4), np.float32), out)
    assert np.isfinite(out[:2]).all() and np.isinf(out[2:]).all()
