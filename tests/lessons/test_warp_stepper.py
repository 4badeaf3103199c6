"""The warp stepper and its pictures without a browser: every step of a kernel, lane by lane."""

import html
import re
from collections import Counter

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.errors import ArgumentError
from minfer_lib.gpu import ops
from minfer_lib.gpu.geometry import Launch
from minfer_lib.gpu.mmvq import mmvq
from minfer_lib.gpu.q4_k_steps import SEED
from minfer_lib.gpu.quantizer import quantizer
from minfer_lib.gpu.unit import PAD40
from minfer_lib.gpu.warp_sim import simulate
from minfer_lib.lessons import WarpStepper, shuffle_tree
from minfer_lib.lessons.figures.kernel_source import source_html
from minfer_lib.lessons.figures.warp_lanes import access_told, lane_value, lanes_picture

RANDOM = np.random.default_rng(71)


@pytest.fixture(scope="module")
def trace():
    """Rows of 40 units for two warps of 32 lanes: in warp 1, eight lanes have a unit. Two rows, block 1 left out."""
    w = mf.quantize("Q4_K", RANDOM.normal(0, 1, 2 * 1280).astype(np.float32))
    a = mf.quantize_activations("Q8_0_PAD40", RANDOM.normal(0, 1, 1280).astype(np.float32))
    launch = Launch(2, 1)
    arguments = w, a, np.zeros(2, np.float32), 2, 40, w.size // 2
    return simulate(mmvq(SEED, launch), 2, launch.threads, arguments, blocks=[0])


@pytest.fixture
def stepper(trace):
    return WarpStepper(trace)


def texts(svg):
    return [html.unescape(re.sub("<.*?>", "", found)) for found in re.findall(r"<text[^>]*>(.*?)</text>", svg)]


def test_every_step_is_drawn_with_all_its_lanes(trace):
    for step in trace.steps:
        picture = lanes_picture(step)
        drawn = texts(picture.svg)
        assert f"{int(step.active.sum())} lane" in drawn[0] and drawn[0].endswith("of 32 do it")
        assert picture.svg.count('fill-opacity=".65"') == step.active.sum()
        for name, values in list(step.changed.items())[:4]:
            assert f"{name} {values.dtype}" in drawn
            told = ", ".join(lane_value(v) if on else "–" for v, on in zip(values, step.active, strict=True))
            assert f"{name}: {told}" in picture.alt
            for lane in np.flatnonzero(step.active):
                assert lane_value(values[lane]) in drawn
        for told, times in Counter(map(access_told, step.accesses)).items():
            assert (told if times == 1 else f"{times} × {told}") in drawn
        assert min(map(float, re.findall(r'font-size="([\d.]+)"', picture.svg))) >= 11


def test_idle_lanes_are_told_and_shown_empty(trace):
    step = next(s for s in trace.of(1) if s.text.strip().startswith("a = activations"))
    picture = lanes_picture(step)
    assert "8 lanes of 32 are active, not 8 to 31" in picture.alt
    registers = min(len(step.changed), 4)
    assert picture.svg.count("stroke-dasharray") == 24 * registers


def test_numbers_are_shown_as_what_they_are():
    assert lane_value(np.uint32(0x0F0F0F0F)) == "0f0f0f0f" and lane_value(np.int32(-7)) == "−7"
    assert lane_value(np.bool_(True)) == "yes" and lane_value(np.float32(1 / 3)) == "0.33333"


def test_a_shuffle_tells_where_values_come_from(trace):
    first, *_, last = [s for s in trace.of(0) if s.sources is not None]
    drawn = texts(lanes_picture(first).svg)
    assert all(f"← {lane + 16}" in drawn for lane in range(16)) and "← 15" not in drawn
    assert "lane 0 received the value of lane 1" in lanes_picture(last).alt


def test_a_step_with_many_registers_names_the_rest(trace):
    step = next(s for s in trace.of(0) if len(s.changed) > 4)
    names = list(step.changed)
    assert any(text.startswith(f"and {names[4]}") for text in texts(lanes_picture(step).svg))


def test_the_tree_is_five_shuffles(trace):
    shuffles = [s for s in trace.of(0) if s.sources is not None]
    picture = shuffle_tree(shuffles)
    assert "5 shuffles, down by 16, 8, 4, 2, 1" in picture.alt
    filled = picture.svg.count('r="5" fill="#')
    assert filled == 32 + 16 + 8 + 4 + 2 + 1 and picture.svg.count("<circle") == 6 * 32
    assert picture.svg.count("<path") == 2 * 31
    (last,) = shuffles[-1].changed.values()
    assert texts(picture.svg)[-1] == lane_value(last[0])


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
