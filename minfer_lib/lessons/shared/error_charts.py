"""Errors of quantization: as lines over something, and as one point a format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.ticker import LogLocator

from minfer_lib.lessons.shared.look import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Picture, new_axes, style

_LOOKS = ((BLUE, "o", "-"), (RED, "s", "--"), (GREEN, "^", "-."), (PURPLE, "D", ":"), (ORANGE, "v", "-"))
_KINDS = (("_0", BLUE, "o", "one scale"), ("_1", RED, "s", "scale and offset"), ("_K", GREEN, "^", "K-quants"))


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


def formats_picture(points: Mapping[str, tuple[float, float]]) -> Picture:
    """`points`: format -> (bits a weight, signal to noise in dB). A dashed line climbs 6.02 dB a bit."""
    with style():
        axes = new_axes(7.6, 4.2)
        for ending, colour, marker, kind in _KINDS:
            group = [point for name, point in points.items() if name.endswith(ending)]
            if group:
                axes.scatter(*zip(*group, strict=True), s=60, color=colour, marker=marker, label=kind)
        for name, (bits, snr) in points.items():
            left = name.endswith("_K")  # K-quants lie above the others: their names go to the other side
            axes.annotate(name, (bits, snr), (-8 if left else 8, 2 if left else -9), textcoords="offset points",
                          ha="right" if left else "left")  # fmt: skip
        bits, snr = min(points.values())
        last = max(bits for bits, _ in points.values())
        axes.plot([bits, last], [snr, snr + 6.02 * (last - bits)], "--", color=GREY, label="6.02 dB a bit")
        axes.set(xlabel="bits a weight", ylabel="signal to noise, dB")
        axes.grid(alpha=0.25)
        axes.margins(x=0.12)
        axes.legend(frameon=False, loc="lower right")
        told = ", ".join(f"{name} {bits:g} bits {snr:.1f} dB" for name, (bits, snr) in points.items())
        return Picture(axes.figure, f"Signal to noise against bits a weight: {told}.")
