"""Jobs that wait for work, not for workers: phases cut into pieces, which whoever is awake claims.

    CLAIM     number of the phase, counted since the pool began, * LEFT + how many of its pieces nobody has claimed yet
    PIECES_DONE   how many pieces of the phase are computed; who computes the last one opens the next phase

A worker that the system has put aside holds up nothing but the piece in its hands, and nobody waits for one that comes
late: it joins at the phase that it finds. The word CLAIM never repeats, so a claim by compare-and-swap cannot take a
piece of another phase than it saw. Before it has claimed a piece a worker reads nothing but the words here: the job's
own memory may be gone. While it holds one, the phase cannot end.
"""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic

from minfer_lib.native.address import call_native, native_address, words_at
from minfer_lib.native.atomics import atomic_load, atomic_store, compare_and_swap, fetch_add
from minfer_lib.native.clock import ticks
from minfer_lib.native.jit import kernel
from minfer_lib.native.waiting import (
    ARGUMENT,
    CLAIM,
    CREW,
    END_PHASE,
    FIRST_PHASE,
    FUNCTION,
    GENERATION,
    PIECES,
    PIECES_DONE,
    tell_news,
    wait_for_news,
)  # fmt: skip

LEFT = 1 << 16
MOST_PIECES = LEFT - 1


@intrinsic
def call_piece(typingctx, address, argument, phase, piece, pieces, worker):
    """Call the kernel piece_job(argument, phase, piece, pieces, worker) at native address `address`."""
    return types.void(*[types.int64] * 6), call_native


def piece_job_address(job) -> int:
    """The native address of a kernel piece_job(argument, phase, piece, pieces, worker), all int64."""
    return native_address(job, *[types.int64] * 5)


@kernel
def take_piece(control, worker, claim):
    """Claim a piece of the phase that the word `claim` shows, and compute it; nothing where another was faster."""
    if not compare_and_swap(control + CLAIM, claim, claim - 1):
        return
    number = claim // LEFT
    phase = number - atomic_load(control + FIRST_PHASE)
    pieces = words_at(atomic_load(control + PIECES), phase + 2)  # of each phase; after the last one there are 0
    count, following = pieces[phase], pieces[phase + 1]
    function, argument = atomic_load(control + FUNCTION), atomic_load(control + ARGUMENT)
    call_piece(function, argument, phase, count - claim % LEFT, count, worker)
    if fetch_add(control + PIECES_DONE, 1) == count - 1:
        atomic_store(control + PIECES_DONE, 0)
        atomic_store(control + CLAIM, (number + 1) * LEFT + following)
        tell_news(control)


@kernel
def submit_phases(control, function, argument, pieces, n_phases, workers):
    """Publish phases 0 … n_phases - 1 and work on them as worker 0 until all are computed -> ticks spent waiting.

    pieces: the address of int64[n_phases + 1], the pieces of each phase, 1 to MOST_PIECES, and a 0.
    """
    if workers == 1:  # nobody to share with
        for phase, count in enumerate(words_at(pieces, n_phases)):
            for piece in range(count):
                call_piece(function, argument, phase, piece, count, 0)
        return 0
    first = atomic_load(control + CLAIM) // LEFT + 1
    end = first + n_phases
    atomic_store(control + FUNCTION, function)
    atomic_store(control + ARGUMENT, argument)
    atomic_store(control + PIECES, pieces)
    atomic_store(control + FIRST_PHASE, first)
    atomic_store(control + CREW, workers)
    atomic_store(control + END_PHASE, end)
    atomic_store(control + CLAIM, first * LEFT + words_at(pieces, 1)[0])
    tell_news(control)
    waited = 0
    while True:
        claim = atomic_load(control + CLAIM)
        if claim // LEFT >= end:
            return waited
        if claim % LEFT:
            take_piece(control, 0, claim)
        else:
            start = ticks()
            wait_for_news(control, atomic_load(control + GENERATION), claim)
            waited += ticks() - start
