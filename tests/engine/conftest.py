"""What the tests of a session share."""

import pytest

import minfer_lib as mf


@pytest.fixture
def model(tiny):
    return mf.load_model(tiny(format="Q8_0"))
