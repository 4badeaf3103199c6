"""The persistent workers: each worker of a job runs exactly once, whoever submits and however many there are."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from minfer_lib.errors import ArgumentError
from minfer_lib.native.address import words_at
from minfer_lib.native.atomics import fetch_add
from minfer_lib.native.jit import kernel
from minfer_lib.native.pool import Pool, barrier, job_address, pool


@kernel
def count_job(argument, worker, workers):
    """words[worker] += 1; words[workers] counts all workers atomically."""
    words_at(argument, workers)[worker] += 1
    fetch_add(argument + 8 * workers, 1)


@kernel
def barrier_job(argument, worker, workers):
    """Ten rounds: each worker adds one to its word, and after a barrier sums everybody's into another."""
    words = words_at(argument, 1 + 2 * workers)
    control = words[0]
    for _ in range(10):
        words[1 + worker] += 1
        barrier(control, workers)
        total = 0
        for other in range(workers):
            total += words[1 + other]
        words[1 + workers + worker] = total
        barrier(control, workers)


@pytest.fixture(scope="module")
def count():
    return job_address(count_job)


def run_count(count, workers, times, threads=None):
    threads = threads or pool()
    words = np.zeros(workers + 1, np.int64)
    for _ in range(times):
        threads.run(count, words.ctypes.data, workers)
    return words


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 14])
def test_every_worker_runs_once_a_job(count, workers):
    assert run_count(count, workers, 50).tolist() == [50] * workers + [50 * workers]


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_a_barrier_lets_all_see_what_each_has_written(workers):
    words = np.zeros(1 + 2 * workers, np.int64)
    words[0] = pool().control
    address = job_address(barrier_job)
    for done in range(1, 21):
        pool().run(address, words.ctypes.data, workers)
        assert words[1:].tolist() == [10 * done] * workers + [10 * done * workers] * workers


def test_the_number_of_workers_may_change_from_job_to_job(count):
    """A thread that has no share of a job must neither run it nor take the next one's words for its own."""
    watchdog = threading.Timer(240, lambda: os._exit(17))  # a hang would otherwise be forever
    watchdog.start()
    rng = np.random.default_rng(0)
    words = {workers: np.zeros(workers + 1, np.int64) for workers in range(1, 5)}
    expected = dict.fromkeys(words, 0)
    for workers in [1, 4] * 1000 + rng.integers(1, 5, 3000).tolist():
        pool().run(count, words[workers].ctypes.data, workers)
        expected[workers] += 1
    watchdog.cancel()
    for workers, counted in words.items():
        assert counted.tolist() == [expected[workers]] * workers + [expected[workers] * workers]


def test_two_threads_may_submit_at_once(count):
    results = {}

    def submit(name, workers):
        results[name] = run_count(count, workers, 5000)

    threads = [threading.Thread(target=submit, args=(name, 2 + name)) for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results[0].tolist() == [5000] * 2 + [10_000]
    assert results[1].tolist() == [5000] * 3 + [15_000]


def test_workers_sleep_when_nothing_comes_and_wake_again(count):
    workers = Pool()
    run_count(count, 3, 10, workers)
    end = time.monotonic() + 30
    while workers._asleep < 2 and time.monotonic() < end:
        time.sleep(0.01)
    assert workers._asleep == 2
    assert run_count(count, 3, 10, workers).tolist() == [10, 10, 10, 30]
    workers.stop()
    assert not any(thread.is_alive() for thread in workers._threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_a_pool_of_its_own():
    code = (
        "import os, numpy as np, minfer_lib as mf\n"
        "w = mf.quantize('Q8_0', np.arange(96.0)).reshape(3, 34); x = np.ones((2, 32))\n"
        "first = mf.matmul('Q8_0', w, x, threads=3)\n"
        "child = os.fork()\n"
        "if not child: os._exit(0 if np.array_equal(mf.matmul('Q8_0', w, x, threads=3), first) else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_interpreter_ends_while_workers_wait():
    code = "import numpy as np, minfer_lib as mf; mf.matmul('F32', np.zeros((8, 128), np.uint8), np.ones((1, 32)), 4)"
    done = subprocess.run([sys.executable, "-c", code], timeout=120, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr


def test_a_thread_that_does_not_start_is_an_error_and_nothing_is_left_waiting(count, monkeypatch):
    workers, start, refused = Pool(), threading.Thread.start, []

    def refuse_the_second(thread):
        if len(workers._threads) == 1 and not refused:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_the_second)
    with pytest.raises(ArgumentError, match="3 threads are more"):
        run_count(count, 3, 1, workers)
    assert run_count(count, 2, 5, workers).tolist() == [5, 5, 10]
    assert run_count(count, 3, 5, workers).tolist() == [5, 5, 5, 15]
    workers.stop()


def test_interrupts_at_any_moment_leave_no_job_half_done():
    """KeyboardInterrupt between two calls into compiled code must not leave workers in a job that nobody finishes."""
    code = """
import signal, time, numpy as np, minfer_lib as mf
w, x = mf.quantize("Q8_0", np.arange(64.0 * 32)).reshape(64, 34), np.ones((1, 32))
expected = mf.matmul("Q8_0", w, x, threads=2)
signal.signal(signal.SIGALRM, signal.default_int_handler)
interrupts, end = 0, time.monotonic() + 3
while time.monotonic() < end:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.001 * np.random.random())
        while True:
            assert np.array_equal(mf.matmul("Q8_0", w, x, threads=2), expected)
    except KeyboardInterrupt:
        interrupts += 1
assert np.array_equal(mf.matmul("Q8_0", w, x, threads=2), expected) and interrupts > 20
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_interpreter_ends_while_another_thread_computes():
    code = """
import threading, time, numpy as np, minfer_lib as mf
w, x = np.zeros((512, 34), np.uint8), np.ones((1, 32))
def work():
    while True: mf.matmul("Q8_0", w, x, threads=2)
mf.matmul("Q8_0", w, x, threads=2)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
