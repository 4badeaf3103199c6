"""What one lane computes in one step: a unit of 32 weights times 32 activations, one function a format.

    load(w, at, n, u)   w: uint8[:], the matrix; at: first byte of a row of n units; u: which of them -> its words
    dot(q, u, x)        q: those words; x: what the format's activations function returned for u
    -> float32: the unit's share of the row's dot product

Loading is apart from computing, so that a kernel can have the loads of several rows on their way before the first use.

Eight lanes share a super-block of 256. Lane c = u % 8 takes 16 bytes of codes that lie together, and these hold 32
weights that do not: in Q4_K and Q5_K, 16 of sub-block 2 (c // 2) in the lower halves of the bytes and 16 of the next
sub-block in the upper halves. A 32-value block is one lane's. Integers are exact, floats are folded once a unit.

Activations are blocks of 32 by the rule of quantize/activations.py, laid out for 16-byte loads (PAD48).
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import NamedTuple

import numpy as np

from minfer_lib.gpu.ops import (
    bits,
    byte_perm,
    coherent4,
    coherent8,
    coherent16,
    dp4a,
    f16_to_f32,
    funnel_right,
    load2,
    load4,
    load16,
    signed_byte,
    staged2,
    staged4,
    staged8,
    staged16,
    stream4,
    stream8,
    stream16,
)
from minfer_lib.simd.step import rebind


class ActivationBlock(NamedTuple):
    """Where 32 activations have their f16 d (always at 0), their int32 sum of codes and their int8 codes."""

    block_bytes: int
    sum_at: int
    codes_at: int


PAD40 = ActivationBlock(40, 36, 4)  # seed 3's; mf.FORMATS["Q8_0_PAD40"]
PAD48 = ActivationBlock(48, 4, 16)  # d and sum in one 8-byte load, the codes in two 16-byte loads


class Unit(NamedTuple):
    """A format's functions, as mmvq takes them."""

    load: Callable
    dot: Callable
    activations: Callable
    block: ActivationBlock = PAD48
    layout: Callable | None = None  # uint8[n_out, row_bytes] as in a file -> as `load` reads it, if that differs


NIBBLES = np.uint32(0x0F0F0F0F)
TWO_BITS = np.uint32(0x30303030)
ONE_BIT = np.uint32(0x10101010)
SIX_BITS = np.uint32(0x3F3F3F3F)


def dot8(a, b):
    """int32: the dot product of 8 int8 and 8 int8, two words each."""
    return dp4a(a[1], b[1], dp4a(a[0], b[0], np.int32(0)))


def dot16(a, b):
    """int32: the dot product of 16 int8 and 16 int8, four words each."""
    return dp4a(a[3], b[3], dp4a(a[2], b[2], dp4a(a[1], b[1], dp4a(a[0], b[0], np.int32(0)))))


def low16(q):
    """The lower halves of 16 bytes."""
    return q[0] & NIBBLES, q[1] & NIBBLES, q[2] & NIBBLES, q[3] & NIBBLES


def high16(q):
    """The upper halves of 16 bytes."""
    return (q[0] >> 4) & NIBBLES, (q[1] >> 4) & NIBBLES, (q[2] >> 4) & NIBBLES, (q[3] >> 4) & NIBBLES


# Blocks of 18, 34 or 210 bytes start on any even byte, and a load wants a multiple of its own size. So: aligned words,
# and each word wanted is cut out of two of them. Where the byte is a multiple of 4, the last of them is not needed, and
# may lie behind the matrix: that is why a matrix on the GPU is followed by a few bytes more.


def even8(w, at, odd):
    """Two words from byte at + odd. at: a multiple of 4; odd: 0 or 2."""
    a, b, c = stream4(w, at), stream4(w, at + 4), stream4(w, at + 8)
    return funnel_right(a, b, 8 * odd), funnel_right(b, c, 8 * odd)


def even16(w, at, odd):
    """Four words from byte at + odd. at: a multiple of 4; odd: 0 or 2."""
    a, b, c = stream4(w, at), stream4(w, at + 4), stream4(w, at + 8)
    d, e = stream4(w, at + 12), stream4(w, at + 16)
    shift = 8 * odd
    return funnel_right(a, b, shift), funnel_right(b, c, shift), funnel_right(c, d, shift), funnel_right(d, e, shift)


# 32-value blocks: f16 d, Q4_1 also f16 m, the codes


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


# Q4_K and Q5_K: f16 d, f16 dmin, 12 bytes of scales and mins, Q5_K 32 bytes of fifth bits, 128 bytes of codes


def pair_activations(x, u):
    """Lane c of a super-block: 16 codes of each of its two sub-blocks; their d; d * the sum of codes of sub-block c.

    The min term needs each sub-block's sum once: eight lanes, eight sub-blocks, and lane c takes the c-th.
    """
    odd = u & 1
    at = 96 * (u >> 1)
    first, second = coherent8(x, at), coherent8(x, at + 48)
    d0, d1 = f16_to_f32(first[0]), f16_to_f32(second[0])
    d_sum = d1 * np.float32(np.int32(second[1])) if odd else d0 * np.float32(np.int32(first[1]))
    return coherent16(x, at + 16 + 16 * odd), coherent16(x, at + 64 + 16 * odd), d0, d1, d_sum


def pair_scales(head, c):
    """Four bytes: the scales of sub-blocks 2 (c // 2) and the next, the min of sub-block c, and one of no use.

    head: the first 16 bytes. The 12 with scales and mins are 3 words. Sub-blocks 0 to 3: the lower six bits of word 0
    (scales) and word 1 (mins); 4 to 7: four bits in word 2, and above them the two left over in words 0 and 1.
    """
    pick = np.uint32(0x0410) + np.uint32(0x222) * np.uint32((c >> 1) & 1) + np.uint32((c & 1) << 8)
    six = byte_perm(head[1], head[2], pick)
    four = byte_perm(head[3], head[3] >> 4, pick)
    return (six & SIX_BITS) if c < 4 else (four & NIBBLES) | ((six >> 2) & TWO_BITS)


def pair_fold(head, c, dot0, dot1, x):
    """d * (both value terms) - dmin * (the min term of sub-block c)."""
    scales = pair_scales(head, c)
    value0 = x[2] * np.float32(np.int32(bits(scales, 0, 8) * dot0))
    value1 = x[3] * np.float32(np.int32(bits(scales, 8, 8) * dot1))
    minimum = np.float32(bits(scales, 16, 8))
    return f16_to_f32(head[0]) * (value0 + value1) - f16_to_f32(head[0] >> 16) * (minimum * x[4])


def q4_k_load(w, at, n, u):
    """144 bytes: 16 of head, then the codes."""
    at += 144 * (u >> 3)
    return load16(w, at), stream16(w, at + 16 + 16 * (u & 7))


def q4_k_dot(q, u, x):
    """value = d * scale * code - dmin * min"""
    head, codes = q
    return pair_fold(head, u & 7, dot16(low16(codes), x[0]), dot16(high16(codes), x[1]), x)


def q5_k_load(w, at, n, u):
    """176 bytes: 16 of head, 32 of fifth bits, then the lower four bits."""
    at += 176 * (u >> 3)
    return load16(w, at), load16(w, at + 16 + 16 * (u & 1)), stream16(w, at + 48 + 16 * (u & 7))


def q5_k_dot(q, u, x):
    """As Q4_K. Bit s of byte l of the fifth bits belongs to code l of sub-block s."""
    head, h, codes = q
    c = u & 7
    turn = (c & 6) - 4  # rotated so that the bit of the first sub-block is bit 4, and that of the second bit 5
    h0, h1 = funnel_right(h[0], h[0], turn), funnel_right(h[1], h[1], turn)
    h2, h3 = funnel_right(h[2], h[2], turn), funnel_right(h[3], h[3], turn)
    lo, hi = low16(codes), high16(codes)
    lo = lo[0] | (h0 & ONE_BIT), lo[1] | (h1 & ONE_BIT), lo[2] | (h2 & ONE_BIT), lo[3] | (h3 & ONE_BIT)
    hi = (
        hi[0] | ((h0 >> 1) & ONE_BIT),
        hi[1] | ((h1 >> 1) & ONE_BIT),
        hi[2] | ((h2 >> 1) & ONE_BIT),
        hi[3] | ((h3 >> 1) & ONE_BIT),
    )
    return pair_fold(head, c, dot16(lo, x[0]), dot16(hi, x[1]), x)


# Q6_K: 128 bytes of lower four bits, 64 of upper two, 16 int8 scales, f16 d. A half of 128 codes is four rows of 32;
# lane c takes 8 codes of each row of half c // 4, from code 8 (c % 4) on


ONES = np.uint32(0x01010101)


def quad_activations(x, u):
    """Lane c of a super-block: of its half's four activation blocks 8 codes, d, and 32 * the sum of these codes."""
    at = 192 * (u >> 2)
    codes = at + 16 + 8 * (u & 3)
    a, b, c, d = coherent8(x, codes), coherent8(x, codes + 48), coherent8(x, codes + 96), coherent8(x, codes + 144)
    ones = ONES, ONES
    scales = (
        f16_to_f32(coherent4(x, at)),
        f16_to_f32(coherent4(x, at + 48)),
        f16_to_f32(coherent4(x, at + 96)),
        f16_to_f32(coherent4(x, at + 144)),
    )
    return (a, b, c, d), scales, (dot8(ones, a) << 5, dot8(ones, b) << 5, dot8(ones, c) << 5, dot8(ones, d) << 5)


def q6_k_load(w, at, n, u):
    """210 bytes, in place: blocks start on even bytes only. d, four scales, lower bits twice, upper bits."""
    at += 210 * (u >> 3)
    odd = at & 2
    at -= odd
    half, first = (u & 4) >> 2, 8 * (u & 3)
    a, b = even8(w, at + 64 * half + first, odd), even8(w, at + 64 * half + 32 + first, odd)
    h, s = even8(w, at + 128 + 32 * half + first, odd), even8(w, at + 192 + 8 * half, odd)
    every_other = np.uint32(0x6420) + np.uint32(0x1111) * np.uint32((u >> 1) & 1)  # a row has 32 codes, a scale 16
    return load2(w, at + 208 + odd), byte_perm(s[0], s[1], every_other), a, b, h


def q6_k_planes_load(w, at, n, u):
    """The same bytes as `q6_k_planes` lays them at load: what a lane needs lies together, and aligned."""
    q, h = stream16(w, at + 16 * u), stream8(w, at + 16 * n + 8 * u)
    scales, d = load4(w, at + 24 * n + 4 * (u >> 1)), load2(w, at + 26 * n + 2 * (u >> 3))
    return d, scales, (q[0], q[1]), (q[2], q[3]), h


def q6_k_dot(q, u, x):
    """value = d * scale * (code - 32). a, b: two words each, lower four bits of rows 0 and 1, and above them of rows 2
    and 3; h: two bits a row, row 0 lowest; scales: a byte a row."""
    d, scales, a, b, h = q
    q0 = (a[0] & NIBBLES) | ((h[0] << 4) & TWO_BITS), (a[1] & NIBBLES) | ((h[1] << 4) & TWO_BITS)
    q1 = (b[0] & NIBBLES) | ((h[0] << 2) & TWO_BITS), (b[1] & NIBBLES) | ((h[1] << 2) & TWO_BITS)
    q2 = ((a[0] >> 4) & NIBBLES) | (h[0] & TWO_BITS), ((a[1] >> 4) & NIBBLES) | (h[1] & TWO_BITS)
    q3 = ((b[0] >> 4) & NIBBLES) | ((h[0] >> 2) & TWO_BITS), ((b[1] >> 4) & NIBBLES) | ((h[1] >> 2) & TWO_BITS)
    codes, d8, sums = x
    r0 = d8[0] * np.float32(np.int32(signed_byte(scales, 0) * (dot8(q0, codes[0]) - sums[0])))
    r1 = d8[1] * np.float32(np.int32(signed_byte(scales, 1) * (dot8(q1, codes[1]) - sums[1])))
    r2 = d8[2] * np.float32(np.int32(signed_byte(scales, 2) * (dot8(q2, codes[2]) - sums[2])))
    r3 = d8[3] * np.float32(np.int32(signed_byte(scales, 3) * (dot8(q3, codes[3]) - sums[3])))
    return f16_to_f32(d) * ((r0 + r1) + (r2 + r3))


def q6_k_planes(w):
    """uint8[n_out, blocks * 210], rows of Q6_K -> uint8[n_out, row_bytes], the same weights for q6_k_planes_load.

    A row of n units: 16 n bytes of lower bits, lane by lane (rows 0 and 2, then rows 1 and 3), 8 n of upper bits,
    2 n of scales (four for two lanes), n / 4 of d; zeros up to a multiple of 16.
    """
    n_out = w.shape[0]
    blocks = w.reshape(n_out, -1, 210)
    n_blocks = blocks.shape[1]
    low = blocks[..., :128].reshape(n_out, n_blocks, 2, 2, 4, 8)  # half, rows 0/2 or 1/3, lane, byte
    scales = blocks[..., 192:208].reshape(n_out, n_blocks, 2, 4, 2)  # half, row, which 16 of it
    planes = (low.swapaxes(3, 4), blocks[..., 128:192], scales.swapaxes(3, 4), blocks[..., 208:])
    out = np.zeros((n_out, -(-n_blocks * 210 // 16) * 16), np.uint8)
    at = 0
    for plane in planes:
        flat = plane.reshape(n_out, -1)
        out[:, at : at + flat.shape[1]] = flat
        at += flat.shape[1]
    return out


UNITS = {
    "Q4_0": Unit(q4_0_load, q4_0_dot, block_activations),
    "Q4_1": Unit(q4_1_load, q4_1_dot, block_activations),
    "Q8_0": Unit(q8_0_load, q8_0_dot, block_activations),
    "Q4_K": Unit(q4_k_load, q4_k_dot, pair_activations),
    "Q5_K": Unit(q5_k_load, q5_k_dot, pair_activations),
    "Q6_K": Unit(q6_k_load, q6_k_dot, quad_activations),
}


def staged(load: Callable) -> Callable:
    """A unit's `load`, reading from the block's staging memory instead of from the whole matrix."""
    ops_of = {
        load2: staged2, load4: staged4, load16: staged16,
        stream4: staged4, stream8: staged8, stream16: staged16,
    }  # fmt: skip

    def bind(value):
        if isinstance(value, FunctionType) and value.__module__ == __name__:
            return rebind(value, bind)
        return ops_of.get(value, value) if isinstance(value, FunctionType) else value

    return rebind(load, bind)


Q6_K_PLANES = Unit(q6_k_planes_load, q6_k_dot, quad_activations, layout=q6_k_planes)
