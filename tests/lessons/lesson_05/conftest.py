"""Fixtures for lesson 5."""

import numpy as np
import pytest

from minfer_lib.lessons.lesson_05.scale_search import ScaleSearch

GROUPS = {"Q2_K": 16, "Q4_K": 32, "Q5_K": 32}


@pytest.fixture(params=GROUPS)
def search(request):
    """The search for one random group of each format that is searched so."""
    random = np.random.default_rng(6)
    return ScaleSearch(random.normal(0.2, 1, GROUPS[request.param]).astype(np.float32), request.param)
