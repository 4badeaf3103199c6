"""How far each format is off, against its bits a weight."""

from __future__ import annotations

from collections.abc import Mapping

from minfer_lib.lessons.shared.look import BLUE, GREEN, GREY, ORANGE, RED, Picture, new_axes, style

_KINDS = (
    ("_0", BLUE, "o", "one scale"),
    ("_1", RED, "s", "scale and offset"),
    ("_NL", ORANGE, "D", "levels from a table"),
    ("_K", GREEN, "^", "K-quants"),
)


def formats_picture(points: Mapping[str, tuple[float, float]]) -> Picture:
    """`points`: format -> (bits a weight, signal to noise in dB). A dashed line climbs 6.02 dB a bit."""
    with style():
        axes = new_axes(7.6, 4.2)
        for ending, colour, marker, kind in _KINDS:
            group = [point for name, point in points.items() if name.endswith(ending)]
            if group:
                axes.scatter(*zip(*group, strict=True), s=60, color=colour, marker=marker, label=kind)
        for name, (bits, snr) in points.items():
            left = name.endswith(("_K", "_NL"))  # these lie above the others: their names go to the other side
            axes.annotate(name, (bits, snr), (-8 if left else 8, 2 if name.endswith("_K") else -9),
                          textcoords="offset points", ha="right" if left else "left")  # fmt: skip
        bits, snr = min(points.values())
        last = max(bits for bits, _ in points.values())
        axes.plot([bits, last], [snr, snr + 6.02 * (last - bits)], "--", color=GREY, label="6.02 dB a bit")
        axes.set(xlabel="bits a weight", ylabel="signal to noise, dB")
        axes.grid(alpha=0.25)
        axes.margins(x=0.12)
        axes.legend(frameon=False, loc="lower right")
        told = ", ".join(f"{name} {bits:g} bits {snr:.1f} dB" for name, (bits, snr) in points.items())
        return Picture(axes.figure, f"Signal to noise against bits a weight: {told}.")
