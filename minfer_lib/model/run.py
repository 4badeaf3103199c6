"""Running the list in compiled code: a job in which all workers go through the phases side by side."""

from __future__ import annotations

from numba import carray

from minfer_lib.matmul.chunks import chunk_bounds, ggml_chunks, next_chunk
from minfer_lib.model.operation import call_operation
from minfer_lib.native.address import int64_record, pointer, words_at
from minfer_lib.native.clock import ticks
from minfer_lib.native.jit import kernel
from minfer_lib.native.pool import barrier

# What one pass works on. Every operation may read it.
RUN = int64_record(
    "n_tokens",
    "wanted",  # the last so many tokens: only these go beyond the layers
    "position",  # of the first token
    "cos",  # addresses of float32[n_tokens, head_dim / 2]: by what RoPE turns each pair
    "sin",
    "bad",  # set when a quantizer met NaN or infinity
    "operations",  # address of the OPERATION records
    "first",  # of them, and the end of those to run
    "last",
    "control",  # of the pool, for its barrier
    "spent",  # address of an int64 for each name: the ticks that its operations took
    "claim",  # 1: workers claim chunks of rows, as ggml's; 0: each has one range
)

OPERATION = int64_record(
    "job",
    "operands",  # address of its record
    "units",  # of each token; in all where they are rows
    "per_token",
    "together",  # tokens of a unit
    "of_wanted",  # 1: only the last `wanted` tokens go through it
    "alone",  # 1: with one token, every worker does all of it for itself, and nobody waits
    "at_once",  # units that go through the whole phase before the next ones
    "phase_end",  # the operation that begins the next phase
    "name",  # its index in `spent`
    "counter",  # address of the word from which chunks of the phase are claimed
)


@kernel
def run_operations(run, worker, workers):
    """Job: operations [first, last) of the RUN at address `run`, phase by phase.

    The last worker, the caller, adds up what each operation took; waiting counts to the phase's last one.
    """
    r = carray(pointer(run), 1, RUN)[0]
    operations = carray(pointer(r.operations), r.last, OPERATION)
    at = r.first
    while at < r.last:
        phase, end = operations[at], min(operations[at].phase_end, r.last)
        n = r.wanted if phase.of_wanted else r.n_tokens
        units = phase.units * (n // phase.together + n % phase.together) if phase.per_token else phase.units
        alone = n == 1 and phase.alone != 0
        chunks = 1 if alone else ggml_chunks(units, 1, workers)[0] if r.claim and not phase.per_token else workers
        chunk = 0 if alone else worker
        while chunk < chunks:
            first, last, _, _ = chunk_bounds(not r.claim or phase.per_token, chunk, chunks, 1, units, 1)
            _run_units(operations[at:end], run, r.spent, n, first, last, worker, workers)
            chunk = next_chunk(phase.counter, chunks, workers) if r.claim and not alone else chunks
        if not alone:
            start = ticks()
            barrier(r.control, workers)
            _spend(r.spent, operations[end - 1].name, start, worker, workers)
        at = end


@kernel
def _run_units(phase, run, spent, n, first, last, worker, workers):
    """Units [first, last) through all operations of the phase, with n tokens."""
    at_once = phase[0].at_once if n > 1 and phase[0].at_once else max(1, last - first)
    for begin in range(first, last, at_once):
        start = ticks()
        for operation in phase:
            call_operation(operation.job, operation.operands, run, n, begin, min(begin + at_once, last), worker)
            start = _spend(spent, operation.name, start, worker, workers)


@kernel
def _spend(spent, name, start, worker, workers):
    """Add the time since `start` to a name's word, if this is the caller -> now."""
    if worker != workers - 1:
        return start
    now = ticks()
    words_at(spent, name + 1)[name] += now - start
    return now
