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
    n_blocks,
    round_even,
    shared_f32,
    shuffle_down,
    store4,
    stream16,
    thread_index,
    warp_max,
    warp_sum,
)
from minfer_lib.gpu.units import ActivationBlock, Unit

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


def mmvq(unit: Unit, launch: Launch) -> Callable:
    """Kernel: the matrix-vector product of one format, spread as `launch` says (seed 3, §2 and §3.2).

    w: uint8[n_out * row_bytes]; x: the activations in blocks; out: float32[n_out]; n_units: n_in / 32.
    Geometry(n_out, n_in, launch) says which thread computes what. Rows beyond the matrix are computed as its last one,
    and not stored. Each result is summed in one order, so it has the same bits in every run.
    """
    if launch.turns > 1:
        raise ArgumentError(f"MMVQ gives each warp its rows at once; {launch} wants turns. Use more warps.")
    load, dot, activations = unit[:3]
    ROWS, TOGETHER, ROW_WARPS = launch.rows, launch.together, launch.row_warps
    ROW_THREADS = launch.row_threads

    def mul_mat_vec_q(w, x, out, n_out, n_units, row_bytes):
        thread = thread_index()
        warp = thread >> 5
        group = warp // ROW_WARPS
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
        sum0 = warp_total(sum0)
        if TOGETHER > 1:
            sum1 = warp_total(sum1)
        if TOGETHER > 2:
            sum2, sum3 = warp_total(sum2), warp_total(sum3)
        if ROW_WARPS > 1:  # the warps that share a row add up their sums
            sums = shared_f32(ROWS * ROW_WARPS)
            if thread & 31 == 0:
                sums[warp * TOGETHER] = sum0
                if TOGETHER > 1:
                    sums[warp * TOGETHER + 1] = sum1
                if TOGETHER > 2:
                    sums[warp * TOGETHER + 2] = sum2
                    sums[warp * TOGETHER + 3] = sum3
            barrier()
            row = block_index() * ROWS + thread
            if thread < ROWS and row < n_out:
                first = (thread // TOGETHER * ROW_WARPS) * TOGETHER + thread % TOGETHER
                total = np.float32(0)
                for i in range(ROW_WARPS):
                    total += sums[first + i * TOGETHER]
                out[row] = total
        elif thread & 31 == 0:
            if row < n_out:
                out[row] = sum0
            if TOGETHER > 1 and row + 1 < n_out:
                out[row + 1] = sum1
            if TOGETHER > 2 and row + 2 < n_out:
                out[row + 2] = sum2
            if TOGETHER > 2 and row + 3 < n_out:
                out[row + 3] = sum3

    return mul_mat_vec_q


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
