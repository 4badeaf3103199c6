"""Fixtures for the lessons."""

import pytest

import minfer_lib as mf


@pytest.fixture
def model(tiny):
    """A tiny model with room for a conversation."""
    return mf.load_model(tiny(context=512), threads=1)
