"""A matrix product that writes down which thread computed which chunk, and when.

It is a job for the pool in ggml's two phases: each thread quantizes its share of x, all wait for each other, then each
takes chunks until there are none. Under the policy "even" it takes one, and that is what `mf.matmul` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numba import carray

from minfer_lib.errors import ArgumentError
from minfer_lib.formats.table import FORMATS
from minfer_lib.matmul.chunks import Plan, chunk_bounds, even_split, next_chunk, plan
from minfer_lib.matmul.rows import Matrix, check_threads, operands
from minfer_lib.native.address import call_quantizer, call_rows, pointer
from minfer_lib.native.atomics import atomic_store, yield_core
from minfer_lib.native.clock import TICK_NS, ticks
from minfer_lib.native.jit import kernel
from minfer_lib.native.pool import barrier, job_address, pool
from minfer_lib.quantize.activations import rows_quantizer

# One line of a thread's log; times in nanoseconds since the job began.
CHUNK = np.dtype([("chunk", np.int64), ("thread", np.int64), ("start", np.int64), ("end", np.int64)])
# What a thread did before phase 2: it quantized until `quantized`, then waited for the others until `passed`.
PHASE = np.dtype([("start", np.int64), ("quantized", np.int64), ("passed", np.int64)])

_RUN = np.dtype(
    [(name, np.int64) for name in (
        *("control", "counter", "quantize", "block_values", "block_bytes", "x", "a", "a_row_bytes", "bad"),
        *("rows_function", "w", "row_bytes", "n_out", "n_in", "n_blocks", "n_tokens", "out"),
        *("even", "across", "down", "record", "log", "log_size", "taken", "phases", "slow"),
    )]
)  # fmt: skip


@dataclass(frozen=True)
class Trace:
    """chunks: CHUNK[n], in the order in which they were begun; phases: PHASE[threads]; counter: its last value;
    out: f32[n_tokens, n_out].
    """

    plan: Plan
    chunks: np.ndarray
    phases: np.ndarray
    counter: int
    out: np.ndarray | None

    @property
    def nanoseconds(self) -> int:
        """From the start of the job to the end of the last chunk."""
        return int(max(self.chunks["end"].max(), self.phases["passed"].max()))

    def of(self, thread: int) -> np.ndarray:
        """The chunks of one thread, in order."""
        return self.chunks[self.chunks["thread"] == thread]


@kernel
def trace_job(argument, part, parts):
    """Job: the product that the _RUN at `argument` describes."""
    run = carray(pointer(argument), 1, _RUN)[0]
    phase = carray(pointer(run.phases), parts, PHASE)[part]
    phase.start = ticks()
    _quantize_share(run, argument, part, parts)
    phase.quantized = ticks()
    if part == 0:
        atomic_store(run.counter, parts)
    barrier(run.control, parts)
    phase.passed = ticks()
    take_chunks(run, part, parts)


@kernel
def _quantize_share(run, argument, part, parts):
    """Phase 1: this part's blocks of every row of x."""
    if run.quantize == 0:
        return
    first, last = even_split(part, parts, run.n_in // run.block_values)
    values = (last - first) * run.block_values
    for t in range(run.n_tokens):
        x = run.x + 4 * (t * run.n_in + first * run.block_values)
        a = run.a + t * run.a_row_bytes + first * run.block_bytes
        if values and call_quantizer(run.quantize, x, 1, values, a) == 0:
            carray(pointer(argument), 1, _RUN)[0].bad = 1


@kernel
def take_chunks(run, part, parts):
    """Phase 2: the chunk with this part's number, then those that it claims."""
    log = carray(pointer(run.log), (parts, run.log_size), CHUNK)[part]
    slow = carray(pointer(run.slow), parts, np.float64)[part]
    chunks, taken = run.across * run.down, 0
    chunk, start = part, ticks()
    while chunk < chunks:
        _compute(run, chunk)
        if slow > 1:
            _wait_until(start + np.int64((ticks() - start) * slow))
        if run.record:
            end = ticks()
            line = log[taken]
            line.chunk, line.thread, line.start, line.end = chunk, part, start, end
            start = end  # the claim counts as part of the next chunk
        taken += 1
        chunk = next_chunk(run.counter, chunks, parts)
    carray(pointer(run.taken), parts, np.int64)[part] = taken


@kernel
def _compute(run, chunk):
    r0, r1, c0, c1 = chunk_bounds(run.even, chunk, run.across, run.down, run.n_out, run.n_tokens)
    if r0 < r1 and c0 < c1:
        a, out = run.a + c0 * run.a_row_bytes, run.out + 4 * c0 * run.n_out
        call_rows(
            run.rows_function, run.w, run.row_bytes, r0, r1, a, run.a_row_bytes, c1 - c0, run.n_blocks, out, run.n_out
        )


@kernel
def _wait_until(end):
    while ticks() < end:
        yield_core()


def trace_matmul(
    name: str,
    w: np.ndarray,
    x: np.ndarray,
    threads: int | None = None,
    policy: str = "ggml",
    slow: Mapping[int, float] | None = None,
    size: int | None = None,
    record: bool = True,
) -> Trace:
    """mf.matmul("Q4_0", w, x, threads) under a policy of POLICIES, traced: the same bits, and who made them.

    slow: thread -> how many times as long it takes for each chunk (it waits after computing). size: rows and columns a
    chunk, with "ggml". record=False: the same run without its notes, to see what they cost; its `.chunks` is empty.
    Raises what mf.matmul raises, and ArgumentError for a policy, size or slow thread that cannot be.
    """
    threads, slow = check_threads(threads), slow or {}
    matrix, x = operands(name, w, x)
    if any(not 0 <= thread < threads or not factor >= 1 for thread, factor in slow.items()):
        raise ArgumentError(f"slow is thread: factor, threads 0 to {threads - 1}, factors 1 or more; not {slow}.")
    cut = plan(policy, matrix.n_out, x.shape[0], threads, size)
    words, buffers = _run_words(matrix, x, cut, record)
    buffers.slow[list(slow)] = list(slow.values())
    pool().run(job_address(trace_job), words.ctypes.data, threads)
    if words["bad"][0]:
        raise ArgumentError(f"{matrix.activation} activations must be finite; the values hold NaN or infinity.")
    log = np.concatenate([buffers.log[part, :taken] for part, taken in enumerate(buffers.taken)])
    return _trace(cut, log if record else log[:0], buffers)


@dataclass
class _Buffers:
    """What a run writes into; they live as long as it."""

    a: np.ndarray
    out: np.ndarray
    counter: np.ndarray  # int64[16]: its word has a cache line of its own, wherever the array begins
    log: np.ndarray
    taken: np.ndarray
    phases: np.ndarray
    slow: np.ndarray


def _run_words(matrix: Matrix, x: np.ndarray, cut: Plan, record: bool) -> tuple[np.ndarray, _Buffers]:
    threads, log_size = cut.threads, cut.chunks if record else 1
    form = FORMATS.get(matrix.activation)
    a = np.empty((x.shape[0], form.row_bytes(x.shape[1])), np.uint8) if form else x.view(np.uint8)
    buffers = _Buffers(
        a, np.empty((x.shape[0], matrix.n_out), np.float32), np.zeros(16, np.int64),
        np.zeros((threads, log_size), CHUNK), np.zeros(threads, np.int64), np.zeros(threads, PHASE), np.ones(threads),
    )  # fmt: skip
    words = np.zeros(1, _RUN)
    values = {
        "control": pool().control, "counter": buffers.counter[8:].ctypes.data,
        "quantize": rows_quantizer(matrix.activation) if form else 0,
        "block_values": form.block_values if form else 1, "block_bytes": form.block_bytes if form else 4,
        "x": x.ctypes.data, "a": a.ctypes.data, "a_row_bytes": a.shape[1],
        "rows_function": matrix.rows_function, "w": matrix.address, "row_bytes": matrix.row_bytes,
        "n_out": matrix.n_out, "n_in": matrix.n_in, "n_blocks": matrix.n_blocks, "n_tokens": x.shape[0],
        "out": buffers.out.ctypes.data, "even": cut.policy == "even", "across": cut.across, "down": cut.down,
        "record": record, "log": buffers.log.ctypes.data, "log_size": log_size, "taken": buffers.taken.ctypes.data,
        "phases": buffers.phases.ctypes.data, "slow": buffers.slow.ctypes.data,
    }  # fmt: skip
    for key, value in values.items():
        words[key] = value
    return words, buffers


def _trace(cut: Plan, log: np.ndarray, buffers: _Buffers) -> Trace:
    """Times in nanoseconds from the first thread's start."""
    zero = buffers.phases["start"].min()
    chunks, phases = log[np.argsort(log["start"], kind="stable")], buffers.phases
    for table, names in ((chunks, ("start", "end")), (phases, PHASE.names)):
        for key in names:
            table[key] = np.round((table[key] - zero) * TICK_NS)
    return Trace(cut, chunks, phases, int(buffers.counter[8]), buffers.out)
