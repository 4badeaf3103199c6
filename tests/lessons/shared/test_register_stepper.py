"""The register stepper without a browser: it shows what the kernel did, step by step."""

import numpy as np
import pytest
from lesson_cases import trace_of

import minfer_lib as mf
from minfer_lib.dot.registry import DOTS
from minfer_lib.errors import ArgumentError
from minfer_lib.lessons import RegisterStepper
from minfer_lib.quantize.activations_simd import quantize_q8_0_avx2
from minfer_lib.simd.step import step

RANDOM = np.random.default_rng(4)


@pytest.fixture
def stepper():
    return RegisterStepper(trace_of("Q4_0", "avx2"))


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
