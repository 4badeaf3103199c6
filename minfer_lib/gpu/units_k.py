"""The units of the K-quants: eight lanes share a super-block of 256, and lane c = u % 8 takes 32 weights of it."""

from __future__ import annotations

import numpy as np

from minfer_lib.gpu.ops import (
    bits,
    byte_perm,
    coherent4,
    coherent8,
    coherent16,
    f16_to_f32,
    funnel_right,
    load2,
    load4,
    load16,
    signed_byte,
    stream8,
    stream16,
)
from minfer_lib.gpu.unit import NIBBLES, ONES, Unit, dot8, dot16, even8, high16, low16

TWO_BITS = np.uint32(0x30303030)
ONE_BIT = np.uint32(0x10101010)
SIX_BITS = np.uint32(0x3F3F3F3F)


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


UNITS_K = {
    "Q4_K": Unit(q4_k_load, q4_k_dot, pair_activations),
    "Q5_K": Unit(q5_k_load, q5_k_dot, pair_activations),
    "Q6_K": Unit(q6_k_load, q6_k_dot, quad_activations),
}
Q6_K_PLANES = Unit(q6_k_planes_load, q6_k_dot, quad_activations, layout=q6_k_planes)
