"""Where the time of a token goes."""

from __future__ import annotations

from minfer_lib.engine.timing import PARTS, Timing
from minfer_lib.lessons.shared.look import BLUE, GREEN, GREY, ORANGE, Picture, new_axes, style

_LOOKS = {  # a part -> its title, its colour, and lines that tell it without one
    "matmul": ("matrix products", BLUE, ""),
    "attention": ("attention", ORANGE, "//"),
    "sampling": ("sampling", GREEN, "xx"),
    "rest": ("the rest", GREY, ".."),
}
_STEPS = {"attention": "scores and mix"}  # a step that has its part's name -> another


def time_picture(timing: Timing) -> Picture:
    """A bar a part, and below it one a step of the matrix products and of attention, in milliseconds a token."""
    bars = []  # (name, seconds, part, whether it is a part of its own)
    for part, seconds in timing.parts().items():
        bars.append((_LOOKS[part][0], seconds, part, True))
        if part != "rest":
            bars += [
                (_STEPS.get(step, step), timing.steps[step], part, False)
                for step in PARTS[part]
                if step in timing.steps
            ]
    with style():
        axes = new_axes(7.6, 0.8 + 0.3 * len(bars))
        axes.figure.get_layout_engine().set(w_pad=0.2)  # a browser's letters may be wider than matplotlib's
        for row, (_, seconds, part, whole) in enumerate(bars):
            span = 1e3 * seconds / timing.tokens
            _, colour, hatch = _LOOKS[part]
            axes.barh(row, span, 0.8 if whole else 0.45, color=colour, hatch=hatch, alpha=1 if whole else 0.55)
            share = f"{seconds / timing.wall:.1%}"
            axes.annotate(share, (span, row), (4, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(bars)), [name for name, *_ in bars])
        for label, (*_, whole) in zip(axes.get_yticklabels(), bars, strict=True):
            label.set_fontweight("bold" if whole else "normal")
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.set_xlabel(f"ms a token; all of it: {1e3 * timing.wall / timing.tokens:.2f} ms")
        told = ", ".join(f"{part} {seconds / timing.wall:.1%}" for part, seconds in timing.parts().items())
        return Picture(axes.figure, f"Bars, shares of a token's time: {told}.")
