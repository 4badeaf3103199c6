"""Signal to noise in decibels."""

import numpy as np
import pytest

from minfer_lib.lessons.shared.snr import snr


def test_signal_to_noise():
    x = np.array([3, 4], np.float32)
    assert snr(x, x) == np.inf
    assert snr(x, 1.1 * x.astype(np.float64)) == pytest.approx(20)
    assert snr(x, np.zeros(2)) == 0
    assert snr(np.zeros(2), x) == -np.inf
