"""The end of a process while other threads compute, and a fork meanwhile: every process ends, every child computes.

Each script forks children after it has compiled all: many ends in little time. One that hangs is killed by a watchdog,
which shows where its threads stood.
"""

import os
import subprocess
import sys

import pytest
from tiny_models import Spec, random_weights, write_model

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

HEAD = """
import atexit, faulthandler, os, random, sys, threading, time
import numpy as np
import minfer_lib as mf

def end_in(seconds):  # not in a process that forks afterwards: its child could never cancel it
    faulthandler.dump_traceback_later(seconds, exit=True)

def wait_for(child):
    assert os.waitpid(child, 0)[1] == 0, "a child has hung, or failed"

path, threads, tries = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
model = mf.load_model(path, threads=threads)
session = model.session()
expected = session.feed([1, 2, 3]).copy()

def passes():
    mine = model.session()
    while True:
        mine.rewind(0)
        mine.feed([1, 2, 3])
"""

ENDS = """
def begin():
    for _ in range(submitters):
        threading.Thread(target=passes, daemon=True).start()
    time.sleep(random.random() * 0.03)

submitters = int(sys.argv[4])
for _ in range(tries):
    child = os.fork() if hasattr(os, "fork") else 0
    if not child:  # its end is that of the script
        end_in(20)
        begin()
        break
    wait_for(child)
"""

LAST_WORDS = """
@atexit.register
def last_words():  # registered before the library's own, so called after it
    session.rewind(0)
    assert np.array_equal(session.feed([1, 2, 3]), expected)
    print("computed")
"""

FORKS = """
import numba

def sessions():
    while True:
        model.session()

def compile():
    while True:
        numba.njit(lambda a, b: a / b + 1)(1.0, 2.0)

for work in (passes, sessions, compile, compile):
    threading.Thread(target=work, daemon=True).start()
for _ in range(tries):
    time.sleep(random.random() * 0.02)
    child = os.fork()
    if not child:
        end_in(20)
        assert numba.njit(lambda a: a + 1)(1) == 2
        assert np.array_equal(model.session().feed([1, 2, 3]), expected)
        os._exit(0)
    wait_for(child)
print("all")
os._exit(0)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    spec = Spec()
    return write_model(tmp_path_factory.mktemp("model") / "tiny.gguf", spec, random_weights(spec))


def run(script, *arguments):
    command = [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)]
    done = subprocess.run(command, timeout=100, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("threads, submitters", [(2, 1), (2, 3), (8, 1), (8, 2), (1, 2)])
def test_a_process_ends_while_daemon_threads_begin_passes(path, threads, submitters):
    run(HEAD + ENDS, path, threads, 25, submitters)


def test_who_has_ended_the_pool_may_still_compute(path):
    script = HEAD.replace("import minfer_lib as mf\n", "") + ENDS
    script = LAST_WORDS + script.replace("path,", "import minfer_lib as mf\npath,", 1)
    assert run("import atexit\n" + script, path, 2, 2, 1).count("computed") >= 1


@forks
def test_a_fork_in_the_middle_of_other_threads_work(path):
    assert run(HEAD + FORKS, path, 2, 40) == "all\n"
