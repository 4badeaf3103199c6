"""Who computes what: how a matrix product is shared out among workers.

minfer gives each worker one range of rows. ggml cuts the output into chunks, and a worker that has finished one claims
the next (`ggml-cpu.c`, ggml_compute_forward_mul_mat; seed 2 §3). These are the same functions in notebooks and in jobs.
"""

from __future__ import annotations

from typing import NamedTuple

from minfer_lib.errors import ArgumentError
from minfer_lib.native.atomics import fetch_add
from minfer_lib.native.jit import kernel

POLICIES = {
    "even": "even ranges, as minfer",
    "ggml": "claimed chunks, as ggml",
    "fallback": "equal ranges, ggml's fallback",
}


@kernel
def even_split(worker, workers, total):
    """Rows [first, last) of this worker: one range each, sizes differing by at most one (seed 1, chunk).

    By the same rule ggml's threads share the blocks of x, when they quantize it along K.
    """
    return total * worker // workers, total * (worker + 1) // workers


@kernel
def ceil_div(a, b):
    return -(-a // b)


@kernel
def chunk_size(rows, columns):
    """At most so many rows and columns are in one chunk of ggml's: 16, or 64 where the output is a vector."""
    return 64 if rows == 1 or columns == 1 else 16


@kernel
def equal_ranges(rows, columns, threads):
    """ggml's fallback: one range a thread, along the longer side -> chunks along the rows, along the columns."""
    return (threads, 1) if rows > columns else (1, threads)


@kernel
def ggml_chunks(rows, columns, threads):
    """-> chunks along the rows, along the columns. With fewer than four a thread, claiming them is not worth it."""
    size = chunk_size(rows, columns)
    across, down = ceil_div(rows, size), ceil_div(columns, size)
    if across * down < 4 * threads:
        return equal_ranges(rows, columns, threads)
    return across, down


@kernel
def ggml_bounds(chunk, across, down, rows, columns):
    """Rows [first, last) and columns [first, last) of a chunk; chunks are numbered along the rows first.

    Their size is the number of rows over the number of chunks, rounded up: 1000 rows in 16 chunks are 63 each, and the
    last one has what is left. With more chunks than rows some are empty.
    """
    height, width = ceil_div(rows, across), ceil_div(columns, down)
    row, column = chunk % across * height, chunk // across * width
    return min(row, rows), min(row + height, rows), min(column, columns), min(column + width, columns)


@kernel
def next_chunk(counter, chunks, threads):
    """What a thread computes after a chunk: the number that it takes from the counter at this address.

    Its first chunk has the thread's own number, so the counter begins at `threads`. At `chunks` there is no more; where
    there is none beyond the first ones, nobody asks.
    """
    return fetch_add(counter, 1) if threads < chunks else chunks


@kernel
def chunk_bounds(even, chunk, across, down, rows, columns):
    """Rows and columns of a chunk, under minfer's policy (even) or ggml's."""
    if even:
        first, last = even_split(chunk, across, rows)
        return first, last, 0, columns
    return ggml_bounds(chunk, across, down, rows, columns)


class Plan(NamedTuple):
    """An output of rows × columns, cut into across × down chunks for some threads."""

    policy: str
    rows: int
    columns: int
    threads: int
    across: int
    down: int

    @property
    def chunks(self) -> int:
        return self.across * self.down

    def bounds(self, chunk: int) -> tuple[int, int, int, int]:
        """first row, end of rows, first column, end of columns"""
        return chunk_bounds(self.policy == "even", chunk, self.across, self.down, self.rows, self.columns)

    @property
    def last_counter(self) -> int:
        """What the counter ends at: each thread asks once more than it gets."""
        return self.threads + (self.chunks if self.threads < self.chunks else 0)


def plan(policy: str, rows: int, columns: int, threads: int, size: int | None = None) -> Plan:
    """How a policy of POLICIES shares out the output. size: with "ggml", so many rows and columns a chunk, whatever
    ggml's own rule says. Raises ArgumentError.
    """
    if policy not in POLICIES:
        raise ArgumentError(f"{policy!r} is not a policy: those are {', '.join(POLICIES)}.")
    if min(rows, columns, threads) < 1 or (size is not None and (policy != "ggml" or size < 1)):
        raise ArgumentError("rows, columns and threads are 1 or more; a size of 1 or more goes with policy 'ggml'.")
    if policy == "even":
        across, down = threads, 1
    elif policy == "fallback":
        across, down = equal_ranges(rows, columns, threads)
    elif size is not None:
        across, down = ceil_div(rows, size), ceil_div(columns, size)
    else:
        across, down = ggml_chunks(rows, columns, threads)
    return Plan(policy, rows, columns, threads, int(across), int(down))
