"""What ggml and llama-quantize made of the rows and models of data/golden/make_quantized.py."""

import json
import runpy
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[2] / "data" / "golden"


@pytest.fixture(scope="session")
def made():
    """The names in make_quantized.py: rows(), random_model(), weights()."""
    return runpy.run_path(str(GOLDEN / "make_quantized.py"))


@pytest.fixture(scope="session")
def row_hashes():
    """{row: {format: sha256 of ggml's bytes}}"""
    return json.loads((GOLDEN / "quantized_rows.json").read_text())


@pytest.fixture(scope="session")
def llama_quantize():
    """llama_quantize(model) -> the record that make_quantized.py wrote of it."""
    return lambda model: json.loads((GOLDEN / f"quantized_{model}.json").read_text())
