"""Running the list in compiled code: phase by phase, each cut into pieces that workers claim.

With one token, the operations on whole tokens (norm, quantize) are not worth waiting for: they are no phase of their
own, and every worker makes the token's row for itself before its first piece of the phase that follows.
"""

from __future__ import annotations

from numba import carray

from minfer_lib.matmul.chunks import ceil_div, even_split, ggml_bounds
from minfer_lib.model.operation import call_operation
from minfer_lib.native.address import int64_record, pointer, words_at
from minfer_lib.native.clock import ticks
from minfer_lib.native.jit import kernel

# What one pass works on. Every operation may read it.
RUN = int64_record(
    "n_tokens",
    "wanted",  # the last so many tokens: only these go beyond the layers
    "position",  # of the first token
    "cos",  # addresses of float32[n_tokens, head_dim / 2]: by what RoPE turns each pair
    "sin",
    "bad",  # set when a quantizer met NaN or infinity
    "operations",  # address of the OPERATION records
    "phases",  # address of this pass's PHASE records
    "prepared",  # address of a word a worker, a cache line each: the phase for which it has made its own rows
    "ggml",  # 1: rows are cut into ggml's chunks; 0: into ranges of whole tiles
    "spent",  # address of a word for each name: the ticks that its operations took, as worker 0, the caller, saw them
    "clock",  # when it last looked
    "name",  # and at which operation
)

OPERATION = int64_record(
    "job",
    "operands",  # address of its record
    "of_wanted",  # 1: only the last `wanted` tokens go through it
    "name",  # its index in `spent`
)

PHASE = int64_record(
    "own",  # the first operation, up to `first`, of those that every worker does for itself before
    "first",  # the operations of the phase
    "end",
    "units",  # of this pass
    "step",  # units are handed out in so many together
    "at_once",  # units that go through the whole phase before the next ones
)


@kernel
def run_piece(run, phase, piece, pieces, worker):
    """A piece of a phase of the RUN at address `run`: its units through all operations of the phase."""
    r = carray(pointer(run), 1, RUN)[0]
    p = carray(pointer(r.phases), phase + 1, PHASE)[phase]
    counts = worker == 0  # the caller reads the clock
    if counts:
        _spend(run, r.name)  # it waited for the phase
    prepared = words_at(r.prepared + 64 * worker, 1)
    if prepared[0] != phase:
        prepared[0] = phase
        _run_units(run, p.own, p.first, 0, 1, worker, counts)
    first, last = _bounds(r.ggml, piece, pieces, p.units, p.step)
    for begin in range(first, last, p.at_once):
        _run_units(run, p.first, p.end, begin, min(begin + p.at_once, last), worker, counts)


@kernel
def _bounds(ggml, piece, pieces, units, step):
    """Units [first, last) of a piece."""
    if ggml and step > 1:
        first, last, _, _ = ggml_bounds(piece, pieces, 1, units, 1)
        return first, last
    first, last = even_split(piece, pieces, ceil_div(units, step))
    return first * step, min(last * step, units)


@kernel
def _run_units(run, first, end, begin, last, worker, counts):
    """Units [begin, last) through operations [first, end)."""
    r = carray(pointer(run), 1, RUN)[0]
    for operation in carray(pointer(r.operations), end, OPERATION)[first:end]:
        n = r.wanted if operation.of_wanted else r.n_tokens
        call_operation(operation.job, operation.operands, run, n, begin, last, worker)
        if counts:
            _spend(run, operation.name)


@kernel
def _spend(run, name):
    """Add the time since the last look at the clock to a name's word."""
    r, now = carray(pointer(run), 1, RUN)[0], ticks()
    words_at(r.spent, name + 1)[name] += now - r.clock
    r.clock, r.name = now, name


@kernel
def run_alone(run, first, end, units):
    """Operations [first, end), with so many units, as the only worker."""
    _run_units(run, first, end, 0, units, 0, True)


@kernel
def look_at_clock(run, waited):
    """Begin to count the time; or, waited: it was spent waiting for the last phase."""
    if waited:
        _spend(run, carray(pointer(run), 1, RUN)[0].name)
    carray(pointer(run), 1, RUN)[0].clock = ticks()
