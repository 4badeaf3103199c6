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
from typing import NamedTuple

import numpy as np

from minfer_lib.gpu.ops import dp4a, funnel_right, stream4


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
ONES = np.uint32(0x01010101)


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
