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
from minfer_lib.matmul.api import check_threads, operands
from minfer_lib.matmul.chunks import Plan, chunk_bounds, even_split, next_chunk, plan
from minfer_lib.matmul.product import PRODUCT, Matrix, call_compute
from minfer_lib.native.address import int64_record, pointer, record_of
from minfer_lib.native.atomics import atomic_store, yield_core
from minfer_lib.native.clock import TICK_NS, ticks
from minfer_lib.native.jit import kernel
from minfer_lib.native.pool import barrier, job_address, pool
from minfer_lib.quantize.activations import call_quantizer, rows_quantizer

# One line of a thread's log; times in nanoseconds since the job began.
CHUNK = np.dtype([("chunk", np.int64), ("thread", np.int64), ("start", np.int64), ("end", np.int64)])
# What a thread did before phase 2: it quantized until `quantized`, then waited for the others until `passed`.
PHASE = np.dtype([("start", np.int64), ("quantized", np.int64), ("passed", np.int64)])

_RUN = int64_record(
    "product",  # address of the PRODUCT
    "n_tokens",
    "control",  # of the pool, for its barrier
    "counter",  # address of the word from which chunks are claimed
    "quantize",  # of x, phase 1: address of the quantizer; 0: the product takes x as it is
    "block_values",
    "block_bytes",
    "x",
    "bad",  # set where x held NaN or infinity
    "even",  # 1: minfer's policy, else ggml's
    "across",  # chunks along the rows
    "down",  # and along the tokens
    "record",  # 1: write the log
    "log",
    "log_size",
    "taken",
    "phases",
    "slow",
)


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
def trace_job(argument, worker, workers):
    """Job: the product that the _RUN at `argument` describes."""
    run = carray(pointer(argument), 1, _RUN)[0]
    phase = carray(pointer(run.phases), workers, PHASE)[worker]
    phase.start = ticks()
    _quantize_share(run, argument, worker, workers)
    phase.quantized = ticks()
    if worker == 0:
        atomic_store(run.counter, workers)
    barrier(run.control, workers)
    phase.passed = ticks()
    take_chunks(run, worker, workers)


@kernel
def _quantize_share(run, argument, worker, workers):
    """Phase 1: this worker's blocks of every row of x."""
    if run.quantize == 0:
        return
    product = carray(pointer(run.product), 1, PRODUCT)[0]
    first, last = even_split(worker, workers, product.n_in // run.block_values)
    values = (last - first) * run.block_values
    for t in range(run.n_tokens):
        x = run.x + 4 * (t * product.n_in + first * run.block_values)
        a = product.a + t * product.a_row_bytes + first * run.block_bytes
        if values and call_quantizer(run.quantize, x, 1, values, a) == 0:
            carray(pointer(argument), 1, _RUN)[0].bad = 1


@kernel
def take_chunks(run, worker, workers):
    """Phase 2: the chunk with this worker's number, then those that it claims."""
    log = carray(pointer(run.log), (workers, run.log_size), CHUNK)[worker]
    slow = carray(pointer(run.slow), workers, np.float64)[worker]
    chunks, taken = run.across * run.down, 0
    chunk, start = worker, ticks()
    while chunk < chunks:
        _compute_chunk(run, chunk, worker)
        if slow > 1:
            _wait_until(start + np.int64((ticks() - start) * slow))
        if run.record:
            end = ticks()
            line = log[taken]
            line.chunk, line.thread, line.start, line.end = chunk, worker, start, end
            start = end  # the claim counts as part of the next chunk
        taken += 1
        chunk = next_chunk(run.counter, chunks, workers)
    carray(pointer(run.taken), workers, np.int64)[worker] = taken


@kernel
def _compute_chunk(run, chunk, worker):
    product = carray(pointer(run.product), 1, PRODUCT)[0]
    r0, r1, c0, c1 = chunk_bounds(run.even, chunk, run.across, run.down, product.n_out, run.n_tokens)
    if r0 < r1 and c0 < c1:
        call_compute(product.compute, run.product, r0, r1, c0, c1, worker)


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
    run, buffers = _run(matrix, x, cut, record)
    buffers.slow[list(slow)] = list(slow.values())
    pool().run(job_address(trace_job), run.ctypes.data, threads)
    if run["bad"][0]:
        raise ArgumentError(f"{matrix.activation} activations must be finite; the values hold NaN or infinity.")
    log = np.concatenate([buffers.log[worker, :taken] for worker, taken in enumerate(buffers.taken)])
    return _trace(cut, log if record else log[:0], buffers)


@dataclass
class _Buffers:
    """What a run writes into; they live as long as it."""

    a: np.ndarray
    out: np.ndarray
    product: np.ndarray
    counter: np.ndarray  # int64[16]: its word has a cache line of its own, wherever the array begins
    log: np.ndarray
    taken: np.ndarray
    phases: np.ndarray
    slow: np.ndarray


def _run(matrix: Matrix, x: np.ndarray, cut: Plan, record: bool) -> tuple[np.ndarray, _Buffers]:
    """The _RUN of a product, and what it points to."""
    threads, log_size = cut.threads, cut.chunks if record else 1
    form = FORMATS.get(matrix.activation)
    a = np.empty((x.shape[0], form.row_bytes(x.shape[1])), np.uint8) if form else x.view(np.uint8)
    out = np.empty((x.shape[0], matrix.n_out), np.float32)
    product = matrix.product(a.ctypes.data, a.shape[1], out.ctypes.data)  # without panels: row by row
    buffers = _Buffers(
        a, out, product, np.zeros(16, np.int64), np.zeros((threads, log_size), CHUNK), np.zeros(threads, np.int64),
        np.zeros(threads, PHASE), np.ones(threads),
    )  # fmt: skip
    run = record_of(
        _RUN, product=product.ctypes.data, n_tokens=x.shape[0], control=pool().control,
        counter=buffers.counter[8:].ctypes.data, quantize=rows_quantizer(matrix.activation) if form else 0,
        block_values=form.block_values if form else 1, block_bytes=form.block_bytes if form else 4, x=x.ctypes.data,
        bad=0, even=cut.policy == "even", across=cut.across, down=cut.down, record=record, log=buffers.log.ctypes.data,
        log_size=log_size, taken=buffers.taken.ctypes.data, phases=buffers.phases.ctypes.data,
        slow=buffers.slow.ctypes.data,
    )  # fmt: skip
    return run, buffers


def _trace(cut: Plan, log: np.ndarray, buffers: _Buffers) -> Trace:
    """Times in nanoseconds from the first thread's start."""
    zero = buffers.phases["start"].min()
    chunks, phases = log[np.argsort(log["start"], kind="stable")], buffers.phases
    for table, names in ((chunks, ("start", "end")), (phases, PHASE.names)):
        for key in names:
            table[key] = np.round((table[key] - zero) * TICK_NS)
    return Trace(cut, chunks, phases, int(buffers.counter[8]), buffers.out)
