"""MMVQ: the matrix-vector product of quantized weights, each warp computing its rows at once.

Lesson 7 steps through `mmvq`, so its loop is written out in it. `mmvq_pipelined` has a loop of its own, since it loads
at other times; where rows begin and how sums end is the same in both.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.gpu.geometry import Launch
from minfer_lib.gpu.ops import barrier, block_index, next_may_start, previous_done, shared_f32, thread_index
from minfer_lib.gpu.row_sums import put_sums, store_rows
from minfer_lib.gpu.unit import Unit


def one_turn(launch: Launch) -> None:
    """ArgumentError if a warp would have to start over with further rows."""
    if launch.turns > 1:
        raise ArgumentError(f"MMVQ gives each warp its rows at once; {launch} wants turns. Use more warps.")


def row_starts(launch: Launch) -> Callable:
    """Where the rows begin that a warp computes at once; those beyond the matrix begin where its last one does."""
    ROWS, TOGETHER = launch.rows, launch.together

    def starts(group, n_out, row_bytes):
        row = block_index() * ROWS + group * TOGETHER
        last = n_out - 1
        at0, at1 = np.int32(min(row, last)) * row_bytes, np.int32(min(row + 1, last)) * row_bytes
        at2, at3 = np.int32(min(row + 2, last)) * row_bytes, np.int32(min(row + 3, last)) * row_bytes
        return at0, at1, at2, at3

    return starts


def mmvq(unit: Unit, launch: Launch) -> Callable:
    """Kernel: the matrix-vector product of one format, spread as `launch` says (seed 3, §2 and §3.2).

    w: uint8[n_out * row_bytes]; x: the activations in blocks; out: float32[n_out]; n_units: n_in / 32.
    Geometry(n_out, n_in, launch) says which thread computes what. Rows beyond the matrix are computed as its last one,
    and not stored. Each result is summed in one order, so it has the same bits in every run.
    """
    one_turn(launch)
    load, dot, activations = unit[:3]
    starts, put, store = row_starts(launch), put_sums(launch), store_rows(launch)
    TOGETHER, ROW_WARPS = launch.together, launch.row_warps
    ROW_THREADS, SUMS = launch.row_threads, launch.rows * launch.row_warps

    def mul_mat_vec_q(w, x, out, n_out, n_units, row_bytes):
        thread = thread_index()
        group = (thread >> 5) // ROW_WARPS
        at0, at1, at2, at3 = starts(group, n_out, row_bytes)
        sum0, sum1, sum2, sum3 = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        u = thread - group * ROW_THREADS
        while u < n_units:
            q0 = load(w, at0, n_units, u)
            if TOGETHER > 1:
                q1 = load(w, at1, n_units, u)
            if TOGETHER > 2:
                q2, q3 = load(w, at2, n_units, u), load(w, at3, n_units, u)
            a = activations(x, u)
            sum0 += dot(q0, u, a)
            if TOGETHER > 1:
                sum1 += dot(q1, u, a)
            if TOGETHER > 2:
                sum2 += dot(q2, u, a)
                sum3 += dot(q3, u, a)
            u += ROW_THREADS
        sums = shared_f32(SUMS)
        put(sums, sum0, sum1, sum2, sum3)
        barrier()
        store(out, n_out, sums)

    return mul_mat_vec_q


def mmvq_pipelined(unit: Unit, launch: Launch) -> Callable:
    """Kernel: as mmvq, but the words of a step are loaded before the step ahead of it is computed.

    And the first of them before the kernel ahead of this one in a graph has ended, since weights depend on nothing.
    """
    one_turn(launch)
    load, dot, activations = unit[:3]
    starts, put, store = row_starts(launch), put_sums(launch), store_rows(launch)
    TOGETHER, ROW_WARPS = launch.together, launch.row_warps
    ROW_THREADS, SUMS = launch.row_threads, launch.rows * launch.row_warps

    def mul_mat_vec_q_pipelined(w, x, out, n_out, n_units, row_bytes):
        next_may_start()
        thread = thread_index()
        group = (thread >> 5) // ROW_WARPS
        at0, at1, at2, at3 = starts(group, n_out, row_bytes)
        sum0, sum1, sum2, sum3 = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        u = thread - group * ROW_THREADS
        after = min(u, n_units - 1)  # a lane without a unit loads one that it does not use
        next0 = load(w, at0, n_units, after)
        if TOGETHER > 1:
            next1 = load(w, at1, n_units, after)
        if TOGETHER > 2:
            next2, next3 = load(w, at2, n_units, after), load(w, at3, n_units, after)
        previous_done()
        while u < n_units:
            after = min(u + ROW_THREADS, n_units - 1)
            q0, next0 = next0, load(w, at0, n_units, after)
            if TOGETHER > 1:
                q1, next1 = next1, load(w, at1, n_units, after)
            if TOGETHER > 2:
                q2, next2 = next2, load(w, at2, n_units, after)
                q3, next3 = next3, load(w, at3, n_units, after)
            a = activations(x, u)
            sum0 += dot(q0, u, a)
            if TOGETHER > 1:
                sum1 += dot(q1, u, a)
            if TOGETHER > 2:
                sum2 += dot(q2, u, a)
                sum3 += dot(q3, u, a)
            u += ROW_THREADS
        sums = shared_f32(SUMS)
        put(sums, sum0, sum1, sum2, sum3)
        barrier()
        store(out, n_out, sums)

    return mul_mat_vec_q_pipelined
