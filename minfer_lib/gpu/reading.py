"""Kernels that only read: the most bytes a second that memory gives, and the time from a load to its data."""

from __future__ import annotations

import numpy as np

from minfer_lib.gpu.ops import block_index, load4, n_blocks, stream16, thread_index

PROBE_THREADS = 256


def probe(w, out, n):
    """w: uint8[16 n], out: uint32[1]. Reads w and does nothing with it: no kernel can read it faster.

    The xor of all words would be lost work to the compiler if it were never used; so it is stored, should it be a
    number that it is not.
    """
    step = n_blocks() * PROBE_THREADS
    i = block_index() * PROBE_THREADS + thread_index()
    x = np.uint32(0)
    while i + 3 * step < n:
        a, b = stream16(w, 16 * i), stream16(w, 16 * (i + step))
        c, d = stream16(w, 16 * (i + 2 * step)), stream16(w, 16 * (i + 3 * step))
        x ^= a[0] ^ a[1] ^ a[2] ^ a[3] ^ b[0] ^ b[1] ^ b[2] ^ b[3]
        x ^= c[0] ^ c[1] ^ c[2] ^ c[3] ^ d[0] ^ d[1] ^ d[2] ^ d[3]
        i += 4 * step
    while i < n:
        a = stream16(w, 16 * i)
        x ^= a[0] ^ a[1] ^ a[2] ^ a[3]
        i += step
    if x == np.uint32(0x12345677):
        out[0] = x


def chase(w, place, n):
    """w: the bytes of uint32[…], each the index of the next one to read; place: uint32[1], where to begin and where it
    ended. One thread, n loads, each of which needs the one before: the time from a load to its data."""
    i = place[0]
    for _ in range(n):
        i = load4(w, 4 * np.int64(i))
    place[0] = i
