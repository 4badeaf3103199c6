"""Attention of each query head over the cached keys and values: a head of a token is one piece of parallel work."""

from __future__ import annotations

import numpy as np

from minfer_lib.native.jit import inlined, kernel
from minfer_lib.simd.exp import exp8
from minfer_lib.simd.ops import (
    f16_to_f32,
    first,
    fmadd,
    high_half,
    lane,
    load,
    load_f16,
    load_f32,
    low_half,
    maximum,
    splat,
    store,
)
from minfer_lib.simd.registers import f32x8, u16x8
from minfer_lib.simd.sums import hsum8


@kernel
def attend(q, keys, values, position, scale, first, last, scores, out):
    """Pieces [first, last) of n_tokens * n_heads; piece p is head p % n_heads of token p // n_heads.

    q, out: f32[n_tokens, n_heads * head_dim]; keys, values: uint16 (f16 bits) [n_kv_heads, context, head_dim];
    scores: f32[position + n_tokens] or more, to work in. Token t stands at position + t and sees the keys up to its
    own. softmax(q·k * scale) · v, max subtracted first.
    """
    n_kv_heads, context, head_dim = keys.shape
    n_heads = q.shape[1] // head_dim
    group = n_heads // n_kv_heads  # query heads that share a key/value head
    q_bytes, out_bytes = q.reshape(q.size).view(np.uint8), out.reshape(out.size).view(np.uint8)
    key_bytes, value_bytes = keys.reshape(keys.size).view(np.uint8), values.reshape(values.size).view(np.uint8)
    for piece in range(first, last):
        at = 4 * piece * head_dim
        kv_at = 2 * (piece % n_heads // group) * context * head_dim
        seen = scores[: position + piece // n_heads + 1]
        score(q_bytes, at, key_bytes, kv_at, head_dim, np.float32(scale), 0, seen)
        softmax(seen)
        mix(seen, value_bytes, kv_at, head_dim, 0, out_bytes, at)


@kernel
def score(q, q_at, keys, keys_at, head_dim, scale, begin, scores):
    """scores: f32[n_keys] = q · key * scale, from key `begin` on. q: f32, keys: f16, as bytes.

    Eight lanes, hsum8, then the rest.
    """
    for j in range(begin, scores.size):
        key_at = keys_at + 2 * j * head_dim
        lanes = splat(f32x8, 0)
        whole = head_dim // 8 * 8
        for i in range(0, whole, 8):
            lanes = fmadd(load(f32x8, q, q_at + 4 * i), f16_to_f32(load(u16x8, keys, key_at + 2 * i)), lanes)
        total = hsum8(lanes)
        for i in range(whole, head_dim):
            total += load_f32(q, q_at + 4 * i) * load_f16(keys, key_at + 2 * i)
        scores[j] = total * scale


@kernel
def softmax(scores):
    """f32[n] -> e^(score - largest) / sum, in place. Eight are summed in hsum8's order, the eights in double."""
    raw, whole = scores.view(np.uint8), scores.size // 8 * 8
    largest = splat(f32x8, -np.inf)
    for j in range(0, whole, 8):
        largest = maximum(load(f32x8, raw, 4 * j), largest)
    for j in range(whole, scores.size):
        largest = maximum(splat(f32x8, scores[j]), largest)
    highest = _largest(largest)
    total = 0.0
    for j in range(0, whole, 8):
        eight = exp8(load(f32x8, raw, 4 * j) - highest)
        store(raw, 4 * j, eight)
        total += hsum8(eight)
    for j in range(whole, scores.size):
        scores[j] = first(exp8(splat(f32x8, scores[j] - highest)))
        total += scores[j]
    for j in range(scores.size):
        scores[j] /= np.float32(total)


@inlined
def _largest(v):
    """f32x8 -> the largest lane."""
    four = maximum(low_half(v), high_half(v))
    two = maximum(low_half(four), high_half(four))
    return max(lane(two, 0), lane(two, 1))


@kernel
def mix(weights, values, values_at, head_dim, begin, out, out_at):
    """out: f32[head_dim] = sum of weights[j] * value j, key by key. values: f16, out: f32, as bytes.

    begin: out already is the sum of so many keys; it must be 0 unless head_dim is in whole 32s.
    """
    whole = head_dim // 32 * 32
    for i in range(0, whole, 32):  # four registers at a time, so that a value's line is read once
        a, b, c, d = splat(f32x8, 0), splat(f32x8, 0), splat(f32x8, 0), splat(f32x8, 0)
        if begin > 0:
            a, b = load(f32x8, out, out_at + 4 * i), load(f32x8, out, out_at + 4 * i + 32)
            c, d = load(f32x8, out, out_at + 4 * i + 64), load(f32x8, out, out_at + 4 * i + 96)
        for j in range(begin, weights.size):
            at = values_at + 2 * (j * head_dim + i)
            weight = splat(f32x8, weights[j])
            a = fmadd(weight, f16_to_f32(load(u16x8, values, at)), a)
            b = fmadd(weight, f16_to_f32(load(u16x8, values, at + 16)), b)
            c = fmadd(weight, f16_to_f32(load(u16x8, values, at + 32)), c)
            d = fmadd(weight, f16_to_f32(load(u16x8, values, at + 48)), d)
        store(out, out_at + 4 * i, a)
        store(out, out_at + 4 * i + 32, b)
        store(out, out_at + 4 * i + 64, c)
        store(out, out_at + 4 * i + 96, d)
    floats = out[out_at : out_at + 4 * head_dim].view(np.float32)
    for i in range(whole, head_dim):
        total = np.float32(0)
        for j in range(weights.size):
            total += weights[j] * load_f16(values, values_at + 2 * (j * head_dim + i))
        floats[i] = total
