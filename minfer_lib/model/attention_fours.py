"""Attention of four tokens at once: each key and value is read once for the four. The bits are those of `attend`.

The four see the keys up to the first one's own in common. What the later ones see beyond is added for each alone.
"""

from __future__ import annotations

import numpy as np

from minfer_lib.model.attention import attend, mix, score, softmax
from minfer_lib.native.jit import inlined, kernel
from minfer_lib.simd.ops import (
    concat,
    f16_to_f32,
    fmadd,
    high_half,
    lane,
    load,
    low_half,
    splat,
    store,
    zip_high,
    zip_low,
)
from minfer_lib.simd.registers import f32x8, f32x16, u16x8, u16x16


@kernel
def attend_fours(q, keys, values, position, scale, first, last, scores, out):
    """Units [first, last), as in attend but for scores: f32[4, position + n_tokens] or more.

    A unit is a head of four tokens; after those, a head of each token that is left over. Later tokens see more keys, so
    the first four are followed by the last, then come the second and the last but one: equal ranges are equal work.
    """
    n_kv_heads, context, head_dim = keys.shape
    n_tokens, n_heads = q.shape[0], q.shape[1] // head_dim
    group = n_heads // n_kv_heads
    q_bytes, out_bytes = q.reshape(q.size).view(np.uint8), out.reshape(out.size).view(np.uint8)
    key_bytes, value_bytes = keys.reshape(keys.size).view(np.uint8), values.reshape(values.size).view(np.uint8)
    scale_, step = np.float32(scale), 4 * n_heads * head_dim  # bytes from a token to the next
    fours = n_tokens // tokens_together(head_dim) if tokens_together(head_dim) == 4 else 0
    for unit in range(first, min(last, fours * n_heads)):
        i, head = unit // n_heads, unit % n_heads
        t = 4 * (i // 2 if i % 2 == 0 else fours - 1 - i // 2)
        at, kv_at, common = t * step + 4 * head * head_dim, 2 * (head // group) * context * head_dim, position + t + 1
        _score_four(q_bytes, at, step, key_bytes, kv_at, head_dim, scale_, common, scores)
        for i in range(4):
            seen = scores[i, : common + i]
            score(q_bytes, at + i * step, key_bytes, kv_at, head_dim, scale_, common, seen)
            softmax(seen)
        _mix_four(scores, common, value_bytes, kv_at, head_dim, out_bytes, at, step)
        for i in range(1, 4):
            mix(scores[i, : common + i], value_bytes, kv_at, head_dim, common, out_bytes, at + i * step)
    rest = 3 * fours * n_heads  # unit u of those left over is head u + rest of all tokens' heads
    first = max(first, fours * n_heads)
    attend(q, keys, values, position, scale, rest + first, max(rest + first, rest + last), scores[0], out)


@kernel
def tokens_together(head_dim):
    """Of how many tokens a unit is: the kernel for four takes heads in whole registers."""
    return 4 if head_dim % 32 == 0 else 1


@kernel
def _score_four(q, q_at, step, keys, keys_at, head_dim, scale, common, scores):
    """scores: f32[4, n], the first `common` of each row. Lanes and sums as in `score`."""
    for j in range(common):
        key_at = keys_at + 2 * j * head_dim
        a, b, c, d = splat(f32x8, 0), splat(f32x8, 0), splat(f32x8, 0), splat(f32x8, 0)
        for i in range(0, head_dim, 8):
            key, at = f16_to_f32(load(u16x8, keys, key_at + 2 * i)), q_at + 4 * i
            a = fmadd(load(f32x8, q, at), key, a)
            b = fmadd(load(f32x8, q, at + step), key, b)
            c = fmadd(load(f32x8, q, at + 2 * step), key, c)
            d = fmadd(load(f32x8, q, at + 3 * step), key, d)
        sums = _four_hsum8(a, b, c, d) * scale
        scores[0, j], scores[1, j], scores[2, j], scores[3, j] = (
            lane(sums, 0),
            lane(sums, 1),
            lane(sums, 2),
            lane(sums, 3),
        )


@inlined
def _four_hsum8(a, b, c, d):
    """f32x4: hsum8 of each, in its order."""
    a, b = low_half(a) + high_half(a), low_half(b) + high_half(b)
    c, d = low_half(c) + high_half(c), low_half(d) + high_half(d)
    ab, cd = zip_low(a, b) + zip_high(a, b), zip_low(c, d) + zip_high(c, d)  # a 0 + 2, b 0 + 2, a 1 + 3, b 1 + 3
    return concat(low_half(ab), low_half(cd)) + concat(high_half(ab), high_half(cd))


@kernel
def _mix_four(weights, common, values, values_at, head_dim, out, out_at, step):
    """out: f32[head_dim] of each token = the sum of the first `common` values by its row of weights, as in `mix`."""
    for i in range(0, head_dim, 32):
        at = out_at + 4 * i
        a0, b0, c0, d0 = splat(f32x16, 0), splat(f32x16, 0), splat(f32x16, 0), splat(f32x16, 0)
        a1, b1, c1, d1 = splat(f32x16, 0), splat(f32x16, 0), splat(f32x16, 0), splat(f32x16, 0)
        for j in range(common):
            value_at = values_at + 2 * (j * head_dim + i)
            v0, v1 = f16_to_f32(load(u16x16, values, value_at)), f16_to_f32(load(u16x16, values, value_at + 32))
            wa, wb = splat(f32x16, weights[0, j]), splat(f32x16, weights[1, j])
            wc, wd = splat(f32x16, weights[2, j]), splat(f32x16, weights[3, j])
            a0, a1 = fmadd(wa, v0, a0), fmadd(wa, v1, a1)
            b0, b1 = fmadd(wb, v0, b0), fmadd(wb, v1, b1)
            c0, c1 = fmadd(wc, v0, c0), fmadd(wc, v1, c1)
            d0, d1 = fmadd(wd, v0, d0), fmadd(wd, v1, d1)
        _store_two(out, at, a0, a1)
        _store_two(out, at + step, b0, b1)
        _store_two(out, at + 2 * step, c0, c1)
        _store_two(out, at + 3 * step, d0, d1)


@inlined
def _store_two(out, at, first, second):
    store(out, at, first)
    store(out, at + 64, second)
