"""The register stepper without a browser: it shows what the kernel did, step by step, for every kernel set."""

import html
import re

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.dot.kernels import DOTS, FOUR_ROWS
from minfer_lib.errors import ArgumentError
from minfer_lib.lessons import RegisterStepper
from minfer_lib.lessons.shared.kernel_source import function_lines
from minfer_lib.lessons.shared.register_picture import meaning, step_picture
from minfer_lib.lessons.shared.wording import shown
from minfer_lib.quantize.activations_simd import quantize_q8_0_avx2
from minfer_lib.simd.step import step

RANDOM = np.random.default_rng(4)
KERNELS = [(name, isa) for name, isa in DOTS if name in ("Q4_0", "Q5_1", "Q8_0") and isa != "scalar"]


def trace_of(name: str, isa: str):
    x = RANDOM.normal(0, 1, 128).astype(np.float32)
    w, a = mf.quantize(name, x), mf.quantize_activations("Q8_0", x[:32])
    row = (mf.FORMATS[name].block_bytes,) if (name, isa) in FOUR_ROWS else ()
    return step(DOTS[name, isa], w, 0, *row, a, 0, 1)


@pytest.fixture
def stepper():
    return RegisterStepper(trace_of("Q4_0", "avx2"))


def texts(svg: str) -> list[str]:
    return [html.unescape(re.sub("<.*?>", "", found)) for found in re.findall(r"<text[^>]*>(.*?)</text>", svg)]


@pytest.mark.parametrize("name, isa", KERNELS)
def test_every_step_of_every_kernel_is_drawn_with_all_its_lanes(name, isa):
    trace = trace_of(name, isa)
    for s in trace.steps:
        picture = step_picture(trace, s)
        if s.output is not None and np.ndim(s.output.value):
            lanes = [shown(value) for value in s.output.value]
            drawn = [text for text in texts(picture.svg.split("<line")[1])[2:] if text]
            numbers = [str(k) for k in range(0, len(lanes), 16 // s.output.value.itemsize)]
            assert sorted(drawn) == sorted(lanes + numbers)
            assert f"{s.output.type}: {', '.join(lanes)}" in picture.alt
        assert meaning(s), s.name
        assert min(map(float, re.findall(r'font-size="([\d.]+)"', picture.svg))) >= 11


def test_it_walks_and_stops_at_both_ends(stepper):
    count = len(stepper.trace.steps)
    assert stepper.step.number == 0 and stepper._back.disabled and not stepper._on.disabled
    stepper._back.click()
    assert stepper.step.number == 0
    for number in range(1, count):
        before = stepper._picture.value, stepper._source.value, stepper._title.value
        stepper._on.click()
        assert stepper.step.number == number
        assert (stepper._picture.value, stepper._source.value, stepper._title.value) != before
    assert stepper._on.disabled
    stepper._on.click()
    stepper._back.click()
    assert stepper.step.number == count - 2


def test_player_and_slider_have_the_steps(stepper):
    for widget in (stepper._play, stepper._slider):
        assert (widget.min, widget.max) == (1, len(stepper.trace.steps))
    stepper._play.value = 5
    assert stepper.step is stepper.trace.steps[4] and stepper.alt.startswith("Step 5 of ")
    stepper.show("maddubs")
    assert stepper._play.value == stepper._slider.value == stepper.step.number + 1


def test_it_goes_to_an_operation_or_a_step(stepper):
    assert stepper.show("maddubs").step.instruction == "vpmaddubsw"
    assert stepper.show(stepper.trace.steps[7]).step.number == 7
    for nowhere in ("sdot", trace_of("Q4_0", "neon").steps[0]):
        with pytest.raises(ArgumentError, match="maddubs"):
            stepper.show(nowhere)


def test_the_line_and_the_expression_are_marked(stepper):
    stepper.show("maddubs")
    marked = [div for div in stepper._source.value.split("<div")[1:] if "▶" in div]
    assert len(marked) == 1 and str(stepper.step.line) in marked[0]
    assert "<u><b>maddubs(magnitudes, signed)</b></u>" in marked[0]


def test_the_source_is_the_kernels_own_without_its_docstring(stepper):
    lines = function_lines(stepper.step.filename, stepper.step.line)
    assert lines[0][1].startswith("def dot_q4_0_avx2(") and lines[-1][1].strip() == "return hsum8(acc)"
    assert not any('"""' in text for _, text in lines)
    stepper.show("add_pair")
    assert "def" in stepper._source.value and "hsum4(v)" in stepper._source.value


def test_a_lane_that_did_not_fit_is_told_and_marked():
    w, a = np.zeros(34, np.uint8), np.zeros(34, np.uint8)
    w[7], a[7] = 255, 128  # -1 and -128
    trace = step(DOTS["Q8_0", "avx2"], w, 0, a, 0, 1)
    stepper = RegisterStepper(trace, trace.flagged[0])
    assert stepper.step.name == "sign" and "lane 5: the result did not fit and wrapped around" in stepper._title.value
    assert "lane 5" in stepper.alt and stepper._picture.value.count("<path") == 1
    assert "<path" not in RegisterStepper(trace, "maddubs")._picture.value


def test_the_quantizer_steps_too():
    x, out = RANDOM.normal(0, 1, 32).astype(np.float32), np.zeros(34, np.uint8)
    trace = step(quantize_q8_0_avx2, x.view(np.uint8), 0, out, 0, 1)
    stepper = RegisterStepper(trace, "round_to_i32")
    assert np.array_equal(out, mf.quantize_activations("Q8_0", x))
    for s in trace.steps:
        assert stepper.show(s).alt.startswith(f"Step {s.number + 1} of {len(trace.steps)}")


def test_a_page_without_a_kernel_gets_the_step(stepper):
    static = stepper.show("maddubs")._repr_mimebundle_()["text/html"]
    assert "<svg" in static and "vpmaddubsw" in static and "▶" in static
    assert 'role="img"' in static and 'aria-live="polite"' in static and repr(stepper) == stepper.alt


def test_a_trace_without_steps_is_refused(stepper):
    stepper.trace.steps.clear()
    with pytest.raises(ArgumentError, match="no step"):
        RegisterStepper(stepper.trace)
