"""How the lanes' shares of a row become its result: each warp sums its lanes, then a thread a row sums the warps.

A barrier must come between the two halves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minfer_lib.gpu.geometry import Launch
from minfer_lib.gpu.ops import block_index, shuffle_down, thread_index


def warp_total(value):
    """The sum of the 32 lanes' values, in lane 0: half as many partial sums five times."""
    value += shuffle_down(value, 16)
    value += shuffle_down(value, 8)
    value += shuffle_down(value, 4)
    value += shuffle_down(value, 2)
    return value + shuffle_down(value, 1)


def put_sums(launch: Launch) -> Callable:
    """Each warp puts the sums of its rows, over its lanes, into shared memory: float32[warps, rows at once]."""
    TOGETHER = launch.together

    def put(sums, sum0, sum1, sum2, sum3):
        at = (thread_index() >> 5) * TOGETHER
        sum0 = warp_total(sum0)
        if TOGETHER > 1:
            sum1 = warp_total(sum1)
        if TOGETHER > 2:
            sum2, sum3 = warp_total(sum2), warp_total(sum3)
        if thread_index() & 31 == 0:
            sums[at] = sum0
            if TOGETHER > 1:
                sums[at + 1] = sum1
            if TOGETHER > 2:
                sums[at + 2] = sum2
                sums[at + 3] = sum3

    return put


def store_rows(launch: Launch) -> Callable:
    """A thread a row adds up what the warps that share the row have put there, and stores the result."""
    ROWS, TOGETHER, ROW_WARPS = launch.rows, launch.together, launch.row_warps

    def store(out, n_out, sums):
        thread = thread_index()
        row = block_index() * ROWS + thread
        if thread < ROWS and row < n_out:
            at = thread // TOGETHER * ROW_WARPS * TOGETHER + thread % TOGETHER
            total = np.float32(0)
            for i in range(ROW_WARPS):
                total += sums[at + i * TOGETHER]
            out[row] = total

    return store
