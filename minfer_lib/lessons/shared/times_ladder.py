"""Times of the same work done in several ways, on a logarithmic axis: a step to the left is a factor."""

from __future__ import annotations

from collections.abc import Mapping

from minfer_lib.lessons.shared.look import BLUE, GREY, Picture, new_axes, style


def ladder_picture(times: Mapping[str, float], unit: str) -> Picture:
    """`times`: way -> time in `unit`, first at the top. Each is labelled with its time and its factor to the first."""
    names, values = list(times), list(times.values())
    first, rows = values[0], range(len(values))
    with style():
        axes = new_axes(7.6, 0.9 + 0.42 * len(values))
        axes.figure.get_layout_engine().set(w_pad=0.2)  # a browser's letters may be wider than matplotlib's
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,g}")
        axes.set_xlim(min(values) / 2, max(values) * 8)
        axes.hlines(rows, min(values) / 2, values, color=GREY, linestyle=":", linewidth=1)
        axes.plot(values, rows, "o", color=BLUE, markersize=8)
        for row, value in zip(rows, values, strict=True):
            factor = "" if row == 0 else f" ({_factor(first / value)})"
            shown = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
            axes.annotate(f"{shown}{factor}", (value, row), (9, 0), textcoords="offset points", va="center")
        axes.set_yticks(rows, names)
        axes.set_ylim(len(values) - 0.5, -0.5)
        axes.grid(axis="x", alpha=0.25)
        axes.set_xlabel(unit)
        told = "; ".join(f"{name} {value:.3g}" for name, value in times.items())
        return Picture(axes.figure, f"Times on a logarithmic axis, in {unit}: {told}.")


def _factor(ratio: float) -> str:
    return f"{ratio:,.0f}×" if ratio >= 10 else f"{ratio:.2g}×"
