"""llama.cpp's launch tables: how many warps and rows a block of its MMVQ kernel has, by GPU generation.

Source: ggml, src/ggml-cuda/mmvq.cu, calc_nwarps, calc_rows_per_block, should_use_small_k and should_halve_iters at
commit d99724f2b141 (2026-08-21), for one column (decode) and the formats that minfer runs. The GB10's 8 warps, which
seed 3 ports, came with a7cf17e7d97d (2026-08-18, llama.cpp #26843).
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from minfer_lib.errors import ArgumentError
from minfer_lib.formats.pairing import weight_format
from minfer_lib.gpu.geometry import WARP, Launch

_SIMPLE = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
_K = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")

# How many threads of a warp share a block of a format: qi / vdr in ggml's words.
_BLOCK_THREADS = dict.fromkeys(("Q4_0", "Q4_1", "Q5_0", "Q5_1"), 2) | {"Q8_0": 4, "Q4_K": 16, "Q5_K": 16}
_BLOCK_THREADS |= {"Q2_K": 16, "Q3_K": 16, "Q6_K": 32}


class Generation(NamedTuple):
    """One table."""

    chips: str  # for people
    warps: int  # a block, where `special` says nothing else
    special: dict[str, int]  # format -> warps
    small_k: bool  # short rows: as many rows a block as warps, and every thread computes a part of each


GENERATIONS: dict[str, Generation] = {
    "generic": Generation("NVIDIA from Pascal to Blackwell, but for the next two", 4, {}, True),
    "turing": Generation("RTX 20, T4", 4, dict.fromkeys(_K, 2), True),
    "gb10": Generation("DGX Spark", 4, {}, True),
    "gcn": Generation("AMD GCN and CDNA", 2, {}, True),
    "rdna2": Generation("RX 6000, and RDNA 3.5", 1, {}, False),
    "rdna3": Generation("RX 7000", 1, dict.fromkeys(_SIMPLE, 8) | {"Q6_K": 2}, False),
    "rdna4": Generation("RX 9000", 1, dict.fromkeys((*_SIMPLE, "Q2_K", "Q4_K", "Q5_K", "Q6_K"), 8), False),
}
_HALVED_ON_GB10 = (*_SIMPLE, "Q4_K", "Q5_K", "Q6_K")


def llama_launch(generation: str, name: str, n_in: int) -> Launch:
    """What llama.cpp launches on a GPU of this generation for rows of n_in weights of format `name`, in decode.

    Raises ArgumentError: no such generation, a format that llama.cpp has no MMVQ kernel for, rows of no whole blocks.
    """
    if generation not in GENERATIONS:
        raise ArgumentError(f"{generation!r} is no launch table. There are {', '.join(GENERATIONS)}.")
    row = weight_format(name)
    if name not in _BLOCK_THREADS or n_in < 1 or n_in % row.block_values:
        raise ArgumentError(f"llama.cpp has no MMVQ launch for rows of {n_in} {name} weights.")
    table = GENERATIONS[generation]
    warps = table.special.get(name, table.warps)
    blocks, warp_blocks = n_in // row.block_values, WARP // _BLOCK_THREADS[name]
    if table.small_k and warps > 1 and blocks < warps * warp_blocks:
        return Launch(warps, rows=warps, together=warps)
    if generation == "gb10" and name in _HALVED_ON_GB10 and _halves(blocks, warps * warp_blocks):
        warps *= 2
    return Launch(warps, rows=1)


def _halves(blocks: int, at_once: int) -> bool:
    """Does a block twice as wide need about half the steps? Idle warps may cost an eighth of them at most."""
    steps, wide = ceil(blocks / at_once), ceil(blocks / (2 * at_once))
    return 8 * (2 * wide - steps) <= 2 * wide
