"""What each preset costs in perplexity, against its bits a weight."""

from __future__ import annotations

from collections.abc import Mapping

from minfer_lib.lessons.shared.look import BLUE, GREY, RED, Picture, new_axes, style


def presets_picture(points: Mapping[str, tuple[float, float, float]]) -> Picture:
    """`points`: preset -> (bits a weight, rise of the perplexity in %, one standard error of that rise)."""
    with style():
        axes = new_axes(7.6, 3.8)
        axes.axhline(0, color=GREY, linestyle="--")
        for k_quant, colour, marker, kind in ((True, BLUE, "^", "K-quants"), (False, RED, "o", "blocks of 32")):
            group = {name: point for name, point in points.items() if ("_K" in name) == k_quant}
            if group:
                bits, rise, error = zip(*group.values(), strict=True)
                axes.errorbar(bits, rise, error, fmt=marker, color=colour, capsize=4, markersize=7, label=kind)
        for name, (bits, rise, error) in points.items():
            side = 1 if "_K" in name else -1  # names above their bars and below: neighbours do not collide
            at = (bits, rise + side * error)
            axes.annotate(name, at, (0, 6 * side), textcoords="offset points", ha="center",
                          va="bottom" if side > 0 else "top")  # fmt: skip
        axes.set(xlabel="bits a weight, of the whole file", ylabel="perplexity over F16's, %")
        axes.margins(x=0.08, y=0.14)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, loc="upper right")
        told = ", ".join(
            f"{n} {bits:.2f} bits {rise:+.2f} ± {error:.2f} %" for n, (bits, rise, error) in points.items()
        )
        return Picture(axes.figure, f"Rise of the perplexity against bits a weight: {told}.")
