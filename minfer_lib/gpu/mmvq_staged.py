"""MMVQ with the rows of a block copied into shared memory, for GPUs that have a unit for such copies (sm_90)."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.gpu import ops
from minfer_lib.gpu.geometry import Launch
from minfer_lib.gpu.ops import (
    barrier,
    block_index,
    next_may_start,
    previous_done,
    shared_arrival,
    shared_bytes,
    shared_f32,
    start_copy,
    thread_index,
    wait_copy,
)
from minfer_lib.gpu.row_sums import put_sums, store_rows
from minfer_lib.gpu.unit import Unit
from minfer_lib.simd.step import rebind

STAGED = {
    ops.load2: ops.staged2, ops.load4: ops.staged4, ops.load16: ops.staged16,
    ops.stream4: ops.staged4, ops.stream8: ops.staged8, ops.stream16: ops.staged16,
}  # fmt: skip


def staged(load: Callable) -> Callable:
    """A unit's `load`, reading from the block's staging memory instead of from the whole matrix."""

    def bind(value):
        if not isinstance(value, FunctionType):
            return value
        if value.__module__ == ops.__name__:
            return STAGED.get(value, value)
        return rebind(value, bind)  # a unit's own function, which loads in its turn

    return rebind(load, bind)


def mmvq_staged(unit: Unit, launch: Launch) -> Callable:
    """Kernel: as mmvq, but the block's rows come through shared memory, in one copy (sm_90).

    One thread starts the copy, and a unit of the chip does it: all bytes of the block are on their way at once, in
    full lines, whatever the alignment of blocks and codes; the lanes then cut out of shared memory what they need. The
    copy does not even wait for the kernel ahead of this one. A launch gives it staged_bytes(launch, row_bytes) of
    shared memory; all its warps share all its rows.
    """
    if launch.rows != launch.together:
        raise ArgumentError(f"staged rows are computed at once by all warps of a block; {launch} deals them out.")
    _, dot, activations = unit[:3]
    load, put, store = staged(unit.load), put_sums(launch), store_rows(launch)
    ROWS, THREADS, SUMS = launch.rows, launch.threads, launch.rows * launch.row_warps

    def mul_mat_vec_q_staged(w, x, out, n_out, n_units, row_bytes):
        next_may_start()
        u = thread_index()
        row = block_index() * ROWS
        start = np.int32(row) * np.int64(row_bytes)
        end = np.int32(min(row + ROWS, n_out)) * np.int64(row_bytes)
        first = start & -16  # copies begin and end at multiples of 16
        stage, arrival = shared_bytes(), shared_arrival()
        if u == 0:
            start_copy(stage, w, first, np.int32(((end + 15) & -16) - first), arrival)
        barrier()
        last = n_out - 1 - row
        at0 = np.int32(start - first)
        at1, at2 = np.int32(at0 + min(1, last) * row_bytes), np.int32(at0 + min(2, last) * row_bytes)
        at3 = np.int32(at0 + min(3, last) * row_bytes)
        sum0, sum1, sum2, sum3 = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        previous_done()
        wait_copy(arrival)
        while u < n_units:
            a = activations(x, u)
            sum0 += dot(load(stage, at0, n_units, u), u, a)
            if ROWS > 1:
                sum1 += dot(load(stage, at1, n_units, u), u, a)
            if ROWS > 2:
                sum2 += dot(load(stage, at2, n_units, u), u, a)
                sum3 += dot(load(stage, at3, n_units, u), u, a)
            u += THREADS
        sums = shared_f32(SUMS)
        put(sums, sum0, sum1, sum2, sum3)
        barrier()
        store(out, n_out, sums)

    return mul_mat_vec_q_staged


def staged_bytes(launch: Launch, row_bytes: int) -> int:
    """Shared memory that mmvq_staged wants: its rows, up to 15 bytes before and behind, and 4 that even16 reads."""
    return launch.rows * row_bytes + 48
