"""The sampler explorer without a browser: what the sliders' sampler would do is what the picture and the words say."""

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.lessons import SamplerExplorer
from minfer_lib.text.sampling import Sampler

LOGITS = np.linspace(-2, 6, 265).astype(np.float32)[::-1].copy()  # the token with id 0 is the likeliest


@pytest.fixture
def explorer(tiny):
    return SamplerExplorer(LOGITS, mf.load_model(tiny()).tokenizer)


@pytest.mark.parametrize(
    "values",
    [{}, {"temperature": 0.0}, {"top_k": 3}, {"top_k": 0, "top_p": 0.5}, {"top_k": 0, "top_p": 1, "min_p": 0.5}],
)
def test_the_chances_are_the_samplers_own(explorer, values):
    candidates = explorer.choose(**values)
    settings = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05} | values
    assert np.array_equal(candidates.after, Sampler(**settings).probabilities(LOGITS))


def test_each_filter_is_counted_after_those_before_it(explorer):
    left = explorer.choose(top_k=10, top_p=0.5, min_p=0.9).left
    assert left["top-k"] == 10 > left["top-p"] > left["min-p"] > 0
    assert explorer.candidates.ruled_out_by(264) == "top-k"
    assert explorer.candidates.ruled_out_by(9) == "top-p"
    assert explorer.candidates.ruled_out_by(left["min-p"]) == "min-p"
    assert explorer.candidates.ruled_out_by(0) == ""


def test_a_slider_redraws(explorer):
    before = explorer._picture.value
    explorer._controls["temperature"].value = 1.5
    assert explorer._picture.value != before and explorer.candidates.sampler.temperature == 1.5


def test_temperature_zero_leaves_one(explorer):
    assert np.count_nonzero(explorer.choose(temperature=0).after) == 1
    assert "leaves 1 to draw" in repr(explorer)


def test_a_page_without_a_kernel_gets_the_picture(explorer):
    bundle = explorer._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "<svg " in bundle["text/html"] and "aria-label=" in bundle["text/html"] and "40 after" in bundle["text/html"]
