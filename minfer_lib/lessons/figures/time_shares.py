"""Where the time of a token goes."""

from __future__ import annotations

from minfer_lib.lessons.figures.look import BLUE, GREEN, GREY, ORANGE, Picture, new_axes, style
from minfer_lib.timing import PARTS, Timing

_LOOKS = {"matmul": (BLUE, ""), "attention": (ORANGE, "//"), "sampling": (GREEN, "xx"), "rest": (GREY, "..")}


def time_picture(timing: Timing) -> Picture:
    """A bar a part, and one a step of the matrix products and of attention, in milliseconds a token."""
    bars = []  # (name, seconds, part)
    for part, seconds in timing.parts().items():
        bars.append((part, seconds, part))
        if part != "rest":
            bars += [(f"    {step}", timing.steps[step], part) for step in PARTS[part]]
    spans = [1e3 * seconds / timing.tokens for _, seconds, _ in bars]
    with style():
        axes = new_axes(7.6, 0.8 + 0.3 * len(bars))
        axes.figure.get_layout_engine().set(w_pad=0.2)  # a browser's letters may be wider than matplotlib's
        for row, ((name, _, part), span) in enumerate(zip(bars, spans, strict=True)):
            colour, hatch = _LOOKS[part]
            step = name.startswith(" ")
            axes.barh(row, span, 0.5 if step else 0.8, color=colour, hatch=hatch, alpha=0.55 if step else 1)
            share = span * timing.tokens / 1e3 / timing.wall
            axes.annotate(f"{share:.1%}", (span, row), (4, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(bars)), [name.strip() for name, _, _ in bars])
        for label, (name, _, _) in zip(axes.get_yticklabels(), bars, strict=True):
            label.set_fontweight("normal" if name.startswith(" ") else "bold")
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.set_xlabel(f"ms a token; all of it: {1e3 * timing.wall / timing.tokens:.2f} ms")
        told = ", ".join(f"{part} {seconds / timing.wall:.1%}" for part, seconds in timing.parts().items())
        return Picture(axes.figure, f"Bars, shares of a token's time: {told}.")
