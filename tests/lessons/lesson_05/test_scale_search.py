"""The search for a group's scale and min: its tries are the quantizer's."""

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.lessons import SuperBlock
from minfer_lib.lessons.lesson_05.scale_search import ScaleSearch
from minfer_lib.quantize.kquants import sub_block_weights


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
