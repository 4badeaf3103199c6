"""How fast kernels go through weights, from the cache and from memory, beside what reading alone reaches."""

from __future__ import annotations

from collections.abc import Sequence

from minfer_lib.bench.dot_kernels import KernelSpeed
from minfer_lib.lessons.shared.look import BLUE, GREY, ORANGE, Picture, new_axes, style


def speeds_picture(speeds: Sequence[KernelSpeed]) -> Picture:
    """Two bars a kernel; a dashed line at the ceiling."""
    names, rows = [speed.isa for speed in speeds], range(len(speeds))
    ceiling = speeds[0].ceiling
    with style():
        axes = new_axes(7.6, 1.3 + 0.62 * len(speeds))
        cache = axes.barh([r - 0.19 for r in rows], [s.cache for s in speeds], 0.36, color=BLUE, label="from the cache")
        memory = axes.barh([r + 0.19 for r in rows], [s.memory for s in speeds], 0.36, color=ORANGE, hatch="//",
                           label="from memory")  # fmt: skip
        for bars in (cache, memory):
            axes.bar_label(bars, fmt="{:.3g}", padding=4)
        axes.axvline(ceiling, color=GREY, linestyle="--", label=f"reading alone, {ceiling:.3g}")
        axes.set_yticks(rows, names)
        axes.invert_yaxis()
        axes.set_xlabel("GB/s of weights, one thread")
        axes.margins(x=0.12)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        told = "; ".join(f"{s.isa} {s.cache:.3g} from the cache, {s.memory:.3g} from memory" for s in speeds)
        kind = speeds[0].format
        return Picture(axes.figure, f"Bars, {kind} weights in GB/s: {told}; reading alone reaches {ceiling:.3g}.")
