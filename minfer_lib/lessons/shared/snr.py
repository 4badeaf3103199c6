"""How large a signal is beside its errors."""

from __future__ import annotations

import numpy as np


def snr(x: np.ndarray, values: np.ndarray) -> float:
    """Signal to noise in dB: 10 log10 of sum of x squared over sum of the errors squared; infinite without error."""
    x, values = np.asarray(x, np.float64), np.asarray(values, np.float64)
    noise = float(((values - x) ** 2).sum())
    signal = float((x**2).sum())
    if not noise:
        return float("inf")
    return 10 * float(np.log10(signal / noise)) if signal else float("-inf")
