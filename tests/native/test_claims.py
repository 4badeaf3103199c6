"""Pieces that are claimed: each is computed once, none before its phase, whoever is awake, asleep or stopped."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minfer_lib.native.address import words_at
from minfer_lib.native.atomics import atomic_load, fetch_add
from minfer_lib.native.claims import piece_job_address
from minfer_lib.native.jit import kernel
from minfer_lib.native.pool import pool

# What the job's argument points to: [address of counts, address of piece counts, errors, nanoseconds of work]


@kernel
def count_piece(argument, phase, piece, pieces, worker):
    """Count this piece in its phase; an error where the phase before is not complete or the piece was done already."""
    words = words_at(argument, 4)
    done, cut = words_at(words[0], phase + 1), words_at(words[1], phase + 1)
    if pieces != cut[phase] or not 0 <= piece < pieces:
        fetch_add(argument + 16, 1)
    if phase > 0 and atomic_load(words[0] + 8 * (phase - 1)) != (1 << cut[phase - 1]) - 1:
        fetch_add(argument + 16, 1)
    total = 0
    for i in range(words[3]):
        total += i % 7
    if total < 0 or (done[phase] >> piece) & 1:
        fetch_add(argument + 16, 1)
    fetch_add(words[0] + 8 * phase, 1 << piece)


def run(cuts: list[int], workers: int, work: int = 0) -> np.ndarray:
    """The sum of the bits of the pieces that were computed, a word a phase; fails on an error."""
    cut, done = np.array([*cuts, 0], np.int64), np.zeros(len(cuts), np.int64)
    words = np.array([done.ctypes.data, cut.ctypes.data, 0, work], np.int64)
    pool().run_phases(piece_job_address(count_piece), words.ctypes.data, cut, workers)
    assert words[2] == 0
    return done


@settings(deadline=None, max_examples=60)
@given(cuts=st.lists(st.integers(1, 40), min_size=1, max_size=30), workers=st.integers(1, 6))
def test_every_piece_once_and_every_phase_in_turn(cuts, workers):
    assert run(cuts, workers).tolist() == [(1 << n) - 1 for n in cuts]


def test_jobs_of_both_kinds_in_turns():
    """Fewer workers after more, and jobs in which all workers meet between those that are claimed."""
    from minfer_lib.native.pool import job_address

    @kernel
    def mark(argument, worker, workers):
        words_at(argument, workers)[worker] += 1

    for i in range(300):
        workers = 1 + i % 5
        marks = np.zeros(workers, np.int64)
        pool().run(job_address(mark), marks.ctypes.data, workers)
        assert marks.tolist() == [1] * workers
        assert run([1, 7, 2], 1 + i % 4).tolist() == [1, 127, 3]


def test_four_submitters_with_naps():
    """2,500 jobs each, some after a nap that lets the pool's threads fall asleep."""
    failed, rng = [], np.random.default_rng(0)
    naps = rng.random((4, 2500)) < 0.01

    def submit(which):
        try:
            for i in range(2500):
                cuts = [1 + (i + which + k) % 6 for k in range(4)]
                assert run(cuts, 1 + (i + which) % 3, work=50).tolist() == [(1 << n) - 1 for n in cuts]
                if naps[which, i]:
                    time.sleep(0.003)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=submit, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="the system has no SIGSTOP")
def test_a_process_that_is_stopped_and_goes_on(tiny):
    """Right bits after a process was stopped and continued at random moments, and interrupted by SIGINT."""
    code = textwrap.dedent("""
        import hashlib, json, sys, time
        import minfer_lib as mf

        model = mf.load_model(sys.argv[1], threads=3)
        alone = mf.load_model(sys.argv[1], threads=1)
        wanted = [alone.logits([1 + i, 2, 3]).tobytes() for i in range(5)]
        session, wrong, passes, interrupted = model.session(), 0, 0, 0
        model.logits([1])
        print("ready", flush=True)
        end = time.monotonic() + 4
        while time.monotonic() < end:
            try:
                session.reset()
                for token in (1 + passes % 5, 2, 3):
                    last = session.feed([token])
                wrong += last.tobytes() != wanted[passes % 5]
                passes += 1
            except KeyboardInterrupt:
                interrupted += 1
        print(json.dumps([wrong, passes, interrupted]), flush=True)
    """)
    process = subprocess.Popen([sys.executable, "-c", code, str(tiny())], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        rng, end = np.random.default_rng(1), time.monotonic() + 3.5
        while time.monotonic() < end:
            time.sleep(rng.random() * 0.02)
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(rng.random() * 0.01)
            os.kill(process.pid, signal.SIGCONT)
            if rng.random() < 0.2:
                os.kill(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    wrong, passes, interrupted = json.loads(out)
    assert wrong == 0 and passes > 20 and interrupted > 0
