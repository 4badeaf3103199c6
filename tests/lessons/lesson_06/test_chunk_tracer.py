"""The chunk tracer without a browser."""

import numpy as np
import pytest
from lesson_cases import marks

import minfer_lib as mf
from minfer_lib.lessons.lesson_06 import chunk_tracer
from minfer_lib.lessons.lesson_06.chunk_tracer import STEPS, ChunkTracer
from minfer_lib.matmul.chunks import POLICIES


@pytest.fixture
def tracer(monkeypatch):
    monkeypatch.setattr(chunk_tracer, "ROUNDS", 1)
    random = np.random.default_rng(65)
    w = mf.quantize("Q4_0", random.standard_normal(12288 * 32).astype(np.float32)).reshape(12288, -1)
    return ChunkTracer("Q4_0", w, random.standard_normal((1, 32)).astype(np.float32))


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
