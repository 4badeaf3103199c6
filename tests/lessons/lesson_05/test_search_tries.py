"""One try of the search for a group's scale and min, drawn."""

import numpy as np
import pytest
from lesson_cases import texts

from minfer_lib.lessons.lesson_05.scale_search import ScaleSearch
from minfer_lib.lessons.lesson_05.search_tries import search_picture, told


def test_a_try_is_drawn_with_its_codes_and_told(search):
    picture = search_picture(search, search.best)
    assert picture.alt == f"{told(search, search.best)} Codes {', '.join(map(str, search.codes(search.best)))}."
    assert "kept: the best of all" in picture.alt and f"Try {search.best} of {len(search.tries) - 1}" in picture.alt
    drawn = texts(picture.svg)
    assert f"weight of the group; lines: the {search.most + 1} levels of try {search.best}" in drawn
    assert {"code 0", "weight", "decoded", "not kept", "kept: best so far"} <= set(drawn)


def test_the_error_is_told_beside_the_first_trys(search):
    assert "error 100.0 % of try 0's, kept: the best so far" in told(search, 0)
    for i, row in enumerate(search.tries):
        assert f"error {100 * row['error'] / search.tries['error'][0]:.1f} % of try 0's" in told(search, i)


@pytest.fixture
def flat():
    """Weights that lie so close together that in some tries all of them get one code."""
    return ScaleSearch(np.full(32, 2, np.float32) + np.linspace(0, 0.01, 32, dtype=np.float32))


def test_a_try_without_a_fit_decodes_to_nothing(flat):
    skipped = int(np.flatnonzero(np.isnan(flat.tries["error"]))[0])
    picture = search_picture(flat, skipped)
    assert "nothing to fit, all weights got the same code" in picture.alt and "decoded" not in texts(picture.svg)
