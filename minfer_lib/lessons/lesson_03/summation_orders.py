"""The same terms, added in many orders: how far each sum is from the exact one."""

from __future__ import annotations

import numpy as np

from minfer_lib.lessons.shared.look import BLUE, RED, Picture, new_axes, style


def orders_picture(sums: np.ndarray, promised: np.float32, exact: float) -> Picture:
    """sums: f32[n], one an order; promised: the sum in the promised order; exact: the sum without rounding."""
    sums, promised = np.asarray(sums, np.float32), np.float32(promised)
    unit = float(np.spacing(np.abs(promised)))
    off = np.round((sums.astype(np.float64) - exact) / unit).astype(int)
    at, counts = np.unique(off, return_counts=True)
    here = round((float(promised) - exact) / unit)
    with style():
        axes = new_axes(7.6, 2.8)
        axes.bar(at, counts, width=0.85, color=BLUE)
        axes.axvline(here, color=RED, linestyle="--")
        axes.annotate("the promised order", (here, counts.max()), (6, 0), textcoords="offset points", va="top")
        axes.set(xlabel="distance from the exact sum, in units in the last place", ylabel="orders")
        axes.margins(y=0.12)
        return Picture(
            axes.figure,
            f"Histogram of {sums.size:,} sums of the same terms in different orders: {np.unique(sums).size} different "
            f"numbers, from {at[0]} to {at[-1]} units in the last place off the exact sum. The promised order is at "
            f"{here}.",
        )
