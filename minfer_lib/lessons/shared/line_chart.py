"""Lines over something, each told apart by its colour, its marks and its dashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.ticker import LogLocator

from minfer_lib.lessons.shared.look import BLUE, GREEN, ORANGE, PURPLE, RED, Picture, new_axes, style

_LOOKS = ((BLUE, "o", "-"), (RED, "s", "--"), (GREEN, "^", "-."), (PURPLE, "D", ":"), (ORANGE, "v", "-"))


def lines_picture(
    x: Sequence[float], lines: Mapping[str, Sequence[float]], x_label: str, y_label: str, log: str = ""
) -> Picture:
    """`lines`: name -> one y for each x, at most five. `log`: the axes with a logarithmic scale, "x", "y" or "xy"."""
    with style():
        axes = new_axes(7.6, 3.4)
        if "x" in log:
            axes.set_xscale("log", base=2)
            axes.set_xticks(x, [f"{at:g}" for at in x], minor=False)
            axes.minorticks_off()
        if "y" in log:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("")
        for (name, y), (colour, marker, dash) in zip(lines.items(), _LOOKS, strict=False):
            axes.plot(x, y, dash, color=colour, marker=marker, markersize=5, label=name)
        axes.set(xlabel=x_label, ylabel=y_label)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        told = "; ".join(f"{name} from {y[0]:.3g} to {y[-1]:.3g}, at most {max(y):.3g}" for name, y in lines.items())
        return Picture(axes.figure, f"Line chart of {y_label} over {x_label}, {x[0]:g} to {x[-1]:g}. {told}.")
