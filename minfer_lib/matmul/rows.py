"""mm_rows: one worker's rows of a matrix product."""

from __future__ import annotations

from minfer_lib.dot.kernel_key import dot_rows
from minfer_lib.dot.prefetch_ahead import AHEAD, prefetch_lines
from minfer_lib.native.address import bytes_at, floats_at
from minfer_lib.native.jit import kernel

ROWS_IN_CACHE = 16  # with several tokens: so many rows are read from the cache by all of them


@kernel
def mm_rows(dot, w, w_at, row_bytes, first, last, a, n_blocks, out):
    """Rows [first, last) of the matrix at byte w_at of w, times every token. Seed 1 §3.2, mm_rows.

    w: uint8[:]; a: uint8[n_tokens, a_row_bytes]; out: f32[n_tokens, n_out], token-major.
    Each row is written by one worker and summed in one order: the same bits at any number of threads.
    """
    n_tokens, a_row_bytes = a.shape
    a_flat = a.reshape(a.size)
    step = max(1, last - first) if n_tokens == 1 else ROWS_IN_CACHE  # a worker may have no rows at all
    for o in range(first, last, step):
        for t in range(n_tokens):
            dot_rows(dot, w, w_at, row_bytes, o, min(o + step, last), a_flat, t * a_row_bytes, n_blocks, out, t)


@kernel
def rows_at(dot, w, row_bytes, first, last, a, a_row_bytes, n_tokens, n_blocks, out, n_out):
    """mm_rows by addresses: w of the matrix, a and out of the first token."""
    weights = bytes_at(w, last * row_bytes)
    start = first * row_bytes  # the dots ask for what is AHEAD bytes on; what comes before that, for all of it at once
    prefetch_lines(weights, start, min(AHEAD, weights.size - start))
    activations = bytes_at(a, n_tokens * a_row_bytes).reshape(n_tokens, a_row_bytes)
    mm_rows(dot, weights, 0, row_bytes, first, last, activations, n_blocks, floats_at(out, n_tokens, n_out))
