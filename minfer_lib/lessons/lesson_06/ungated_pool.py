"""A pool without its gate, in a process of its own: what two submitters then do to each other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from minfer_lib.matmul.chunks import even_split
from minfer_lib.native.address import words_at
from minfer_lib.native.atomics import pause
from minfer_lib.native.clock import TICK_NS, ticks
from minfer_lib.native.jit import kernel
from minfer_lib.native.pool import Pool, job_address

SUBMITTERS, WORKERS, CELLS = 4, 3, 64
SHARE_NS = 100_000  # a worker's share takes so long, as a small matrix product does


@dataclass(frozen=True)
class Outcome:
    """runs: jobs that were submitted and came back; wrong: after so many of them some share had not been computed;
    stuck: submitters that waited for ever; crashed: the process did not live to count.
    """

    runs: int = 0
    wrong: int = 0
    stuck: int = 0
    crashed: bool = False


def try_pool(gate: bool, seconds: float) -> Outcome:
    """Four threads submit jobs to one pool, with or without its gate, in a new process that is ended afterwards."""
    command = [sys.executable, "-m", __name__, str(int(gate)), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120)
    return Outcome(**json.loads(done.stdout)) if done.returncode == 0 else Outcome(crashed=True)


@kernel
def fill_job(argument, worker, workers):
    """Job: work for a while, then write word 0 into this worker's share of the words after it."""
    words, start = words_at(argument, 1 + CELLS), ticks()
    while (ticks() - start) * TICK_NS < SHARE_NS:
        pause()
    first, last = even_split(worker, workers, CELLS)
    for i in range(first, last):
        words[1 + i] = words[0]


@kernel
def _all_written(words):
    for i in range(1, words.size):
        if words[i] != words[0]:
            return False
    return True


def _submit(workers: Pool, job: int, words: np.ndarray, counts: np.ndarray, end: float) -> None:
    """Jobs until `end`; counts: jobs that came back, jobs that came back wrong, 1 when all is over."""
    while time.monotonic() < end:
        words[0] += 1
        workers.run(job, words.ctypes.data, WORKERS)
        counts[:2] += 1, not _all_written(words)
    counts[2] = 1


def main(gate: bool, seconds: float) -> None:
    """In the new process: prints an Outcome as JSON, then ends it, threads that hang included."""
    workers, job = Pool(), job_address(fill_job)
    if not gate:
        workers._gate = nullcontext()
    # Kept until the end: a worker may still write into the words of a job whose submitter has gone on. In a real engine
    # they would by then be somebody else's.
    words, counts = np.zeros((SUBMITTERS, 1 + CELLS), np.int64), np.zeros((SUBMITTERS, 3), np.int64)
    workers.run(job, words[0].ctypes.data, WORKERS)  # the worker is there
    _all_written(words[0])  # compiled
    sys.setswitchinterval(1e-5)  # Python, too, lets the submitters take turns often
    end = time.monotonic() + seconds
    threads = [
        threading.Thread(target=_submit, args=(workers, job, own, count, end), daemon=True)
        for own, count in zip(words, counts, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()) + 1)
    runs, wrong, over = counts.sum(axis=0).tolist()
    print(json.dumps({"runs": runs, "wrong": wrong, "stuck": SUBMITTERS - over}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1] == "1", float(sys.argv[2]))
