"""Panels: the activations of 16 tokens, laid out so that a register's 16 lanes, or a tile's 16 columns, are the tokens.

A panel is one piece of memory a block of activations, in order. Of a Q8_0 block of 16 tokens:

    codes      8 x [16 tokens][4 bytes]     each four codes that one product instruction adds up
    D          float32[16 tokens]           d
    SUMS       float32[16 tokens]           d * sum of the codes
    OFFSETS    int32[16 tokens]             -128 * sum of the codes: what weights read as code + 128 have too much

and of a Q8_K block, 64 x codes, D, OFFSETS, and PAIRS: 8 x [16 tokens][2 int16], its sums of 16 codes each.
"""

from __future__ import annotations

import numpy as np

from minfer_lib.native.address import bytes_at
from minfer_lib.native.jit import kernel
from minfer_lib.simd.ops import load_f16, load_u16, load_u32

TOKENS = 16  # of a panel
_LINE = 4 * TOKENS

CODES_32, CODES_256 = 8 * _LINE, 64 * _LINE
D_32, SUMS, OFFSETS_32 = CODES_32, CODES_32 + _LINE, CODES_32 + 2 * _LINE
BLOCK_32 = CODES_32 + 3 * _LINE  # bytes
D_256, OFFSETS_256, PAIRS = CODES_256, CODES_256 + _LINE, CODES_256 + 2 * _LINE
BLOCK_256 = CODES_256 + 10 * _LINE


def panels_bytes(block_values: int, n_tokens: int, n_blocks: int) -> int:
    """Bytes of the panels of so many tokens with n_blocks blocks each."""
    return -(-n_tokens // TOKENS) * n_blocks * {32: BLOCK_32, 256: BLOCK_256}[block_values]


@kernel
def fill_panels(block_values, a, a_row_bytes, first, last, n_blocks, panels):
    """Tokens [first, last) of the rows of Q8_0 or Q8_K blocks at address a -> the panels at address `panels`.

    Each token has bytes of its own there, so several workers can fill a panel.
    """
    rows = bytes_at(a, last * a_row_bytes)
    block_bytes = BLOCK_32 if block_values == 32 else BLOCK_256
    words = bytes_at(panels, (last + TOKENS - 1) // TOKENS * n_blocks * block_bytes).view(np.uint32)
    for t in range(first, last):
        for b in range(n_blocks):
            at = (t // TOKENS * n_blocks + b) * block_bytes // 4 + t % TOKENS
            if block_values == 32:
                _fill_32(rows, t * a_row_bytes + 34 * b, words, at)
            else:
                _fill_256(rows, t * a_row_bytes + 306 * b, words, at)


@kernel
def _fill_32(rows, ab, words, at):
    """A Q8_0 block of one token; `at` is its first word."""
    total = np.int32(0)
    for g in range(8):
        words[at + TOKENS * g] = load_u32(rows, ab + 2 + 4 * g)
    for i in range(ab + 2, ab + 34):
        total += np.int32(np.int8(rows[i]))
    d, floats, integers = load_f16(rows, ab), words.view(np.float32), words.view(np.int32)
    floats[at + D_32 // 4] = d
    floats[at + SUMS // 4] = np.float32(total) * d
    integers[at + OFFSETS_32 // 4] = -128 * total


@kernel
def _fill_256(rows, ab, words, at):
    """A Q8_K block of one token."""
    total = np.int32(0)
    for g in range(64):
        words[at + TOKENS * g] = load_u32(rows, ab + 2 + 4 * g)
    for g in range(8):
        words[at + PAIRS // 4 + TOKENS * g] = load_u32(rows, ab + 274 + 4 * g)
    for g in range(16):
        total += np.int32(np.int16(load_u16(rows, ab + 274 + 2 * g)))
    words.view(np.float32)[at + D_256 // 4] = load_f16(rows, ab)
    words.view(np.int32)[at + OFFSETS_256 // 4] = -128 * total
