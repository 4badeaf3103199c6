"""The search for the scale and min of one group of weights, try by try."""

from __future__ import annotations

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.quantize.kquants import Q2_K_SEARCH, Q4_K_SEARCH, Q5_K_SEARCH, sub_block_weights
from minfer_lib.quantize.search import TRY, search_scale_min

_SEARCHES = {"Q2_K": (16, Q2_K_SEARCH), "Q4_K": (32, Q4_K_SEARCH), "Q5_K": (32, Q5_K_SEARCH)}  # group, how


class ScaleSearch:
    """What mf.quantize tries for one group, x: f32[16] for Q2_K, f32[32] for Q4_K and Q5_K.

    Try 0 spreads the codes from the smallest weight to the largest. Each later one spreads them a little wider or
    narrower, rounds, and fits scale and min to the codes that it got. `tries` is TRY[n]; a try that could not be fitted
    has the error NaN. `most` is the largest code. Raises ArgumentError: another format, or a group without a search.
    """

    def __init__(self, x: np.ndarray, format: str = "Q4_K") -> None:
        if format not in _SEARCHES:
            raise ArgumentError(f"{format!r} is not searched so: choose one of {', '.join(_SEARCHES)}.")
        size, (start, step, tries, absolute) = _SEARCHES[format]
        self.format, self.most = format, (1 << int(format[1])) - 1
        self.x = x = np.ascontiguousarray(x, np.float32)
        if x.shape != (size,) or not np.isfinite(x).all() or min(x.min(), 0) == x.max():
            raise ArgumentError(f"a group of {format} is f32[{size}], finite, and not all of one value from zero down.")
        weights, codes, trial = np.empty((3, size), np.float32)
        sub_block_weights(x, absolute, weights)
        self.tries = np.zeros(tries + 2, TRY)
        self.tries["error"] = np.nan
        search_scale_min(x, weights, self.most, start, step, tries, absolute, codes, trial, self.tries)

    @property
    def best(self) -> int:
        """The try that was kept."""
        return int(np.flatnonzero(self.tries["kept"])[-1])

    def codes(self, i: int) -> np.ndarray:
        """int[n]: of try i."""
        spread = self.tries[i]["inverse"] * (self.x - self.tries[i]["origin"])
        return np.clip(np.rint(spread), 0, self.most).astype(int)

    def values(self, i: int) -> np.ndarray:
        """f32[n]: what the codes of try i decode to."""
        return self.tries[i]["scale"] * self.codes(i).astype(np.float32) + self.tries[i]["min"]
