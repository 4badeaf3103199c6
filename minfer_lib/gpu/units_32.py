"""The units of the 32-value formats: f16 d, Q4_1 also f16 m, then the codes. A block is one lane's."""

from __future__ import annotations

import numpy as np

from minfer_lib.gpu.ops import coherent8, coherent16, f16_to_f32, load2, stream4
from minfer_lib.gpu.unit import Unit, dot16, even16, high16, low16


def block_activations(x, u):
    """Block u: its codes as two times four words, d, the sum of the codes."""
    at = 48 * u
    head = coherent8(x, at)
    return coherent16(x, at + 16), coherent16(x, at + 32), f16_to_f32(head[0]), np.int32(head[1])


def q4_0_load(w, at, n, u):
    """18 bytes: d, 16 bytes of codes."""
    at += 18 * u
    odd = (at + 2) & 2
    return load2(w, at), even16(w, at + 2 - odd, odd)


def q4_0_dot(q, u, x):
    """value = d * (code - 8)"""
    d, codes = q
    total = dot16(low16(codes), x[0]) + dot16(high16(codes), x[1]) - 8 * x[3]
    return f16_to_f32(d) * x[2] * np.float32(np.int32(total))


def q4_1_load(w, at, n, u):
    """20 bytes: d, m, 16 bytes of codes."""
    at += 20 * u
    return stream4(w, at), (stream4(w, at + 4), stream4(w, at + 8), stream4(w, at + 12), stream4(w, at + 16))


def q4_1_dot(q, u, x):
    """value = d * code + m"""
    head, codes = q
    total = np.int32(dot16(low16(codes), x[0]) + dot16(high16(codes), x[1]))
    return x[2] * (f16_to_f32(head) * np.float32(total) + f16_to_f32(head >> 16) * np.float32(x[3]))


def q8_0_load(w, at, n, u):
    """34 bytes: d, 32 int8 codes."""
    at += 34 * u
    odd = (at + 2) & 2
    return load2(w, at), even16(w, at + 2 - odd, odd), even16(w, at + 18 - odd, odd)


def q8_0_dot(q, u, x):
    """value = d * code"""
    d, first, second = q
    return f16_to_f32(d) * x[2] * np.float32(np.int32(dot16(first, x[0]) + dot16(second, x[1])))


UNITS_32 = {
    "Q4_0": Unit(q4_0_load, q4_0_dot, block_activations),
    "Q4_1": Unit(q4_1_load, q4_1_dot, block_activations),
    "Q8_0": Unit(q8_0_load, q8_0_dot, block_activations),
}
