"""FormatKernels: the row with which each format's file ends. It holds what there is for its weights."""

from __future__ import annotations

from dataclasses import dataclass

from numba.core.dispatcher import Dispatcher

ROWS_AT_ONCE = {"scalar": 1, "avx2": 1, "neon": 1, "avx512vnni": 4}  # how many rows a dot of each kernel set takes


@dataclass(frozen=True)
class FormatKernels:
    """The dots of a weight format, a field a kernel set, and what is in its blocks; None: there is none.

    Each dot takes (w, w_at, a, a_at, n_blocks) and returns a float32. avx512vnni takes four rows that are row_bytes
    apart, (w, w_at, row_bytes, a, a_at, n_blocks), and returns four.
    codes, scales and mins are what `matmul/tile_layout.py` makes tiles of.
    """

    format: str
    scalar: Dispatcher
    avx2: Dispatcher | None = None
    neon: Dispatcher | None = None
    avx512vnni: Dispatcher | None = None
    codes: Dispatcher | None = None  # (w, wb) -> i8x32 of the block at byte wb; K: (w, wb, k), codes 32 k to 32 k + 31
    scales: Dispatcher | None = None  # K: (w, wb) -> i16x16, for each 16 codes the integer scale
    mins: Dispatcher | None = None  # K, where the format has mins: (w, wb) -> i16x16, for each 16 codes

    @property
    def dots(self) -> dict[str, Dispatcher]:
        """The dot of each kernel set that has one."""
        return {isa: getattr(self, isa) for isa in ROWS_AT_ONCE if getattr(self, isa) is not None}
