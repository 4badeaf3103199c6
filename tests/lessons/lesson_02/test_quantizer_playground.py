"""The quantizer playground without a browser: presets, format, sliders, and what a page without a kernel gets."""

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.lessons.lesson_02.quantized_block import BLOCK_FORMATS
from minfer_lib.lessons.lesson_02.quantizer_playground import LIMIT, PRESETS, STEP, QuantizerPlayground


@pytest.fixture
def playground():
    return QuantizerPlayground()


@pytest.mark.parametrize("format", BLOCK_FORMATS)
@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_sets_the_block_and_the_picture(playground, name, format):
    playground.choose(format)
    before = playground._picture.value
    playground.preset(name)
    block, sliders = playground.block, np.array([slider.value for slider in playground._sliders], np.float32)
    assert np.array_equal(block.x, sliders) and np.abs(sliders).max() <= LIMIT
    assert np.array_equal(block.raw, mf.quantize(format, sliders))
    assert playground._picture.value != before
    assert f"{block.d:.6g}" in playground._numbers.value


@pytest.mark.parametrize("format", BLOCK_FORMATS)
def test_the_ties_are_ties(playground, format):
    playground.choose(format)
    playground.preset("ties")
    steps = np.abs(playground.block.steps)
    assert np.count_nonzero(steps == 0.5) >= 28


def test_one_outlier_ruins_its_neighbours_in_four_bits(playground):
    playground.choose("Q4_0")
    playground.preset("one outlier")
    assert np.count_nonzero(playground.block.values == 0) >= 20


def test_the_presets_are_what_their_names_say(playground):
    playground.preset("zeros")
    assert not playground.block.x.any() and playground.block.d == 0
    playground.preset("all positive")
    assert (playground.block.x > 0).all()


def test_a_slider_and_the_format_redraw(playground):
    before = playground._picture.value
    playground._sliders[7].value += STEP
    after = playground._picture.value
    assert after != before
    playground.choose("Q4_1")
    assert playground._picture.value != after and playground.block.format == "Q4_1"
    assert playground.block.x[7] == playground._sliders[7].value


def test_thirty_two_values_are_drawn_once(playground, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        type(playground._picture), "value", property(lambda self: "", lambda self, value: drawn.append(1))
    )
    playground.set_values(np.linspace(-9, 9, 32))
    assert len(drawn) == 2  # the picture and the numbers, both HTML
    assert playground.block.x.min() == -LIMIT and playground.block.x.max() == LIMIT


def test_a_button_works_like_the_method(playground):
    button = next(button for button in playground._presets if button.description == "zeros")
    button.click()
    assert not playground.block.x.any()


def test_a_page_without_a_kernel_gets_the_picture(playground):
    bundle = playground._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert (
        "<svg " in bundle["text/html"] and "aria-label=" in bundle["text/html"] and "<b>qs</b>" in bundle["text/html"]
    )
    assert "32 values as Q8_0" in repr(playground)
