"""Threads that run compiled work side by side: kernels release the GIL, so Python threads are enough."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Lock

_lock = Lock()
_executor: ThreadPoolExecutor | None = None
_workers = 0


def cpu_threads() -> int:
    """How many threads a computation uses when nobody says: the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def par_for(parts: int, body: Callable[[int], None]) -> None:
    """body(0) … body(parts - 1), each on a thread of its own; the caller takes the last. Returns when all are done."""
    if parts == 1:
        return body(0)
    futures = [_workers_for(parts - 1).submit(body, part) for part in range(parts - 1)]
    try:
        body(parts - 1)
    finally:  # also on Ctrl-C: no worker may still write into buffers that the caller goes on to use
        wait(futures)
    for future in futures:
        future.result()
    return None


def _workers_for(count: int) -> ThreadPoolExecutor:
    """The shared executor, replaced by a larger one when more workers are asked for than it has."""
    global _executor, _workers
    with _lock:
        if _executor is None or _workers < count:
            _executor, _workers = ThreadPoolExecutor(count, "minfer"), count
        return _executor


def _forget_workers() -> None:
    """In a forked child the threads are gone: start anew."""
    global _executor, _workers, _lock
    _executor, _workers, _lock = None, 0, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)
