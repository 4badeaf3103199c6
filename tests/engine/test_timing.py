"""Where the time goes: the counters count the right thing, and the shares are the whole. No time has a limit here."""

import time

import pytest

import minfer_lib as mf
from minfer_lib.engine.timing import KINDS, Timing


@pytest.mark.parametrize("threads", [1, 3])
def test_each_operation_is_counted_under_its_own_name(tiny, threads):
    """While one operation runs, no counter moves but its own: whatever the machine does meanwhile."""
    path = tiny(format="Q8_0", architecture="qwen3", qkv_bias=True)  # a model that has every operation
    session = mf.load_model(path, threads=threads).session()
    before, seen = session.timing.operations, set()
    assert set(before.values()) == {0.0}
    for (operation, _), _ in session.walk([1, 2, 3]):
        now = session.timing.operations
        assert {name for name in now if now[name] != before[name]} == {operation.name}
        before = now
        seen.add(operation.name)
    assert seen == set(before) >= {"qkv", "bias", "head_norm", "rope", "swiglu", "logits"}


@pytest.mark.parametrize("threads", [1, 2])
def test_the_operations_fit_into_the_wall_time_and_the_shares_are_all_of_it(tiny, threads):
    session = mf.load_model(tiny(format="Q4_1"), threads=threads).session()
    start = time.perf_counter()
    list(session.generate([1, 2, 3], max_tokens=5, sampler=lambda logits, ids: time.sleep(0.02) or 7))
    elapsed, timing = time.perf_counter() - start, session.timing
    assert timing.tokens == 3 + 4
    assert 0.1 <= timing.sampling < timing.wall <= elapsed, "five naps of 20 ms"
    seconds = timing.operations.values()
    assert 0 < min(seconds) and sum(seconds) <= timing.wall - timing.sampling
    shares = timing.shares()
    assert list(shares) == list(KINDS) and min(shares.values()) > 0
    assert sum(shares.values()) == pytest.approx(timing.wall)


def test_every_operation_is_of_one_kind(tiny):
    timing = mf.load_model(tiny(architecture="qwen3", qkv_bias=True)).session().timing
    assert sorted(name for kind in KINDS for name in timing.of_kind(kind)) == sorted(timing.operations)
    assert list(timing.of_kind("matmul")) == ["qkv", "attn_output", "gate", "up", "ffn_down", "logits"]


def test_a_difference_is_what_came_between(tiny):
    session = mf.load_model(tiny()).session()
    session.feed([1, 2])
    before = session.timing
    session.log_probabilities([3, 4, 5])
    after = session.timing
    between = after - before
    assert between.tokens == 3 and 0 < between.wall < after.wall and between.sampling == 0
    assert not {"bias", "head_norm"} & set(after.operations), "a llama has no such operations"
    assert all(0 < between.operations[name] < after.operations[name] for name in after.operations)


def test_before_the_first_token_there_is_nothing_to_report(tiny):
    timing = mf.load_model(tiny()).session().timing
    assert timing.report() == "  no tokens yet" and sum(timing.shares().values()) == 0


def test_a_report_has_milliseconds_a_token_and_shares():
    operations = {"norm": 0.0, "gate": 0.004, "logits": 0.002, "attention": 0.001}
    kinds = {"norm": "rest", "gate": "matmul", "logits": "matmul", "attention": "attention"}
    lines = Timing(tokens=2, operations=operations, kinds=kinds, sampling=0.0005, wall=0.01).report().splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert rows["matmul"] == ["3.000", "ms", "60.0%"] and rows["attention"] == ["0.500", "ms", "10.0%"]
    assert rows["sampling"] == ["0.250", "ms", "5.0%"] and rows["rest"] == ["1.250", "ms", "25.0%"]
