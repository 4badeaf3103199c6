"""One statement of a warp, drawn: every lane, every step."""

from collections import Counter

import numpy as np
from lesson_cases import smallest_text, texts

from minfer_lib.lessons.lesson_07.warp_lanes import access_told, lane_value, lanes_picture


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
        assert smallest_text(picture.svg) >= 11


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
