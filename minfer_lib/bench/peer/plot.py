"""The comparison as a picture: how many times as fast as llama.cpp, with the goals as marks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from minfer_lib.bench.peer.compare import CEILING, Comparison
from minfer_lib.bench.peer.goals import goal_of
from minfer_lib.errors import ArgumentError

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#888888"  # Okabe and Ito's


def write_plot(rows: Sequence[Comparison], file: Path) -> None:
    """A bar for each ratio of speeds, its rounds as dots, must and aim as ticks. file: .svg, .png or .pdf.

    Raises ArgumentError for another kind of file.
    """
    import matplotlib
    from matplotlib.figure import Figure

    rows = [row for row in rows if row.unit == "tokens/s" and row.what != CEILING]
    with matplotlib.rc_context({"font.size": 11, "svg.hashsalt": "minfer", "svg.fonttype": "none"}):
        figure = Figure((10, 1.5 + 0.34 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        places = range(len(rows))
        axes.barh(places, [row.ratio for row in rows], 0.6, color=BLUE, label="median of the rounds")
        for place, row in zip(places, rows, strict=True):
            rounds = [a / b for a, b in zip(row.ours, row.theirs, strict=True)]
            axes.plot(rounds, [place] * len(rounds), ".", color="black", markersize=4)
            if goal := goal_of(row):
                axes.plot([goal.must] * 2, [place - 0.4, place + 0.4], color=ORANGE, linewidth=3)
                axes.plot([goal.aim] * 2, [place - 0.4, place + 0.4], color=ORANGE, linewidth=2, linestyle=":")
        axes.plot([], [], ".", color="black", label="each round")
        axes.plot([], [], color=ORANGE, linewidth=3, label="must")
        axes.plot([], [], color=ORANGE, linewidth=2, linestyle=":", label="aim")
        axes.axvline(1, color=GREY, linestyle="--", label="as fast as llama.cpp")
        names = [f"{row.preset or row.model}, {row.what}, {_threads(row.threads)}" for row in rows]
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.set_xlabel("tokens/s, minfer over llama.cpp")
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(frameon=False, loc="outside lower center", ncols=5)
        try:
            figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)
        except ValueError as error:
            raise ArgumentError(f"{file} cannot be a picture: {error}.") from None


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"
