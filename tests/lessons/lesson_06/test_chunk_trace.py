"""Which thread computed which rows, as a picture."""

from lesson_cases import marks

from minfer_lib.lessons.lesson_06.chunk_trace import trace_picture
from minfer_lib.matmul.chunks import plan
from minfer_lib.matmul.simulated_machine import Machine


def test_a_range_is_drawn_over_its_lines():
    trace = Machine((1.0, 1.0, 1.0)).run(plan("even", 2560, 1, 3), 10)
    svg = trace_picture(trace).svg
    assert sorted(marks(svg)) == [0, 1, 1, 2, 2]  # 853 rows, 853 across a line's end, 854 too
    big = Machine((1.0,)).run(plan("ggml", 151_936, 1, 1), 10)
    assert "a square: 1024 rows" in trace_picture(big).svg


def test_more_threads_than_chunks_can_be_drawn():
    trace = Machine((1.0,) * 8).run(plan("fallback", 5, 1, 8), 10)
    assert "thread 7 took 1" in trace_picture(trace).alt
