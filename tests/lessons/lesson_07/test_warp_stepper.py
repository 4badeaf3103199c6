"""The warp stepper without a browser: a kernel, statement by statement."""

import numpy as np
import pytest

from minfer_lib.errors import ArgumentError
from minfer_lib.gpu import ops
from minfer_lib.gpu.quantizer import quantizer
from minfer_lib.gpu.unit import PAD40
from minfer_lib.gpu.warp_sim import simulate
from minfer_lib.lessons import WarpStepper
from minfer_lib.lessons.shared.kernel_source import source_html

RANDOM = np.random.default_rng(71)


@pytest.fixture
def stepper(trace):
    return WarpStepper(trace)


def test_it_walks_and_stops_at_both_ends(stepper):
    count = len(stepper.steps)
    assert stepper._back.disabled and not stepper._on.disabled
    seen = set()
    for _ in range(count):
        seen.add(stepper.alt)
        assert stepper.step.warp == 0
        stepper._on.click()
    assert len(seen) == count and stepper._on.disabled
    stepper._back.click()
    assert stepper.step is stepper.steps[-2]


def test_another_warp_is_shown_at_the_same_statement(stepper):
    stepper.show("while u < n_units", skip=1)
    assert not stepper.step.changed["u < n_units"][8:].any()
    stepper._warp.value = 1
    assert stepper.step.warp == 1 and stepper.step.text.strip() == "while u < n_units:"
    assert stepper._slider.max == stepper._play.max == len(stepper.trace.of(1))
    assert f"of {len(stepper.trace.of(1))}</b>" in stepper._title.value and "warp 1" in stepper._title.value
    stepper._warp.value = 0
    assert stepper._slider.max == len(stepper.trace.of(0))


def test_a_warp_that_never_comes_there_is_shown_from_its_start(stepper):
    stepper.show("out[row] = total")
    stepper._warp.value = 1
    assert stepper.step is stepper.trace.of(1)[0]


def test_it_goes_to_a_line(stepper):
    assert stepper.show("dp4a(ONES", warp=1, skip=3).step.changed["total"].shape == (32,)
    assert stepper.step.warp == 1 and "dp4a(ONES" in stepper.step.text
    with pytest.raises(ArgumentError, match="no such|does not come"):
        stepper.show("nothing like it")
    with pytest.raises(ArgumentError, match="block 1 was not simulated"):
        WarpStepper(stepper.trace, block=1)


def test_the_source_leaves_out_what_this_launch_leaves_out(stepper):
    stepper.show("u = thread")
    assert "sum0 += dot(q0, u, a)" in stepper._source.value and "sum3" in stepper._source.value
    for never in ("sum1 += dot", "q2, q3 ="):
        assert never in source_html(stepper.step).replace("&amp;", "&") and never not in stepper._source.value
    marked = [div for div in stepper._source.value.split("<div")[1:] if "▶" in div]
    assert len(marked) == 1 and "<u><b>u = thread - group * ROW_THREADS</b></u>" in marked[0]


def test_else_is_shown_where_lanes_take_it():
    def both(out):
        lane = ops.thread_index()
        if lane < 5:
            out[lane] = 1
        else:
            out[lane] = 2

    out = np.zeros(32, np.int32)
    stepper = WarpStepper(simulate(both, 1, 32, (out,)), at="if lane")
    assert "else:" in stepper._source.value and out.tolist() == [1] * 5 + [2] * 27


def test_the_quantizer_steps_too():
    x, out = RANDOM.normal(0, 1, 128).astype(np.float32), np.zeros(160, np.uint8)
    stepper = WarpStepper(simulate(quantizer(PAD40), 1, 128, (x, out, 4)), at="amax = ")
    assert np.unique(stepper.step.changed["amax"]).tolist() == [abs(x[:32]).max()]
    stepper._warp.value = 3
    assert np.unique(stepper.step.changed["amax"]).tolist() == [abs(x[96:]).max()]


def test_a_page_without_a_kernel_gets_the_step(stepper):
    static = stepper.show("dp4a")._repr_mimebundle_()["text/html"]
    assert "<svg" in static and "▶" in static and 'role="img"' in static and 'aria-live="polite"' in static
    assert repr(stepper) == stepper.alt
