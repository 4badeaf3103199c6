"""The forward pass as compiled code: a job whose parts go through the steps of every layer side by side.

Every part runs this same program. A step is split by rows, heads or tokens, and a barrier after it lets all see what it
wrote. With one token the small steps (norm, quantize) are not worth a barrier: each part does the whole of them, in
buffers of its own.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from minfer_lib.matmul.chunks import chunk_bounds, even_split, ggml_chunks, next_chunk
from minfer_lib.matmul.panels import fill_panels
from minfer_lib.matmul.tiles import TILES_FROM
from minfer_lib.model.attention_fours import attend_fours
from minfer_lib.model.kv_cache import store_f16
from minfer_lib.model.norm_rope import rms_norm, rope_halves, rope_pairs, swiglu
from minfer_lib.native.address import call_quantizer, call_rows, floats_at, pointer, words_at
from minfer_lib.native.clock import ticks
from minfer_lib.native.jit import kernel
from minfer_lib.native.pool import barrier

# The kinds of step. Those of a layer, in order (BIAS and HEAD_NORM only where it has such vectors); then the last two.
STEPS = (
    *("attn_norm", "qkv", "bias", "head_norm", "rope", "attention", "attn_quantize", "attn_output"),
    *("ffn_norm", "gate_up", "act_quantize", "ffn_down", "output_norm", "logits"),
)
ATTN_NORM, QKV, BIAS, HEAD_NORM, ROPE, HEADS, HEADS_ROWS, ATTN_OUTPUT = range(8)
FFN_NORM, GATE_UP, ACT_ROWS, FFN_DOWN, OUTPUT_NORM, LOGITS = range(8, 14)

# The matrices of a layer, in the order of `PASS.matrices`; the output matrix is the last of all.
Q, K, V, HEADS_OUT, GATE, UP, DOWN = range(7)
LAYER_MATRICES = 7

GATE_ROWS = 128  # with several tokens so many at a time: SwiGLU reads their products from the core's own cache


def _record(*names: str) -> np.dtype:
    return np.dtype([(name, np.int64) for name in names])


STEP = _record("layer", "kind")  # kind: ATTN_NORM … LOGITS

# An activation format: address of its quantizer (0: plain float32), its block, and buffers: for rows of blocks, and for
# the same laid out for tiles (0: no matrix takes them so).
FORM = _record("quantize", "block_values", "block_bytes", "rows", "panels")

MATRIX = _record("rows_function", "tiles_function", "w", "row_bytes", "n_out", "n_in", "n_blocks", "form")

# The addresses of a layer's vectors (0: it has none) and of its part of the cache.
LAYER = _record("attn_norm", "ffn_norm", "q_bias", "k_bias", "v_bias", "q_norm", "k_norm", "keys", "values")

# One pass: what to do, the model's numbers, and the addresses of its tables and of the buffers between steps.
PASS = np.dtype(
    _record(
        *("control", "first_step", "last_step", "bad", "n_tokens", "position", "wanted", "claim", "counters", "spent"),
        *("n_layers", "width", "ffn_width", "n_heads", "n_kv_heads", "head_dim", "context", "rope_halves"),
        *("steps", "layers", "matrices", "forms", "n_forms", "output_norm", "scratch", "scratch_bytes"),
        *("x", "h", "q", "k", "v", "heads", "scores", "out", "gate", "up", "act", "cos", "sin", "logits"),
    ).descr
    + [("eps", np.float64), ("scale", np.float64)]
)


@kernel
def forward_job(argument, part, parts):
    """Job: steps [first_step, last_step) of the PASS at `argument`.

    The last part, the caller's, adds the ticks between one barrier and the next to its word of `spent`, int64[STEPS].
    """
    p = carray(pointer(argument), 1, PASS)[0]
    spent, start = words_at(p.spent, LOGITS + 1), ticks()
    steps = carray(pointer(p.steps), p.last_step, STEP)
    for step in range(p.first_step, p.last_step):
        kind = steps[step].kind
        if kind < OUTPUT_NORM:
            _layer_step(p, steps[step].layer, kind, part, parts)
            own = kind == ATTN_NORM or kind == HEADS_ROWS or kind == FFN_NORM or kind == ACT_ROWS
            alone = p.n_tokens == 1
            own_heads = kind == BIAS or kind == HEAD_NORM  # which the same part rotates next
        else:
            _last_step(p, kind, part, parts)
            own, alone, own_heads = kind == OUTPUT_NORM, p.wanted == 1, False
        if not (own and alone or own_heads):
            barrier(p.control, parts)
        if part == parts - 1:
            end = ticks()
            spent[kind] += end - start
            start = end


@kernel
def _layer_step(p, layer, kind, part, parts):
    at = carray(pointer(p.layers), p.n_layers, LAYER)[layer]
    first_matrix = layer * LAYER_MATRICES
    if kind == ATTN_NORM:
        _norm(p, at.attn_norm, 0, p.n_tokens, first_matrix + Q, first_matrix + V, part, parts)
    elif kind == QKV:
        _rows(p, first_matrix + Q, p.h, p.n_tokens, p.q, False, part, parts)
        _rows(p, first_matrix + K, p.h, p.n_tokens, p.k, False, part, parts)
        _rows(p, first_matrix + V, p.h, p.n_tokens, p.v, False, part, parts)
    elif kind == BIAS:
        _add_bias(p, p.q, at.q_bias, p.n_heads, part, parts)
        _add_bias(p, p.k, at.k_bias, p.n_kv_heads, part, parts)
        _add_bias(p, p.v, at.v_bias, p.n_kv_heads, part, parts)
    elif kind == HEAD_NORM:
        _norm_heads(p, p.q, at.q_norm, p.n_heads, part, parts)
        _norm_heads(p, p.k, at.k_norm, p.n_kv_heads, part, parts)
    elif kind == ROPE:
        _rope_and_store(p, at, part, parts)
    elif kind == HEADS:
        _attend(p, at, part, parts)
    elif kind == HEADS_ROWS:
        _quantize(p, p.heads, p.n_tokens, first_matrix + HEADS_OUT, first_matrix + HEADS_OUT, part, parts)
    elif kind == ATTN_OUTPUT:
        _rows(p, first_matrix + HEADS_OUT, p.heads, p.n_tokens, p.out, True, part, parts)
    elif kind == FFN_NORM:
        _norm(p, at.ffn_norm, 0, p.n_tokens, first_matrix + GATE, first_matrix + UP, part, parts)
    elif kind == GATE_UP:
        _gate_up(p, first_matrix, part, parts)
    elif kind == ACT_ROWS:
        _quantize(p, p.act, p.n_tokens, first_matrix + DOWN, first_matrix + DOWN, part, parts)
    else:
        _rows(p, first_matrix + DOWN, p.act, p.n_tokens, p.out, True, part, parts)


@kernel
def _last_step(p, kind, part, parts):
    output = p.n_layers * LAYER_MATRICES
    if kind == OUTPUT_NORM:
        _norm(p, p.output_norm, p.n_tokens - p.wanted, p.wanted, output, output, part, parts)
    else:
        _rows(p, output, p.h, p.wanted, p.logits, False, part, parts)


@kernel
def _norm(p, weight, start, count, first_matrix, last_matrix, part, parts):
    """h = norm of x's rows from `start` on, and its rows in the formats that matrices first … last take."""
    first, last, offset = _own_rows(count, part, parts)
    x, h = floats_at(p.x, p.n_tokens, p.width), floats_at(p.h, last + offset, p.width)
    w = floats_at(weight, 1, p.width)[0]
    rms_norm(x[start + first : start + last], w, p.eps, h[offset + first : offset + last])
    _quantize(p, p.h, count, first_matrix, last_matrix, part, parts)


@kernel
def _own_rows(count, part, parts):
    """Rows first, last of `count` that this part makes, and where its buffer begins: a single row is made by each."""
    if count == 1:
        return 0, 1, part
    first, last = even_split(part, parts, count)
    return first, last, 0


@kernel
def _quantize(p, source, count, first_matrix, last_matrix, part, parts):
    """Rows of float32 at `source` -> the buffers of the activation formats that matrices first … last take."""
    matrices = carray(pointer(p.matrices), p.n_layers * LAYER_MATRICES + 1, MATRIX)
    forms = carray(pointer(p.forms), p.n_forms, FORM)
    n = matrices[first_matrix].n_in
    first, last, offset = _own_rows(count, part, parts)
    from_own = offset if source == p.h else 0  # only h has a row a part; heads and act are everybody's
    for form in range(p.n_forms):
        f = forms[form]
        wanted = False
        for m in range(first_matrix, last_matrix + 1):
            wanted |= matrices[m].form == form
        if wanted and f.quantize != 0:
            row_bytes = n // f.block_values * f.block_bytes
            x = source + (from_own + first) * n * 4
            out = f.rows + (offset + first) * row_bytes
            if call_quantizer(f.quantize, x, last - first, n, out) == 0:
                p.bad = 1
            if f.panels != 0 and count >= TILES_FROM:
                fill_panels(f.block_values, f.rows, row_bytes, first, last, n // f.block_values, f.panels)


@kernel
def _rows(p, index, source, count, out, residual, part, parts):
    """out: f32[count, n_out], this part's columns = its rows of matrix `index` times `count` rows of activations.

    residual: they are added to x too.
    """
    rows = carray(pointer(p.matrices), p.n_layers * LAYER_MATRICES + 1, MATRIX)[index].n_out
    chunks, chunk = _chunks(p, rows, parts), part
    while chunk < chunks:
        first, last, _, _ = chunk_bounds(p.claim == 0, chunk, chunks, 1, rows, 1)
        _chunk(p, index, source, count, out, first, last, part)
        if residual:
            _add(p, first, last)
        chunk = _next(p, index, chunks, parts)


@kernel
def _gate_up(p, first_matrix, part, parts):
    """act = silu(gate) * up, each chunk as soon as its rows of both matrices are there."""
    n, width = p.n_tokens, p.ffn_width
    chunks, chunk = _chunks(p, width, parts), part
    while chunk < chunks:
        first, last, _, _ = chunk_bounds(p.claim == 0, chunk, chunks, 1, width, 1)
        step = GATE_ROWS if n > 1 else width
        for row in range(first, last, step):
            end = min(row + step, last)
            _chunk(p, first_matrix + GATE, p.h, n, p.gate, row, end, part)
            _chunk(p, first_matrix + UP, p.h, n, p.up, row, end, part)
            swiglu(floats_at(p.gate, n, width), floats_at(p.up, n, width), row, end, floats_at(p.act, n, width))
        chunk = _next(p, first_matrix + GATE, chunks, parts)


@kernel
def _chunks(p, rows, parts):
    """Into how many chunks the rows of a matrix are cut: one a part, or as ggml does for a vector."""
    return ggml_chunks(rows, 1, parts)[0] if p.claim else parts


@kernel
def _next(p, index, chunks, parts):
    """The next chunk of matrix `index` for this part; `chunks` where there is none. Each matrix has a counter."""
    return next_chunk(p.counters + 8 * index, chunks, parts) if p.claim else chunks


@kernel
def _chunk(p, index, source, count, out, first, last, part):
    """Rows [first, last) of matrix `index` times `count` rows of activations, in the format that it takes."""
    m = carray(pointer(p.matrices), p.n_layers * LAYER_MATRICES + 1, MATRIX)[index]
    f = carray(pointer(p.forms), p.n_forms, FORM)[m.form]
    if m.tiles_function != 0 and count >= TILES_FROM:
        scratch = p.scratch + part * p.scratch_bytes  # a worker's own
        call_rows(m.tiles_function, m.w, m.row_bytes, first, last, f.panels, scratch, count, m.n_blocks, out, m.n_out)
        return
    own = part if count == 1 else 0
    if f.quantize != 0:
        a_row_bytes = m.n_in // f.block_values * f.block_bytes
        a = f.rows + own * a_row_bytes
    else:
        a_row_bytes = 4 * m.n_in
        a = source + (own * a_row_bytes if source == p.h else 0)
    call_rows(m.rows_function, m.w, m.row_bytes, first, last, a, a_row_bytes, count, m.n_blocks, out, m.n_out)


@kernel
def _add(p, first, last):
    """x += out in columns [first, last)"""
    x, out = floats_at(p.x, p.n_tokens, p.width), floats_at(p.out, p.n_tokens, p.width)
    for t in range(p.n_tokens):
        for i in range(first, last):
            x[t, i] += out[t, i]


@kernel
def _cache(p, address):
    """uint16[n_kv_heads, context, head_dim]"""
    return carray(pointer(address), (p.n_kv_heads, p.context, p.head_dim), np.uint16)


@kernel
def _add_bias(p, x, bias, n_heads, part, parts):
    """This part's heads of x, f32[n_tokens, n_heads * head_dim], += those of the bias. A piece is a token's head."""
    if bias != 0:
        heads, biases = floats_at(x, p.n_tokens * n_heads, p.head_dim), floats_at(bias, n_heads, p.head_dim)
        first, last = even_split(part, parts, p.n_tokens * n_heads)
        for piece in range(first, last):
            for i in range(p.head_dim):
                heads[piece, i] += biases[piece % n_heads, i]


@kernel
def _norm_heads(p, x, weight, n_heads, part, parts):
    """This part's heads of x, f32[n_tokens, n_heads * head_dim], each through the norm with f32[head_dim] weights."""
    if weight != 0:
        first, last = even_split(part, parts, p.n_tokens * n_heads)
        heads = floats_at(x, p.n_tokens * n_heads, p.head_dim)[first:last]
        rms_norm(heads, floats_at(weight, 1, p.head_dim)[0], p.eps, heads)


@kernel
def _rope_and_store(p, at, part, parts):
    """Rotate the heads of q and k; write k and v to the cache. A piece is one head of one token."""
    keys, values = _cache(p, at.keys), _cache(p, at.values)
    q = floats_at(p.q, p.n_tokens * p.n_heads, p.head_dim)
    k = floats_at(p.k, p.n_tokens * p.n_kv_heads, p.head_dim)
    v = floats_at(p.v, p.n_tokens * p.n_kv_heads, p.head_dim)
    cos = floats_at(p.cos, p.n_tokens, p.head_dim // 2)
    sin = floats_at(p.sin, p.n_tokens, p.head_dim // 2)
    first, last = even_split(part, parts, p.n_tokens * p.n_heads)
    for piece in range(first, last):
        _rope(p, q[piece], cos[piece // p.n_heads], sin[piece // p.n_heads])
    first, last = even_split(part, parts, p.n_tokens * p.n_kv_heads)
    for piece in range(first, last):
        t, head = piece // p.n_kv_heads, piece % p.n_kv_heads
        _rope(p, k[piece], cos[t], sin[t])
        store_f16(k[piece], keys[head, p.position + t])
        store_f16(v[piece], values[head, p.position + t])


@kernel
def _rope(p, head, cos, sin):
    if p.rope_halves:
        rope_halves(head, cos, sin)
    else:
        rope_pairs(head, cos, sin)


@kernel
def _attend(p, at, part, parts):
    q = floats_at(p.q, p.n_tokens, p.n_heads * p.head_dim)
    heads = floats_at(p.heads, p.n_tokens, p.n_heads * p.head_dim)
    keys, values = _cache(p, at.keys), _cache(p, at.values)
    scores = floats_at(p.scores + 16 * part * p.context, 4, p.context)
    attend_fours(q, keys, values, p.position, p.scale, part, parts, scores, heads)
