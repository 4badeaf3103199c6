"""Fixtures for what several lessons share."""

import pytest

from minfer_lib import model_files


@pytest.fixture
def own(tiny, monkeypatch, tmp_path):
    """A tiny model in place of the course's own, and a folder for what is made of it."""
    path = tiny(format="F16", width=256, ffn_width=768, n_layers=2)
    monkeypatch.setattr(model_files, "resolve", lambda name: path if name == model_files.BUNDLED else None)
    monkeypatch.setenv("MINFER_MODELS", str(tmp_path / "models"))
    return tmp_path
