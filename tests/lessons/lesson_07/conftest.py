"""Fixtures for lesson 7."""

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.gpu.geometry import Launch
from minfer_lib.gpu.mmvq import mmvq
from minfer_lib.gpu.q4_k_steps import SEED
from minfer_lib.gpu.warp_sim import simulate


@pytest.fixture(scope="package")
def trace():
    """Rows of 40 units for two warps of 32 lanes: in warp 1, eight lanes have a unit. Two rows, block 1 left out."""
    random = np.random.default_rng(71)
    w = mf.quantize("Q4_K", random.normal(0, 1, 2 * 1280).astype(np.float32))
    a = mf.quantize_activations("Q8_0_PAD40", random.normal(0, 1, 1280).astype(np.float32))
    launch = Launch(2, 1)
    arguments = w, a, np.zeros(2, np.float32), 2, 40, w.size // 2
    return simulate(mmvq(SEED, launch), 2, launch.threads, arguments, blocks=[0])
