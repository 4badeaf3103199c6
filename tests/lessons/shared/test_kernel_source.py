"""The source of a kernel: its own lines, and among them the line and the expression that are computed."""

import pytest
from lesson_cases import trace_of

from minfer_lib.lessons.shared.kernel_source import function_lines, source_html


@pytest.fixture
def steps():
    """operation -> the first step that does it"""
    return {s.name: s for s in reversed(trace_of("Q4_0", "avx2").steps)}


def test_the_line_and_the_expression_are_marked(steps):
    marked = [div for div in source_html(steps["maddubs"]).split("<div")[1:] if "▶" in div]
    assert len(marked) == 1 and str(steps["maddubs"].line) in marked[0]
    assert "<u><b>maddubs(magnitudes, signed)</b></u>" in marked[0]


def test_it_is_the_kernels_own_without_its_docstring(steps):
    lines = function_lines(steps["maddubs"].filename, steps["maddubs"].line)
    assert lines[0][1].startswith("def dot_q4_0_avx2(") and lines[-1][1].strip() == "return hsum8(acc)"
    assert not any('"""' in text for _, text in lines)
    helper = source_html(steps["add_pair"])
    assert "def" in helper and "hsum4(v)" in helper


def test_lines_that_were_not_seen_are_left_out(steps):
    step = steps["maddubs"]
    shown = source_html(step, {(step.filename, step.line)})
    assert shown.count("<div") == 3 and "def dot_q4_0_avx2(" in shown and "maddubs(" in shown
