"""Where the time of a token goes."""

from __future__ import annotations

from minfer_lib.engine.timing import Timing
from minfer_lib.lessons.shared.look import BLUE, GREEN, GREY, ORANGE, Picture, new_axes, style

_LOOKS = {  # a kind of time -> its title, its colour, and lines that tell it without one
    "matmul": ("matrix products", BLUE, ""),
    "attention": ("attention", ORANGE, "//"),
    "sampling": ("sampling", GREEN, "xx"),
    "rest": ("the rest", GREY, ".."),
}
_NAMES = {"attention": "scores and mix"}  # an operation that has its kind's name -> another


def time_picture(timing: Timing) -> Picture:
    """A bar a kind, and below it one an operation of the matrix products and of attention, in milliseconds a token."""
    bars = []  # (name, seconds, kind, whether it is all of the kind)
    for kind, seconds in timing.shares().items():
        bars.append((_LOOKS[kind][0], seconds, kind, True))
        if kind != "rest":
            bars += [(_NAMES.get(name, name), took, kind, False) for name, took in timing.of_kind(kind).items()]
    with style():
        axes = new_axes(7.6, 0.8 + 0.3 * len(bars))
        axes.figure.get_layout_engine().set(w_pad=0.2)  # a browser's letters may be wider than matplotlib's
        for row, (_, seconds, kind, whole) in enumerate(bars):
            span = 1e3 * seconds / timing.tokens
            _, colour, hatch = _LOOKS[kind]
            axes.barh(row, span, 0.8 if whole else 0.45, color=colour, hatch=hatch, alpha=1 if whole else 0.55)
            share = f"{seconds / timing.wall:.1%}"
            axes.annotate(share, (span, row), (4, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(bars)), [name for name, *_ in bars])
        for label, (*_, whole) in zip(axes.get_yticklabels(), bars, strict=True):
            label.set_fontweight("bold" if whole else "normal")
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.set_xlabel(f"ms a token; all of it: {1e3 * timing.wall / timing.tokens:.2f} ms")
        told = ", ".join(f"{kind} {seconds / timing.wall:.1%}" for kind, seconds in timing.shares().items())
        return Picture(axes.figure, f"Bars, shares of a token's time: {told}.")
