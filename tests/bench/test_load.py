"""Measurements under load: what is measured beside what, and nothing stays behind. No speed has a limit here."""

import subprocess
import sys
import time

import psutil
import pytest

from minfer_lib.bench import load as load_module
from minfer_lib.bench.load import Load, busy_programs, load_table
from minfer_lib.bench.peer.engines import OURS, THEIRS, Engine
from minfer_lib.errors import UnsupportedError


def gone(pid, seconds=20):
    end = time.monotonic() + seconds
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_busy_programs_keep_cores_busy_until_the_block_ends():
    with busy_programs(2) as programs:
        processes = [psutil.Process(program.pid) for program in programs]
        end = time.monotonic() + 30
        while min(process.cpu_times().user for process in processes) < 0.3:
            assert time.monotonic() < end
            time.sleep(0.02)
    assert not any(process.is_running() for process in processes)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_they_end_with_an_error_too(error):
    with pytest.raises(error), busy_programs(1) as programs:
        raise error
    assert programs[0].returncode is not None


def test_they_end_when_their_starter_is_killed():
    code = """
import time
from minfer_lib.bench.load import busy_programs
with busy_programs(1) as programs:
    print(programs[0].pid, flush=True)
    time.sleep(60)
"""
    starter = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pid = int(starter.stdout.readline())
    starter.kill()
    starter.communicate()
    assert gone(pid)


@pytest.fixture
def beside(monkeypatch):
    """[(engine, what is asked, busy programs)] of each measurement, in order."""
    seen, busy = [], [0]
    real_busy = load_module.busy_programs

    def counted(count):
        busy[0] = count
        return real_busy(count)

    def noted(measure, what):
        def call(engine, amount):
            seen.append((engine._process.args[3], what, busy[0]))
            return measure(engine, amount)

        return call

    monkeypatch.setattr(load_module, "busy_programs", counted)
    for what in ("decode_for", "prefill"):
        monkeypatch.setattr(Engine, what, noted(getattr(Engine, what), what))
    return seen


def test_a_round_measures_everything_once_and_the_engines_take_turns(tiny, llama_cpp, beside, monkeypatch):
    monkeypatch.setattr(load_module, "warmup", lambda model: None)
    with Load(tiny(), 1, peer=True, busy=(0, 1), decoders=(1, 2), seconds=0.01) as load:
        load.round()
        first = list(beside)
        load.round()
        rows = load.rows()
        processes = [psutil.Process(e._process.pid) for engines in load._engines.values() for e in engines]
    assert len(processes) == 4 and not any(process.is_running() for process in processes)
    names = [name for name, what, _ in beside if what == "prefill"]
    assert names == [THEIRS, OURS] * 2 + [OURS, THEIRS] * 2
    assert [busy for _, what, busy in first if what == "prefill"] == [0, 0, 1, 1]
    assert sum(what == "decode_for" for _, what, _ in first) == 2 * (2 + 1 + 2)
    assert [(row.what, row.busy, row.decoders) for row in rows] == [
        ("decode", 0, 1), ("decode", 1, 1), ("prompt of 64", 0, 1), ("prompt of 64", 1, 1),
        ("first token", 0, 1), ("first token", 1, 1), ("decoders, together", 0, 1), ("decoders, together", 0, 2),
        ("decoders, the slowest", 0, 1), ("decoders, the slowest", 0, 2),
    ]  # fmt: skip
    for row in rows:
        assert len(row.ours) == len(row.theirs) == 2 and min(row.ours + row.theirs) > 0
        assert row.unit == ("s" if row.what == "first token" else "tokens/s")
        if (row.busy, row.decoders) == (0, 1):
            assert row.ours_over_alone == row.theirs_over_alone == 1


def test_ratios_are_those_of_the_same_round(tiny):
    load = Load(tiny(), 1)
    numbers = {(0, OURS): [10, 30, 20], (2, OURS): [5, 3, 5], (0, THEIRS): [5, 10, 5], (2, THEIRS): [1, 1, 1]}
    for (busy, name), rounds in numbers.items():
        for number in rounds:
            load._note("decode", busy, 1, name, number)
    alone, loaded = load.rows()
    assert (alone.ratio, loaded.ratio) == (3, 5)
    assert (loaded.ours_over_alone, loaded.theirs_over_alone) == (0.25, 0.2)


def test_the_table_without_llama_cpp(tiny, capsys):
    numbers = load_table(tiny(), 2, rounds=1, busy=(0, 1), decoders=(1, 2), seconds=0.05)
    out, progress = capsys.readouterr()
    lines = [line.split() for line in out.splitlines()]
    assert [line[0] for line in lines[2:]] == ["decode"] * 2 + ["prompt"] * 2 + ["first"] * 2 + ["decoders,"] * 4
    assert all("-" in line for line in lines[2:]) and "round 1 of 1" in progress
    assert numbers["threads"] == 2 and len(numbers["load"]) == 10
    assert all(row["theirs"] == [] and row["ratio"] is None and row["ours_over_alone"] > 0 for row in numbers["load"])


def test_llama_cpp_is_asked_for_before_anything_is_measured(monkeypatch, tiny):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match="peer"):
        Load(tiny(), 1, peer=True)
