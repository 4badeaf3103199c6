"""The persistent workers: threads that stay in compiled code and wait there for the next job.

A job is the native address of a kernel job(argument, worker, workers), all int64: each worker takes its share.
Submitting one wakes the pool's threads, which are workers 0, 1 … while the caller is the last; it returns when all are
done (seed 1 §3.2, the thread pool).

    generation   a word that counts jobs, and says how many workers the newest has: one load tells a thread all it needs
    done         how many of the pool's threads have finished their share
    arrived, phase   of the barrier inside a job
    stop         set once, when the interpreter ends

There are two kinds of job. `run` is for jobs in which every worker takes its share, and all are waited for: a barrier
may stand in them. `run_phases` is for those whose pieces anybody may compute (`claims.py`).

A thread without work spins, then sleeps, then goes back to Python and waits there: an idle notebook uses no CPU.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Iterator

import numpy as np
from numba import types
from numba.extending import intrinsic

from minfer_lib.errors import ArgumentError
from minfer_lib.native.address import call_native, native_address
from minfer_lib.native.atomics import atomic_load, atomic_store, current_core, fetch_add
from minfer_lib.native.claims import LEFT, submit_phases, take_piece
from minfer_lib.native.clock import TICK_NS, ticks
from minfer_lib.native.crew import Crew
from minfer_lib.native.jit import kernel
from minfer_lib.native.waiting import (
    ARGUMENT,
    ARRIVED,
    CLAIM,
    CREW,
    DONE,
    END_PHASE,
    FUNCTION,
    GENERATION,
    PHASE,
    STOP,
    WORDS,
    relax,
    tell_news,
    wait_for_news,
)  # fmt: skip

_WORKERS = 1 << 16  # generation = jobs so far * _WORKERS + workers of the newest
MOST_WORKERS = _WORKERS - 1
_PATIENCE = int(50_000_000 / TICK_NS)  # ticks without work after which a thread goes back to Python


@intrinsic
def call_job(typingctx, address, argument, worker, workers):
    """Call the kernel job(argument, worker, workers) -> None, all int64, at native address `address`."""
    return types.void(*[types.int64] * 4), call_native


@kernel
def barrier(control, workers):
    """Inside a job: wait until every worker has come here. What any of them wrote before, all see after."""
    if workers == 1:
        return
    phase = atomic_load(control + PHASE)
    if fetch_add(control + ARRIVED, 1) == workers - 1:
        atomic_store(control + ARRIVED, 0)
        fetch_add(control + PHASE, 1)
        return
    waited = 0
    while atomic_load(control + PHASE) == phase:
        relax(waited)
        waited += 1


@kernel
def _serve(control, index, seen):
    """Be worker `index` of every job, until there is none for a while -> the last generation that was seen."""
    since = ticks()
    while atomic_load(control + STOP) == 0 and ticks() - since < _PATIENCE:
        generation, claim = atomic_load(control + GENERATION), atomic_load(control + CLAIM)
        if generation != seen:
            seen = generation
            workers = generation % _WORKERS
            if index < workers - 1:  # else it has no share for this one, and its words may already be the next one's
                call_job(atomic_load(control + FUNCTION), atomic_load(control + ARGUMENT), index, workers)
                fetch_add(control + DONE, 1)
                since = ticks()
        elif claim // LEFT >= atomic_load(control + END_PHASE):  # no phase is open
            wait_for_news(control, generation, claim)
        elif index >= atomic_load(control + CREW) - 1:
            return seen
        elif claim % LEFT:
            take_piece(control, index + 1, claim)  # worker 0 is the caller
            since = ticks()
        else:
            wait_for_news(control, generation, claim)
    return seen


@kernel
def _publish(control, function, argument, workers):
    """Make a job the newest. Nobody computes an older one: each is waited for."""
    atomic_store(control + FUNCTION, function)
    atomic_store(control + ARGUMENT, argument)
    atomic_store(control + DONE, 0)
    jobs = atomic_load(control + GENERATION) // _WORKERS
    atomic_store(control + GENERATION, (jobs + 1) * _WORKERS + workers)
    tell_news(control)


@kernel
def _submit(control, function, argument, workers):
    """Publish the job, be its last worker, wait for the others: one call, so that no interrupt comes in between."""
    if workers > 1:
        _publish(control, function, argument, workers)
    call_job(function, argument, workers - 1, workers)
    waited = 0
    while atomic_load(control + DONE) < workers - 1:
        relax(waited)
        waited += 1


class Pool:
    """Workers and their control block. `control` is its address, for barriers."""

    def __init__(self) -> None:
        self._words = np.zeros(64 * WORDS // 8 + 8, np.int64)
        self.control = -(-self._words.ctypes.data // 64) * 64
        self._gate = threading.Lock()  # one job at a time: two submitters would overwrite each other's words
        self._wake = threading.Condition()
        self._asleep = 0
        self._calling = 0  # a job for so many of the threads is about to be published: they stay awake
        self._kept_off = (-1, 0)  # the submitter's core that so many workers keep off
        self._crew = Crew()
        self._stopped = False
        self._ended_by: int | None = None  # the Python thread that has ended the pool
        self._threads: list[threading.Thread] = []

    def run(self, function: int, argument: int, workers: int) -> None:
        """Run job `function` with so many workers, from any Python thread; returns when all are done.

        Raises ArgumentError where the system does not give that many threads.
        """
        with self._job(workers) as workers:
            _submit(self.control, function, argument, workers)

    def run_phases(self, function: int, argument: int, pieces: np.ndarray, workers: int) -> None:
        """Run a job in phases that are cut into pieces, by at most so many workers, the caller is number 0.

        function: of `piece_job_address`. pieces: int64[n_phases + 1], how many each phase has, and a 0. Raises as run.
        """
        with self._job(self._crew.size(workers)) as crew:
            start = time.perf_counter_ns()
            waited = submit_phases(self.control, function, argument, pieces.ctypes.data, len(pieces) - 1, crew)
            self._crew.judge(workers, waited * TICK_NS / max(1, time.perf_counter_ns() - start))

    @contextlib.contextmanager
    def _job(self, workers: int) -> Iterator[int]:
        """Alone with the pool, with threads for so many workers awake -> how many workers there are."""
        if self._ended_by == threading.get_ident():  # it holds the gate, and nobody else is left
            yield 1
            return
        with self._gate:
            self._hire(workers - 1)
            try:
                if workers > 1:
                    self._keep_off(_core())
                    self._calling = workers - 1
                    if self._asleep:
                        with self._wake:
                            self._wake.notify_all()
                yield workers
            finally:
                self._calling = 0

    def _hire(self, count: int) -> None:
        """At least so many workers. What they run is compiled first: one that failed would be waited for forever."""
        if len(self._threads) >= count:
            return
        for compiled, n in ((_serve, 3), (_submit, 4), (submit_phases, 6), (_load, 1), (_store, 2)):
            compiled.compile((types.int64,) * n)
        while len(self._threads) < count:
            ready = threading.Event()
            worker = threading.Thread(target=self._work, args=(ready,), name="minfer", daemon=True)
            try:
                worker.start()
            except RuntimeError as error:
                raise ArgumentError(f"{count + 1} threads are more than this system starts ({error}).") from None
            ready.wait()

    def _keep_off(self, core: int) -> None:
        """Leave this core, the submitter's, to the submitter: some schedulers pack threads that yield onto one core.

        Asked before each job, done when the submitter has moved or there are new workers.
        """
        workers = (core, len(self._threads))
        if core < 0 or workers == self._kept_off or not hasattr(os, "sched_setaffinity"):
            return
        self._kept_off = workers
        others = os.sched_getaffinity(os.getpid()) - {core}
        for thread in self._threads if others else ():
            with contextlib.suppress(OSError):  # not allowed here: then the scheduler has its way
                os.sched_setaffinity(thread.native_id, others)

    def _generation(self) -> int:
        return int(_load(self.control + GENERATION))

    def _work(self, ready: threading.Event) -> None:
        with self._wake:  # a worker has a number from when it runs, and no number is given twice
            index, seen = len(self._threads), self._generation()
            self._threads.append(threading.current_thread())
        ready.set()
        while not self._stopped:
            seen = _serve(self.control, index, seen)
            with self._wake:  # a job published before this is seen here; one published after wakes us
                self._asleep += 1
                while self._generation() == seen and not self._stopped and index >= self._calling:
                    self._wake.wait()
                self._asleep -= 1

    def stop(self) -> None:
        """End the threads; called when the interpreter ends, so that none touches memory that is gone.

        A job that runs is finished first, by all of its workers: they wait for one another. Then the gate stays closed,
        and threads that come to it wait there until the process is gone. Who has called this may still run jobs, alone.
        """
        self._gate.acquire()
        self._ended_by = threading.get_ident()
        if not self._threads:
            return
        with self._wake:
            self._stopped = True
            _store(self.control + STOP, 1)
            _tell(self.control)
            self._wake.notify_all()
        for thread in self._threads:
            thread.join()


@kernel
def _core():
    return current_core()


@kernel
def _load(address):
    return atomic_load(address)


@kernel
def _store(address, value):
    atomic_store(address, value)


@kernel
def _tell(control):
    tell_news(control)


_pool = Pool()


def pool() -> Pool:
    """The pool of this process."""
    return _pool


def job_address(job) -> int:
    """The native address of a kernel job(argument, worker, workers), for Pool.run."""
    return native_address(job, types.int64, types.int64, types.int64)


def _new_pool() -> None:
    """In a forked child there are no workers: start anew."""
    global _pool
    _pool = Pool()


atexit.register(lambda: _pool.stop())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_pool)
