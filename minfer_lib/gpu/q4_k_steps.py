"""Steps on the way to the Q4_K unit of units_k.py, one change each, so that each can be measured.

SEED    seed 3 §3.2: a unit is a sub-block; 4-byte loads; the sum of the activations by dp4a with ones
WIDE    16 bytes of codes at once, so a unit is half of two sub-blocks; the rest as before
SUMS    the sum of the activations comes from the quantizer, which knows it already
units.UNITS["Q4_K"]     two scales and two mins decoded at once, as the bytes of one word
"""

from __future__ import annotations

import numpy as np

from minfer_lib.gpu.f32_rows import scale_min
from minfer_lib.gpu.ops import coherent4, coherent8, coherent16, dp4a, f16_to_f32, load4
from minfer_lib.gpu.unit import NIBBLES, ONES, PAD40, Unit, dot16, high16, low16
from minfer_lib.gpu.units_k import pair_activations, q4_k_load


def seed_activations(x, u):
    """Block u of pad40: d, and its codes as eight words."""
    at = 40 * u
    a, b, c, d = coherent4(x, at + 4), coherent4(x, at + 8), coherent4(x, at + 12), coherent4(x, at + 16)
    e, f, g, h = coherent4(x, at + 20), coherent4(x, at + 24), coherent4(x, at + 28), coherent4(x, at + 32)
    return f16_to_f32(coherent4(x, at)), (a, b, c, d, e, f, g, h)


def seed_load(w, at, n, u):
    """Unit u is sub-block u % 8 of super-block u // 8: 16 bytes of head, 32 of codes, and one half of each of them."""
    at += 144 * (u >> 3)
    first = at + 16 + 32 * ((u & 7) >> 1)
    a, b, c, d = load4(w, first), load4(w, first + 4), load4(w, first + 8), load4(w, first + 12)
    e, f, g, h = load4(w, first + 16), load4(w, first + 20), load4(w, first + 24), load4(w, first + 28)
    return (load4(w, at), load4(w, at + 4), load4(w, at + 8), load4(w, at + 12)), (a, b, c, d, e, f, g, h)


def seed_dot(q, u, x):
    """Even sub-blocks are the lower halves of the bytes, odd ones the upper."""
    head, words = q
    scale, minimum = scale_min(head[1], head[2], head[3], u & 7)
    shift = 4 * (u & 1)
    dot, total = np.int32(0), np.int32(0)
    for v in range(8):
        dot = dp4a((words[v] >> shift) & NIBBLES, x[1][v], dot)
        total = dp4a(ONES, x[1][v], total)
    value = np.float32(np.int32(scale)) * f16_to_f32(head[0]) * np.float32(dot)
    return x[0] * (value - np.float32(np.int32(minimum)) * f16_to_f32(head[0] >> 16) * np.float32(total))


def wide_activations(x, u):
    """16 codes of each of the two sub-blocks of unit u's lane, and their d."""
    at = 96 * (u >> 1)
    codes = at + 16 + 16 * (u & 1)
    first, second = coherent8(x, at), coherent8(x, at + 48)
    return coherent16(x, codes), coherent16(x, codes + 48), f16_to_f32(first[0]), f16_to_f32(second[0])


def wide_dot(q, u, x):
    """Half of sub-block 2 (c // 2), and half of the next one. Each adds half of its min term."""
    head, codes = q
    c = u & 7
    scale0, min0 = scale_min(head[1], head[2], head[3], c & 6)
    scale1, min1 = scale_min(head[1], head[2], head[3], (c & 6) + 1)
    ones = ONES, ONES, ONES, ONES
    value0 = x[2] * np.float32(np.int32(scale0 * dot16(low16(codes), x[0])))
    value1 = x[3] * np.float32(np.int32(scale1 * dot16(high16(codes), x[1])))
    minimum0 = x[2] * np.float32(np.int32(min0 * dot16(ones, x[0])))
    minimum1 = x[3] * np.float32(np.int32(min1 * dot16(ones, x[1])))
    return f16_to_f32(head[0]) * (value0 + value1) - f16_to_f32(head[0] >> 16) * (minimum0 + minimum1)


def sums_dot(q, u, x):
    """As wide_dot, but lane c adds the whole min term of sub-block c."""
    head, codes = q
    c = u & 7
    scale0, min0 = scale_min(head[1], head[2], head[3], c & 6)
    scale1, min1 = scale_min(head[1], head[2], head[3], (c & 6) + 1)
    value0 = x[2] * np.float32(np.int32(scale0 * dot16(low16(codes), x[0])))
    value1 = x[3] * np.float32(np.int32(scale1 * dot16(high16(codes), x[1])))
    minimum = np.float32(np.int32(min1 if c & 1 else min0)) * x[4]
    return f16_to_f32(head[0]) * (value0 + value1) - f16_to_f32(head[0] >> 16) * minimum


SEED = Unit(seed_load, seed_dot, seed_activations, PAD40)
WIDE = Unit(q4_k_load, wide_dot, wide_activations)
SUMS = Unit(q4_k_load, sums_dot, pair_activations)
