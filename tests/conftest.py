"""Fixtures for all tests, and the surroundings they run in."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent

# No deadline: the first example may compile.
settings.register_profile("minfer", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
settings.load_profile("minfer")


def pytest_configure(config):
    """Compiled kernels go to a folder of the tests' own, before anything imports minfer_lib."""
    os.environ["NUMBA_CACHE_DIR"] = str(config.cache.mkdir("numba"))


@pytest.fixture(scope="session")
def golden():
    """ggml's own bytes and numbers; see data/golden/README.md."""
    with np.load(ROOT / "data" / "golden" / "kernels.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """tiny(format="Q4_0", …) -> path of a random model with that Spec, written once."""
    from tiny_models import Spec, write_model

    folder = tmp_path_factory.mktemp("tiny")
    written = {}

    def path(**spec):
        key = repr(sorted(spec.items()))
        if key not in written:
            written[key] = write_model(folder / f"{len(written)}.gguf", Spec(**spec))
        return written[key]

    return path


@cache
def _smollm2():
    from minfer_lib import ModelMissingError, model_files

    try:
        return model_files.resolve("smollm2")
    except ModelMissingError as error:
        return error


@pytest.fixture(scope="session")
def smollm2():
    """Path of the default model; the test is skipped where it has not been fetched."""
    found = _smollm2()
    if isinstance(found, Exception):
        pytest.skip(str(found))
    return found
