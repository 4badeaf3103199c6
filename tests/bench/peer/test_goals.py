"""Each goal is judged on the right number, in the right direction."""

import pytest

from minfer_lib.bench.peer.compare import Comparison
from minfer_lib.bench.peer.goals import judge


def row(what, ours, theirs=(), preset="Q4_1", threads=2, unit="tokens/s"):
    return Comparison("m.gguf", preset, what, threads, unit, list(ours), list(theirs))


def reached(*arguments, **more):
    (verdict,) = judge([row(*arguments, **more)])
    return verdict.reached


@pytest.mark.parametrize("ratio, word", [(1.9, "not"), (2.0, "must"), (2.9, "must"), (3.0, "aim")])
def test_decode_on_two_threads(ratio, word):
    assert reached("decode", [ratio], [1]) == word


def test_decode_on_one_thread_is_asked_less():
    assert reached("decode", [1.6], [1], threads=1) == "must"
    assert reached("decode", [2.5], [1], threads=1) == "aim"


@pytest.mark.parametrize("preset, must", [("Q4_1", 4.2), ("Q4_0", 1.55), ("Q8_0", 1.95), ("Q4_K_M", 2.2)])
def test_prefill_is_asked_by_preset(preset, must):
    assert reached("prompt of 256", [must * 0.99], [1], preset) == "not"
    assert reached("prompt of 256", [must], [1], preset) == "must"
    assert reached("prompt of 256", [must * 3.01], [1], preset) == "aim"
    assert reached("prompt of 256, no AMX", [must], [1], preset) == "aim"
    assert reached("prompt of 256, no AMX", [1], [1], preset) == "must"


@pytest.mark.parametrize("seconds, word", [(1.6, "not"), (1.5, "must"), (0.71, "must"), (0.7, "aim")])
def test_seconds_are_to_be_few(seconds, word):
    assert reached("first token", [seconds], [0.3], unit="s") == word


def test_memory_is_our_own_number_not_the_ratio():
    (verdict,) = judge([row("over the file", [300.0], [100.0], unit="MB")])
    assert (verdict.measured, verdict.unit, verdict.reached) == (300.0, "MB", "must")


def test_the_rounds_are_told():
    (verdict,) = judge([row("weights read", [5.0, 8.0, 6.0], [10.0, 10.0, 10.0], unit="GB/s")])
    assert (verdict.measured, verdict.lowest, verdict.highest, verdict.reached) == (0.6, 0.5, 0.8, "must")
    assert verdict.what == "weights read / ceiling"


def test_other_rows_have_no_goal():
    assert judge([row("prompt of 32", [9], [1]), row("resident", [9], [1]), row("decode", [9], [1], preset="")]) == []
