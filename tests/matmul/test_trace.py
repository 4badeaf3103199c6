"""A traced product: the bits of mf.matmul, every chunk once, the counter where it must be, and honest times."""

import time

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.matmul.chunks import POLICIES
from minfer_lib.matmul.trace import trace_matmul
from minfer_lib.native.clock import TICK_NS, ticks

THREADS = (1, 2, 4, 8, 14)


@pytest.fixture(scope="module")
def gate():
    """12288 rows, as seed 2 has them, but short ones: w uint8[12288, 36], x f32[1, 64]"""
    random = np.random.default_rng(61)
    w = mf.quantize("Q4_0", random.standard_normal(12288 * 64).astype(np.float32)).reshape(12288, -1)
    return w, random.standard_normal((1, 64)).astype(np.float32)


def check(trace, threads):
    """What must hold for every trace."""
    assert sorted(trace.chunks["chunk"]) == list(range(trace.plan.chunks))
    assert trace.counter == trace.plan.last_counter
    assert (trace.chunks["start"] <= trace.chunks["end"]).all()
    assert (np.diff(trace.chunks["start"]) >= 0).all()
    for thread in range(threads):
        own, phase = trace.of(thread), trace.phases[thread]
        assert phase["start"] <= phase["quantized"] <= phase["passed"]
        if len(own):
            assert own["chunk"][0] == thread, "a thread begins with the chunk of its own number"
            assert phase["passed"] <= own["start"][0]
            assert (own["end"][:-1] == own["start"][1:]).all()
            assert (np.diff(own["chunk"]) > 0).all(), "the counter only goes up"
    assert trace.phases["quantized"].max() <= trace.phases["passed"].min(), "the barrier holds until all have come"


@pytest.mark.parametrize("threads", THREADS)
def test_192_chunks_are_taken_once_each_and_the_counter_ends_at_192_more_than_threads(gate, threads):
    trace = trace_matmul("Q4_0", *gate, threads)
    check(trace, threads)
    assert trace.plan.chunks == 192 and trace.counter == 192 + threads
    assert np.array_equal(trace.out, mf.matmul("Q4_0", *gate))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shape", [(100, 1, 256), (37, 5, 512), (1, 40, 256), (300, 33, 256)])
@pytest.mark.parametrize("name", ["Q4_0", "Q8_0", "Q4_K", "F32"])
def test_every_policy_has_the_bits_of_matmul(name, shape, policy):
    rows, tokens, n_in = shape
    random = np.random.default_rng(62)
    values = random.standard_normal(rows * n_in).astype(np.float32)
    w = (values.view(np.uint8) if name == "F32" else mf.quantize(name, values)).reshape(rows, -1)
    x = random.standard_normal((tokens, n_in)).astype(np.float32)
    right = mf.matmul(name, w, x, threads=1)
    for threads in (1, 2, 3, 7):
        trace = trace_matmul(name, w, x, threads, policy)
        check(trace, threads)
        assert np.array_equal(trace.out, right)
        assert trace.plan.threads == threads and trace.plan.policy == policy


@pytest.mark.parametrize("size", [1, 5, 64, 500, 20_000])
def test_chunks_of_any_size(gate, size):
    trace = trace_matmul("Q4_0", *gate, 3, size=size)
    check(trace, 3)
    assert trace.plan.chunks == -(-12288 // size)
    assert np.array_equal(trace.out, mf.matmul("Q4_0", *gate))


def test_a_thousand_runs_at_changing_thread_counts(gate):
    w, x = gate[0][:1000], gate[1]
    right, random = mf.matmul("Q4_0", w, x), np.random.default_rng(63)
    for _ in range(1000):
        threads = int(random.integers(1, 6))
        trace = trace_matmul("Q4_0", w, x, threads)
        check(trace, threads)
        assert np.array_equal(trace.out, right)


def test_a_slowed_thread_takes_its_time(gate):
    fast = min(trace_matmul("Q4_0", *gate, 1, "even").nanoseconds for _ in range(20))  # least disturbed
    slow = trace_matmul("Q4_0", *gate, 1, "even", slow={0: 50.0})
    assert slow.nanoseconds > 10 * fast
    assert np.array_equal(slow.out, mf.matmul("Q4_0", *gate))


def test_without_notes_the_product_is_the_same(gate):
    trace = trace_matmul("Q4_0", *gate, 2, record=False)
    assert len(trace.chunks) == 0 and trace.counter == 194
    assert np.array_equal(trace.out, mf.matmul("Q4_0", *gate))


def test_the_clock_is_the_systems_and_cheap():
    from minfer_lib.native.jit import kernel

    @kernel
    def reads(n):
        first = ticks()
        for _ in range(n - 2):
            ticks()
        return first, ticks()

    reads(2)
    before = time.perf_counter_ns()
    costs = []
    for _ in range(20):
        first, last = reads(1000)
        costs.append((last - first) * TICK_NS / 1000)
    elapsed = time.perf_counter_ns() - before
    assert 0 < sum(costs) * 1000 <= 1.05 * elapsed
    assert min(costs) < 5000, "a chunk takes microseconds; to read the clock must take much less"


@pytest.mark.parametrize(
    "more",
    [{"policy": "best"}, {"slow": {2: 2.0}}, {"slow": {0: 0.5}}, {"slow": {-1: 2.0}}, {"threads": 0}, {"size": 0}],
)
def test_what_cannot_be_traced_is_refused(gate, more):
    with pytest.raises(mf.ArgumentError):
        trace_matmul("Q4_0", *gate, **({"threads": 2} | more))


def test_x_must_be_finite_as_for_matmul(gate):
    x = gate[1].copy()
    x[0, 40] = np.nan
    with pytest.raises(mf.ArgumentError, match="finite"):
        trace_matmul("Q4_0", gate[0], x, 3)
    with pytest.raises(mf.ArgumentError):
        trace_matmul("Q4_0", gate[0][:, :-1], x, 3)
