"""The chunk tracer, the machine to put together, and the pool without a gate, without a browser."""

import re

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.lessons.lesson_06 import chunk_tracer
from minfer_lib.lessons.lesson_06.any_machine import AnyMachine
from minfer_lib.lessons.lesson_06.chunk_trace import trace_picture
from minfer_lib.lessons.lesson_06.chunk_tracer import STEPS, ChunkTracer
from minfer_lib.lessons.lesson_06.tile_order import tile_picture
from minfer_lib.lessons.lesson_06.ungated_pool import try_pool
from minfer_lib.matmul.chunks import POLICIES, plan
from minfer_lib.matmul.simulated_machine import Machine


@pytest.fixture
def tracer(monkeypatch):
    monkeypatch.setattr(chunk_tracer, "ROUNDS", 1)
    random = np.random.default_rng(65)
    w = mf.quantize("Q4_0", random.standard_normal(12288 * 32).astype(np.float32)).reshape(12288, -1)
    return ChunkTracer("Q4_0", w, random.standard_normal((1, 32)).astype(np.float32))


def marks(svg):
    """The thread numbers in the squares, in no order."""
    return [int(n) for n in re.findall(r'text-anchor="middle">(\d+)</text>', svg.split("thread</text>")[0])]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("threads", chunk_tracer.THREADS)
def test_each_control_is_a_run_of_its_own(tracer, threads, policy):
    before = tracer.trace
    trace = tracer.choose(threads=threads, policy=policy)
    assert trace is not before and (trace.plan.threads, trace.plan.policy) == (threads, policy)
    assert f"{trace.plan.chunks} of {trace.plan.chunks} chunks" in tracer._said.value
    assert f"counter ends at {trace.counter}" in tracer._said.value


def test_a_square_is_marked_with_its_thread(tracer):
    trace = tracer.choose(threads=4)
    drawn = marks(tracer._picture.value)
    assert sorted(drawn) == sorted(trace.chunks["thread"].tolist()) and len(drawn) == 192


def test_the_slider_goes_back_in_time(tracer):
    tracer.at(0)
    assert "0 of 192 chunks" in tracer._said.value and len(marks(tracer._picture.value)) <= 2
    tracer.at(STEPS // 2)
    now = tracer.trace.nanoseconds / 2
    begun = int((tracer.trace.chunks["start"] <= now).sum())
    assert len(marks(tracer._picture.value)) == begun
    assert f"{int((tracer.trace.chunks['end'] <= now).sum())} of 192 chunks" in tracer._said.value


def test_play_begins_anew_at_the_end(tracer):
    tracer._play.playing = True
    assert tracer._play.value == 0
    tracer._play.value = 40
    tracer._play.playing = False
    tracer._play.playing = True
    assert tracer._play.value == 40


def test_the_controls_have_one_run_each(tracer, monkeypatch):
    runs = []
    monkeypatch.setattr(chunk_tracer, "trace_matmul", lambda *a: runs.append(a[3:]) or tracer.trace)
    monkeypatch.setattr(chunk_tracer, "RUNS", 1)
    tracer._slow.value = 4.0
    tracer._again.click()
    tracer.choose(threads=4, policy="even", slow=1.0)
    assert runs == [(2, "ggml", {0: 4.0}), (2, "ggml", {0: 4.0}), (4, "even", None)]


def test_a_page_without_a_kernel_gets_the_picture(tracer):
    bundle = tracer._repr_mimebundle_()
    assert "<svg " in bundle["text/html"] and "aria-label=" in bundle["text/html"]
    assert "12,288 rows in 192 chunks, 192 of them done" in repr(tracer)


def test_a_range_is_drawn_over_its_lines():
    trace = Machine((1.0, 1.0, 1.0)).run(plan("even", 2560, 1, 3), 10)
    svg = trace_picture(trace).svg
    assert sorted(marks(svg)) == [0, 1, 1, 2, 2]  # 853 rows, 853 across a line's end, 854 too
    big = Machine((1.0,)).run(plan("ggml", 151_936, 1, 1), 10)
    assert "a square: 1024 rows" in trace_picture(big).svg


def test_more_threads_than_chunks_can_be_drawn():
    trace = Machine((1.0,) * 8).run(plan("fallback", 5, 1, 8), 10)
    assert "thread 7 took 1" in trace_picture(trace).alt


def test_any_machine_answers_to_its_controls():
    view = AnyMachine(12288, 2304, 20.0)
    assert view.trace.plan.threads == 14 and "µs" in view._said.value
    claimed = view.trace.nanoseconds
    assert view.choose(policy="even").nanoseconds > 1.5 * claimed
    view.choose(fast=2, slow=0, bandwidth=10)
    assert view.machine.speeds == (20.0, 20.0) and view.trace.nanoseconds >= 2_831_155
    assert "<svg " in view._repr_mimebundle_()["text/html"] and "2 chunks" in repr(view)


def test_a_tile_is_numbered_column_after_column():
    picture = tile_picture(16, 16, 2304, 4352)
    assert [int(n) for n in re.findall(r">(\d+)</text>", picture.svg)] == list(range(1, 257))
    assert "256 outputs" in picture.alt and "16 rows of 2,304 bytes meet one column of 4,352" in picture.alt


def test_a_pool_with_its_gate_is_right():
    seen = try_pool(gate=True, seconds=0.3)
    assert seen.runs > 0 and (seen.wrong, seen.stuck, seen.crashed) == (0, 0, False)


def test_a_pool_without_its_gate_breaks_and_this_process_lives():
    """How and how often it breaks is chance."""
    for _ in range(10):
        seen = try_pool(gate=False, seconds=0.3)
        if seen.wrong or seen.stuck or seen.crashed:
            return
    raise AssertionError("ten tries, and nothing went wrong")
