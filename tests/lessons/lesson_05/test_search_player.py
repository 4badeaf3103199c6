"""The search player without a browser, and what a page without a kernel gets."""

import numpy as np

from minfer_lib.lessons import SearchPlayer

RANDOM = np.random.default_rng(5)


def test_a_try_of_one_code_cannot_be_fitted():
    """All weights lie at the upper end, so that in some tries they round to one code."""
    player = SearchPlayer(np.full(32, 2, np.float32) + np.linspace(0, 0.01, 32, dtype=np.float32))
    skipped = np.flatnonzero(np.isnan(player.search.tries["error"]))
    assert len(skipped)
    player.show(int(skipped[0]))
    assert "nothing to fit" in repr(player)


def test_the_slider_shows_every_try(search):
    player = SearchPlayer(search.x, search.format)
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
