"""The old kernel, with float32 activations: a lane computes a whole super-block of 256 weights at a time.

    block_dot(w, at, x, i)     w: uint8[:]; at: first byte of the super-block; x: float32[:], from index i on -> float32

Every weight is decoded to a float32, and the lanes of a warp read at places 144 bytes and more apart.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minfer_lib.gpu.geometry import Launch
from minfer_lib.gpu.ops import bits, block_index, f16_to_f32, load2, load4, signed_byte, thread_index
from minfer_lib.gpu.row_sums import warp_total


def scale_min(scales, mins, both, s):
    """Scale and min of sub-block s, 6 bits each, from the three words of Q4_K's and Q5_K's 12 bytes."""
    if s < 4:
        return bits(scales, 8 * s, 6), bits(mins, 8 * s, 6)
    at = 8 * (s - 4)
    scale = bits(both, at, 4) | (bits(scales, at + 6, 2) << 4)
    return scale, bits(both, at + 4, 4) | (bits(mins, at + 6, 2) << 4)


def scaled(head, s):
    """float32, float32: d * scale and dmin * min of sub-block s. head: the block's first four words."""
    scale, minimum = scale_min(head[1], head[2], head[3], s)
    return f16_to_f32(head[0]) * np.float32(np.int32(scale)), f16_to_f32(head[0] >> 16) * np.float32(np.int32(minimum))


def q4_k_block(w, at, x, i):
    """d * scale * code - dmin * min, times x, summed; 144 bytes."""
    head = load4(w, at), load4(w, at + 4), load4(w, at + 8), load4(w, at + 12)
    total = np.float32(0)
    for s in range(8):
        a, b = scaled(head, s)
        for v in range(8):
            word = load4(w, at + 16 + 32 * (s >> 1) + 4 * v)
            for e in range(4):
                code = np.float32(bits(word, 8 * e + 4 * (s & 1), 4))
                total += (a * code - b) * x[i + 32 * s + 4 * v + e]
    return total


def q5_k_block(w, at, x, i):
    """As q4_k_block, with the fifth bits; 176 bytes."""
    head = load4(w, at), load4(w, at + 4), load4(w, at + 8), load4(w, at + 12)
    total = np.float32(0)
    for s in range(8):
        a, b = scaled(head, s)
        for v in range(8):
            word, fifth = load4(w, at + 48 + 32 * (s >> 1) + 4 * v), load4(w, at + 16 + 4 * v)
            for e in range(4):
                code = bits(word, 8 * e + 4 * (s & 1), 4) | (bits(fifth, 8 * e + s, 1) << 4)
                total += (a * np.float32(np.int32(code)) - b) * x[i + 32 * s + 4 * v + e]
    return total


def q6_k_block(w, at, x, i):
    """d * scale * (code - 32), times x, summed; 210 bytes, so two bytes a load."""
    d = f16_to_f32(load2(w, at + 208))
    total = np.float32(0)
    for g in range(16):
        half, row, first = g >> 3, (g & 7) >> 1, 16 * (g & 1)
        a = d * np.float32(signed_byte(load2(w, at + 192 + (g & 14)), g & 1))
        for j in range(8):
            low = load2(w, at + 64 * half + 32 * (row & 1) + first + 2 * j)
            high = load2(w, at + 128 + 32 * half + first + 2 * j)
            for e in range(2):
                code = bits(low, 8 * e + 4 * (row >> 1), 4) | (bits(high, 8 * e + 2 * row, 2) << 4)
                total += a * np.float32(np.int32(code - 32)) * x[i + 16 * g + 2 * j + e]
    return total


F32_BLOCKS = {"Q4_K": q4_k_block, "Q5_K": q5_k_block, "Q6_K": q6_k_block}


def f32_rows(block_dot: Callable, block_bytes: int, launch: Launch) -> Callable:
    """Kernel: the old one of seed 3, with float32 activations. A lane walks whole blocks of 256, a warp rows in turn.

    w: uint8[n_out * row_bytes]; x: float32[n_in]; out: float32[n_out]; blocks: n_in / 256.
    block_dot(w, at, x, i): the dot product of the super-block at byte `at` and x[i : i + 256].
    """
    WARPS, TURNS = launch.warps, launch.turns

    def f32_mul_mat(w, x, out, n_out, blocks, row_bytes):
        lane = thread_index() & 31
        first = (block_index() * WARPS + (thread_index() >> 5)) * TURNS
        for turn in range(TURNS):
            row = first + turn
            total = np.float32(0)
            if row < n_out:
                b = lane
                while b < blocks:
                    total += block_dot(w, row * row_bytes + block_bytes * b, x, 256 * b)
                    b += 32
            total = warp_total(total)
            if lane == 0 and row < n_out:
                out[row] = total

    return f32_mul_mat
