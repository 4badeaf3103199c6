"""The simulated machine: by hand where that is possible, and beside real traces for order and counts."""

from math import inf

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import minfer_lib as mf
from minfer_lib.matmul.chunks import POLICIES, plan
from minfer_lib.matmul.simulated_machine import Machine
from minfer_lib.matmul.trace import trace_matmul


def test_equal_cores_take_equal_shares_in_turn():
    trace = Machine((2.0, 2.0)).run(plan("ggml", 1024, 1, 2), row_bytes=100)
    assert trace.chunks["chunk"].tolist() == list(range(16))
    assert trace.chunks["thread"].tolist() == [0, 1] * 8
    assert trace.nanoseconds == 512 * 100 / 2 and trace.counter == 18


def test_a_slow_core_comes_back_less_often():
    trace = Machine((1.0, 4.0)).run(plan("ggml", 12288, 1, 2), 100)
    assert abs(len(trace.of(0)) - 192 / 5) <= 1
    even = Machine((1.0, 4.0)).run(plan("even", 12288, 1, 2), 100)
    assert even.nanoseconds == 6144 * 100 and even.of(1)["end"][0] == 6144 * 100 / 4


def test_memory_that_is_too_slow_is_shared_and_slow_cores_get_what_they_ask_for():
    machine = Machine((1.0, 10.0, 10.0), bandwidth=9)
    assert machine.rates([0, 1, 2]) == {0: 1.0, 1: 4.0, 2: 4.0}
    assert machine.rates([1, 2]) == {1: 4.5, 2: 4.5}
    assert machine.rates([2]) == {2: 9.0}
    assert machine.shortest(900) == 100


def test_each_claim_takes_its_time():
    trace = Machine((1.0,), claim=50).run(plan("ggml", 256, 1, 1, 64), 10)
    assert trace.nanoseconds == 2560 + 3 * 50 and trace.of(0)["start"].tolist() == [0, 640, 1330, 2020]


def test_an_m4_pro_gains_from_claims():
    """Ten fast cores and four slow ones: equal ranges wait for the slow ones."""
    machine = Machine((20.0,) * 10 + (8.0,) * 4, 273, 50)
    even, claimed = (machine.run(plan(policy, 12288, 1, 14), 2304) for policy in ("even", "ggml"))
    best = machine.shortest(12288 * 2304)
    assert best <= claimed.nanoseconds < 1.25 * best < even.nanoseconds
    assert claimed.counter == 206 and even.counter == 14
    counts = [len(claimed.of(core)) for core in range(14)]
    assert min(counts[:10]) > max(counts[10:])


@example(speeds=[2.0, 1.0], bandwidth=inf, claim=0.0, rows=1, policy="ggml")  # one of two chunks is empty
@given(
    speeds=st.lists(st.floats(0.5, 50), min_size=1, max_size=9),
    bandwidth=st.floats(1, 200) | st.just(inf),
    claim=st.floats(0, 500),
    rows=st.integers(1, 2000),
    policy=st.sampled_from(list(POLICIES)),
)
def test_any_machine_computes_all_and_no_faster_than_is_possible(speeds, bandwidth, claim, rows, policy):
    machine, cut = Machine(tuple(speeds), bandwidth, claim), plan(policy, rows, 1, len(speeds))
    trace = machine.run(cut, 100)
    assert sorted(trace.chunks["chunk"]) == list(range(cut.chunks)) and trace.counter == cut.last_counter
    assert trace.nanoseconds >= machine.shortest(100 * rows) * 0.999 - 1
    for core, speed in enumerate(speeds):
        own = trace.of(core)
        assert own["chunk"][:1].tolist() in ([core], [])
        assert (own["end"][:-1] <= own["start"][1:]).all()
        done = sum((r1 - r0) * (c1 - c0) for r0, r1, c0, c1 in map(cut.bounds, own["chunk"].tolist()))
        assert 100 * done <= speed * (trace.nanoseconds + 1) * 1.001


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_real_runs_agree_in_order_and_counts(policy, threads):
    """Times are the machine's own business. Who may take what, and in which order, is not."""
    random = np.random.default_rng(64)
    w = mf.quantize("Q4_0", random.standard_normal(12288 * 64).astype(np.float32)).reshape(12288, -1)
    real = trace_matmul("Q4_0", w, random.standard_normal((1, 64)).astype(np.float32), threads, policy)
    simulated = Machine((1.0,) * threads).run(real.plan, w.shape[1])
    assert simulated.counter == real.counter
    assert sorted(simulated.chunks["chunk"]) == sorted(real.chunks["chunk"])
    for thread in range(threads):
        assert simulated.of(thread)["chunk"][0] == real.of(thread)["chunk"][0] == thread
        if policy != "ggml":
            assert simulated.of(thread)["chunk"].tolist() == real.of(thread)["chunk"].tolist() == [thread]
    if policy == "ggml":
        assert (np.diff(simulated.chunks["chunk"]) == 1).all()


@pytest.mark.parametrize("arguments", [((),), ((0.0,),), ((1.0,), 0), ((1.0,), 5, -1)])
def test_what_is_no_machine_is_refused(arguments):
    with pytest.raises(mf.ArgumentError):
        Machine(*arguments)
    with pytest.raises(mf.ArgumentError, match="2 threads"):
        Machine((1.0,)).run(plan("even", 8, 1, 2), 10)
