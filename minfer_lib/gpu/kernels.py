"""The kernels: a ceiling probe, the old kernel with float32 activations, the quantizer of the activations, and MMVQ.

Plain Python over the operations of ops.py. `device.py` compiles it for a GPU, `warp_sim.py` runs it on the CPU.
Those that depend on a format or on launch parameters are made by a function of these, so that both are constants in the
compiled kernel.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.gpu.geometry import Launch
from minfer_lib.gpu.ops import (
    barrier,
    bits_f32,
    block_index,
    divide,
    f32_bits,
    f32_to_f16,
    load4,
    n_blocks,
    next_may_start,
    previous_done,
    round_even,
    shared_arrival,
    shared_bytes,
    shared_f32,
    shuffle_down,
    start_copy,
    store4,
    stream16,
    thread_index,
    wait_copy,
    warp_max,
    warp_sum,
)
from minfer_lib.gpu.units import ActivationBlock, Unit, staged

PROBE_THREADS = 256
QUANTIZER_WARPS = 4
MAGNITUDE = np.uint32(0x7FFFFFFF)  # a float32 without its sign; as integers, magnitudes are in order, NaN last
INFINITY = np.float32(np.inf)


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


def quantizer(block: ActivationBlock) -> Callable:
    """Kernel: x, float32[32 n] -> out, uint8[n * block_bytes]: a warp a block, a lane a value.

    The bytes are those of mf.quantize_activations("Q8_0_PAD40", x), laid out as `block` says; bytes between the fields
    are left alone. NaN or infinity makes d NaN or infinite, and with it every row's result.
    """
    BYTES, SUM, CODES = block

    def quantize(x, out, n):
        next_may_start()
        previous_done()
        block = block_index() * QUANTIZER_WARPS + (thread_index() >> 5)
        lane = thread_index() & 31
        if block < n:
            value = x[32 * block + lane]
            amax = bits_f32(warp_max(f32_bits(value) & MAGNITUDE))
            inverse = divide(np.float32(127), amax)
            if not inverse < INFINITY:  # all zeros, or nearly: every code is zero
                inverse = np.float32(0)
            code = round_even(value * inverse)
            total = warp_sum(code)
            out[BYTES * block + CODES + lane] = np.uint8(code & 255)
            if lane == 0:
                store4(out, BYTES * block, f32_to_f16(divide(amax, np.float32(127))))
                store4(out, BYTES * block + SUM, total)

    return quantize


def warp_total(value):
    """The sum of the 32 lanes' values, in lane 0: half as many partial sums five times."""
    value += shuffle_down(value, 16)
    value += shuffle_down(value, 8)
    value += shuffle_down(value, 4)
    value += shuffle_down(value, 2)
    return value + shuffle_down(value, 1)


# The end of every MMVQ kernel. A barrier must come between the two halves.


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


def one_turn(launch: Launch) -> None:
    """ArgumentError if a warp would have to start over with further rows."""
    if launch.turns > 1:
        raise ArgumentError(f"MMVQ gives each warp its rows at once; {launch} wants turns. Use more warps.")


def mmvq(unit: Unit, launch: Launch) -> Callable:
    """Kernel: the matrix-vector product of one format, spread as `launch` says (seed 3, §2 and §3.2).

    w: uint8[n_out * row_bytes]; x: the activations in blocks; out: float32[n_out]; n_units: n_in / 32.
    Geometry(n_out, n_in, launch) says which thread computes what. Rows beyond the matrix are computed as its last one,
    and not stored. Each result is summed in one order, so it has the same bits in every run.
    """
    one_turn(launch)
    load, dot, activations = unit[:3]
    put, store = put_sums(launch), store_rows(launch)
    ROWS, TOGETHER, ROW_WARPS = launch.rows, launch.together, launch.row_warps
    ROW_THREADS, SUMS = launch.row_threads, launch.rows * launch.row_warps

    def mul_mat_vec_q(w, x, out, n_out, n_units, row_bytes):
        thread = thread_index()
        group = (thread >> 5) // ROW_WARPS
        row = block_index() * ROWS + group * TOGETHER
        last = n_out - 1
        at0, at1 = np.int32(min(row, last)) * row_bytes, np.int32(min(row + 1, last)) * row_bytes
        at2, at3 = np.int32(min(row + 2, last)) * row_bytes, np.int32(min(row + 3, last)) * row_bytes
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
    put, store = put_sums(launch), store_rows(launch)
    ROWS, TOGETHER, ROW_WARPS = launch.rows, launch.together, launch.row_warps
    ROW_THREADS, SUMS = launch.row_threads, launch.rows * launch.row_warps

    def mul_mat_vec_q_pipelined(w, x, out, n_out, n_units, row_bytes):
        next_may_start()
        thread = thread_index()
        group = (thread >> 5) // ROW_WARPS
        row = block_index() * ROWS + group * TOGETHER
        last = n_out - 1
        at0, at1 = np.int32(min(row, last)) * row_bytes, np.int32(min(row + 1, last)) * row_bytes
        at2, at3 = np.int32(min(row + 2, last)) * row_bytes, np.int32(min(row + 3, last)) * row_bytes
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


def chase(w, place, n):
    """w: the bytes of uint32[…], each the index of the next one to read; place: uint32[1], where to begin and where it
    ended. One thread, n loads, each of which needs the one before: the time from a load to its data."""
    i = place[0]
    for _ in range(n):
        i = load4(w, 4 * np.int64(i))
    place[0] = i
