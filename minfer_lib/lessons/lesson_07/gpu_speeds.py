"""What was measured on a GPU: a ladder of changes, launches side by side, and where a new kernel begins to win."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minfer_lib.lessons.shared.look import BLUE, GREEN, GREY, ORANGE, PLOT_INK, Picture, new_axes, style

_MARKERS = (("o", BLUE), ("s", ORANGE), ("^", GREEN), ("D", GREY))


def rungs_picture(rungs: Mapping[str, float], roof: float, others: Mapping[str, float]) -> Picture:
    """A bar a rung, the first at the top, in GB/s; a dashed line at `roof`. others: what stands beside, hatched."""
    names, values = [*rungs, *others], [*rungs.values(), *others.values()]
    rows = range(len(names))
    with style():
        axes = new_axes(8.6, 0.9 + 0.4 * len(names))
        bars = axes.barh(rows, values, 0.62, color=BLUE)
        for bar in bars[len(rungs) :]:
            bar.set(fill=False, edgecolor=GREY, hatch="//")
        for bar, row, value in zip(bars, rows, values, strict=True):
            inside = value > 0.4 * roof and row < len(rungs)  # beside the bar it would stand on the dashed line
            axes.annotate(
                f"{value:,.0f} ({value / roof:.0%})", (bar.get_width(), row), (-5 if inside else 5, 0), va="center",
                textcoords="offset points", ha="right" if inside else "left", color="white" if inside else PLOT_INK,
            )  # fmt: skip
        axes.axvline(roof, color=GREY, linestyle="--")
        axes.annotate(f"reading alone, {roof:,.0f}", (roof, -0.65), ha="right", va="bottom", annotation_clip=False)
        axes.set_yticks(rows, names)
        axes.set_ylim(len(names) - 0.5, -0.6)
        axes.set_xlim(0, roof * 1.05)
        axes.set_xlabel("GB/s of weights")
        told = "; ".join(f"{name}: {value:,.0f}" for name, value in zip(names, values, strict=True))
        return Picture(axes.figure, f"Bars in GB/s: {told}. Reading alone reaches {roof:,.0f}.")


def launches_picture(speeds: Mapping[str, Mapping[str, float]], roof: float) -> Picture:
    """speeds: launch -> matrix -> GB/s. A line a launch, a mark a matrix; each matrix' best mark is filled."""
    matrices = list(dict.fromkeys(matrix for row in speeds.values() for matrix in row))
    best = {m: max(speeds, key=lambda launch, m=m: speeds[launch].get(m, 0)) for m in matrices}
    rows = {launch: at for at, launch in enumerate(speeds)}
    with style():
        axes = new_axes(8.2, 1.3 + 0.3 * len(speeds))
        for matrix, (marker, colour) in zip(matrices, _MARKERS, strict=False):
            points = [(row[matrix], rows[launch], launch) for launch, row in speeds.items() if matrix in row]
            axes.plot(*zip(*[p[:2] for p in points], strict=True), marker, color=colour, fillstyle="none", label=matrix)
            axes.plot([p[0] for p in points if p[2] == best[matrix]], [rows[best[matrix]]], marker, color=colour)
        axes.axvline(roof, color=GREY, linestyle="--", label=f"reading alone, {roof:,.0f}")
        axes.set_yticks(range(len(speeds)), list(speeds))
        axes.set_ylim(len(speeds) - 0.5, -0.5)
        axes.set_xlim(0, roof * 1.05)
        axes.grid(axis="x", alpha=0.25)
        axes.set_xlabel("GB/s of weights; filled: the best for this matrix")
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        told = "; ".join(f"{m} {speeds[best[m]][m]:,.0f} with {best[m]}" for m in matrices)
        return Picture(axes.figure, f"Marks in GB/s, {len(speeds)} launches. The best: {told}.")


def crossover_picture(rows: Sequence[Mapping[str, Any]], roof: float, row_bytes: int) -> Picture:
    """rows: n_out, us_f32, us_with_quantizer of one format and n_in, whose matrix has row_bytes a row. Logarithmic."""
    n_out = [row["n_out"] for row in rows]
    old, new = ([row[key] for row in rows] for key in ("us_f32", "us_with_quantizer"))
    with style():
        axes = new_axes(7.6, 3.4)
        axes.loglog(n_out, old, "s-", color=ORANGE, label="the old kernel")
        axes.loglog(n_out, new, "o-", color=BLUE, label="MMVQ and its quantizer")
        axes.loglog(n_out, [n * row_bytes / roof / 1e3 for n in n_out], "--", color=GREY, label="reading alone")
        axes.set_xticks(n_out, [f"{n:,}" for n in n_out], rotation=45)
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_formatter("{x:,g}")
        axes.grid(alpha=0.25)
        axes.set(xlabel="rows", ylabel="µs")
        axes.legend(frameon=False)
        told = "; ".join(f"{n:,} rows {o:.3g} and {m:.3g}" for n, o, m in zip(n_out, old, new, strict=True))
        return Picture(axes.figure, f"Line chart, µs of the old kernel and of MMVQ with its quantizer: {told}.")
