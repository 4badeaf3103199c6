"""Engines in processes of their own: they answer, they are alone in their memory, and what goes wrong is said."""

import psutil
import pytest

import minfer_lib as mf
from minfer_lib.bench.peer import engines
from minfer_lib.bench.peer.engines import OURS, THEIRS, Engine


@pytest.mark.parametrize("name", [OURS, THEIRS])
def test_an_engine_makes_a_token_and_answers(tiny, llama_cpp, name):
    with Engine(name, tiny(), threads=1, context=64) as engine:
        assert engine.seconds > 0
        assert engine.decode(5) > 0 and engine.prefill(64) > 0
        process = psutil.Process(engine._process.pid)
        assert engine.resident() == pytest.approx(process.memory_info().rss, rel=0.2)
    assert not process.is_running()


def test_the_other_engine_does_not_load_ours(tiny, llama_cpp):
    """numba alone would be a hundred megabytes."""
    with Engine(THEIRS, tiny(), threads=1, context=64) as engine:
        files = {file.path for file in psutil.Process(engine._process.pid).memory_maps()}
        assert not any("llvmlite" in file for file in files)


@pytest.mark.skipif(not psutil.LINUX, reason="tells what a process has mapped")
def test_ours_maps_the_model(tiny):
    path = tiny()
    with Engine(OURS, path, threads=1, context=64) as engine:
        assert str(path) in {file.path for file in psutil.Process(engine._process.pid).memory_maps()}


def test_a_switch_reaches_the_engine(tiny):
    with Engine(OURS, tiny(), 1, 64, {"MINFER_NO_AMX": "1"}) as engine:
        assert psutil.Process(engine._process.pid).environ()["MINFER_NO_AMX"] == "1"


@pytest.mark.parametrize("name, threads, message", [(OURS, 0, "threads"), (THEIRS, 99, "so many threads")])
def test_what_cannot_be_loaded_is_said(tiny, llama_cpp, name, threads, message):
    with pytest.raises(mf.MinferError, match=message):
        Engine(name, tiny(), threads, 64)


def test_an_engine_that_dies_is_an_error_and_no_wait_for_ever(tiny, llama_cpp):
    with Engine(THEIRS, tiny(), 1, 64) as engine:
        engine._process.kill()
        engine._process.wait()
        with pytest.raises(mf.MinferError, match="llama.cpp ended"):
            engine.decode(1)


def test_without_the_extra_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(engines.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(mf.UnsupportedError, match=r"\[peer\]"):
        engines.require_peer()
