"""How threads of the pool wait for each other: a short spin, then a real sleep that costs no CPU.

The words of the pool's control block, by their byte offset; each has a cache line of its own. TURN and SLEEPERS are for
sleeping: whoever publishes something for others changes TURN if anybody sleeps, and wakes them.
"""

from __future__ import annotations

from minfer_lib.native.atomics import atomic_load, fetch_add, pause, yield_core
from minfer_lib.native.clock import TICK_NS, ticks
from minfer_lib.native.futex import wait_on, wake_all
from minfer_lib.native.jit import kernel

GENERATION, FUNCTION, ARGUMENT, DONE, ARRIVED, PHASE, STOP, TURN, SLEEPERS = (64 * i for i in range(9))
CLAIM, PIECES_DONE, CREW, PIECES, FIRST_PHASE, END_PHASE = (64 * i for i in range(9, 15))  # see claims.py
WORDS = 15

SPIN = int(100_000 / TICK_NS)  # ticks: most waits inside a token are shorter, and a sleep costs about 50 µs to end
_NAP_NS = 50_000_000  # the longest sleep; nobody relies on it
_SPINS = 200


@kernel
def relax(waited):
    """One turn of a loop that waits in a barrier: at first the core only pauses, later another thread may have it."""
    if waited < _SPINS:
        pause()
    else:
        yield_core()


@kernel
def wait_for_news(control, generation, claim):
    """Return when one of these two words is no longer what it was seen to be; sometimes earlier."""
    start = ticks()
    while ticks() - start < SPIN:
        for _ in range(20):
            pause()
            if atomic_load(control + CLAIM) != claim or atomic_load(control + GENERATION) != generation:
                return
    turn = atomic_load(control + TURN)  # before looking again: what is published after this look changes it
    fetch_add(control + SLEEPERS, 1)
    same = atomic_load(control + CLAIM) == claim and atomic_load(control + GENERATION) == generation
    if same and atomic_load(control + STOP) == 0:
        wait_on(control + TURN, turn, _NAP_NS)
    fetch_add(control + SLEEPERS, -1)


@kernel
def tell_news(control):
    """After a word was changed: wake those who sleep."""
    if atomic_load(control + SLEEPERS) > 0:
        fetch_add(control + TURN, 1)
        wake_all(control + TURN)
