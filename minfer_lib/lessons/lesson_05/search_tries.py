"""One try of the search for a group's scale and min: its levels over the weights, and the errors of all tries."""

from __future__ import annotations

import numpy as np

from minfer_lib.lessons.lesson_05.scale_search import ScaleSearch
from minfer_lib.lessons.shared.look import BLUE, GREEN, GREY, PLOT_INK, RED, Picture, new_axes, style


def search_picture(search: ScaleSearch, i: int) -> Picture:
    """Try i of `search`: above the weights and what they decode to, below the error of every try, in % of try 0's."""
    with style():
        axes = new_axes(8.6, 5.6)
        figure = axes.figure
        axes.remove()
        above, below = figure.subplots(2, 1, height_ratios=(5, 3))
        _weights(above, search, i)
        _errors(below, search, i)
        return Picture(figure, f"{told(search, i)} Codes {', '.join(map(str, search.codes(i)))}.")


def told(search: ScaleSearch, i: int) -> str:
    """Try i in words."""
    row = search.tries[i]
    if np.isnan(row["error"]):
        return f"Try {i} of {len(search.tries) - 1}: nothing to fit, all weights got the same code."
    kept = "kept: the best so far" if row["kept"] else "not kept"
    if i == search.best:
        kept = "kept: the best of all"
    return (
        f"Try {i} of {len(search.tries) - 1}: scale {row['scale']:.5f}, min {-row['min']:.5f}, "
        f"error {_percent(search)[i]:.1f} % of try 0's, {kept}."
    )


def _percent(search: ScaleSearch) -> np.ndarray:
    return 100 * search.tries["error"] / search.tries["error"][0]


def _weights(axes, search: ScaleSearch, i: int) -> None:
    at, row = np.arange(len(search.x)), search.tries[i]
    levels = row["scale"] * np.arange(search.most + 1) + row["min"]
    axes.hlines(levels, -0.6, at[-1] + 0.6, color=BLUE, linewidth=0.6, alpha=0.7)
    axes.axhline(row["min"], color=GREEN, linewidth=2.5)
    axes.annotate("code 0", (at[-1] + 0.8, row["min"]), va="center", annotation_clip=False)
    if not np.isnan(row["error"]):
        axes.vlines(at, search.x, search.values(i), color=RED, linewidth=3)
        axes.plot(at, search.values(i), "_", color=BLUE, markersize=11, markeredgewidth=2.5, label="decoded")
    axes.plot(at, search.x, "o", markerfacecolor="none", color=PLOT_INK, markersize=4, label="weight")
    span = search.x.max() - search.x.min()
    axes.set_ylim(min(0, search.x.min()) - 0.12 * span, search.x.max() + 0.12 * span)
    axes.set_xlim(-0.7, at[-1] + 0.7)
    axes.set(xlabel=f"weight of the group; lines: the {search.most + 1} levels of try {i}", ylabel="value")
    axes.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)


def _errors(axes, search: ScaleSearch, i: int) -> None:
    percent, kept = _percent(search), search.tries["kept"]
    at = np.arange(len(percent))
    axes.axhline(100, color=GREY, linewidth=0.8, linestyle=":")
    axes.plot(at[~kept], percent[~kept], "o", markerfacecolor="none", color=GREY, label="not kept")
    axes.plot(at[kept], percent[kept], "s", color=GREEN, label="kept: best so far")
    axes.axvline(i, color=RED, linestyle="--", linewidth=1)
    if not np.isnan(percent[i]):
        axes.plot(i, percent[i], "o", markersize=13, markerfacecolor="none", color=RED)
    axes.set_xlim(-0.7, at[-1] + 0.7)
    axes.set_xticks(at)
    axes.set_ylim(0, 1.1 * np.nanmax(percent))
    axes.set(xlabel="try", ylabel="error, % of try 0's")
    axes.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)
