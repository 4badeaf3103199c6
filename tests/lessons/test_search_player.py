"""The search player without a browser: its tries are the quantizer's, and what a page without a kernel gets."""

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.lessons import SearchPlayer, SuperBlock
from minfer_lib.lessons.lesson_05.scale_search import ScaleSearch
from minfer_lib.quantize.kquants import sub_block_weights

RANDOM = np.random.default_rng(5)
GROUPS = {"Q2_K": 16, "Q4_K": 32, "Q5_K": 32}


@pytest.fixture(params=GROUPS)
def search(request):
    return ScaleSearch(RANDOM.normal(0.2, 1, GROUPS[request.param]).astype(np.float32), request.param)


def test_the_best_try_is_what_the_quantizer_takes(search):
    """Only one group of the block is not zero, so its scale and min take the top of the range and are kept exactly."""
    x = np.zeros(256, np.float32)
    x[: len(search.x)] = search.x
    block, best = SuperBlock(search.format, mf.quantize(search.format, x)), search.tries[search.best]
    assert np.isclose(block.d * block.scales[0], best["scale"], rtol=1e-3)
    assert np.isclose(block.dmin * block.mins[0], -best["min"], rtol=1e-3)


def test_an_error_is_that_of_its_codes(search):
    weights, absolute = np.empty_like(search.x), search.format == "Q2_K"
    sub_block_weights(search.x, absolute, weights)
    for i, row in enumerate(search.tries):
        off = np.abs(search.values(i).astype(np.float64) - search.x)
        assert np.isclose((weights * (off if absolute else off**2)).sum(), row["error"], rtol=1e-4)
    assert search.tries["error"][search.best] == search.tries["error"].min()
    assert search.tries["kept"][0] and search.best > 0


def test_a_try_of_one_code_cannot_be_fitted():
    """All weights lie at the upper end, so that in some tries they round to one code."""
    player = SearchPlayer(np.full(32, 2, np.float32) + np.linspace(0, 0.01, 32, dtype=np.float32))
    skipped = np.flatnonzero(np.isnan(player.search.tries["error"]))
    assert len(skipped)
    player.show(int(skipped[0]))
    assert "nothing to fit" in repr(player)


@pytest.mark.parametrize(
    "x, format",
    [
        (np.ones(16), "Q4_K"),
        (np.linspace(0, 1, 32), "Q6_K"),
        (np.zeros(32), "Q4_K"),
        (np.full(32, -1.0), "Q4_K"),
        (np.full(32, np.nan), "Q4_K"),
    ],
)
def test_what_cannot_be_searched_is_refused(x, format):
    with pytest.raises(mf.ArgumentError):
        ScaleSearch(x, format)


@pytest.mark.parametrize("format, size", GROUPS.items())
def test_the_slider_shows_every_try(format, size):
    player = SearchPlayer(RANDOM.normal(0, 1, size), format)
    seen = set()
    for i in range(len(player.search.tries)):
        player.show(i)
        assert f"Try {i} of {len(player.search.tries) - 1}: " in player._words.value
        seen.add(player._picture.value)
    assert len(seen) == len(player.search.tries)


def test_a_page_without_a_kernel_gets_the_picture():
    player = SearchPlayer(RANDOM.normal(0, 1, 32))
    bundle = player._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "<svg " in bundle["text/html"] and 'aria-label="Try 0 of 21' in bundle["text/html"]
    assert "Codes" in bundle["text/html"] and "Try 0" in repr(player)
