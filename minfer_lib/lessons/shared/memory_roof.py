"""Decode speed under the roof that memory sets."""

from __future__ import annotations

from minfer_lib.bench.speed import DecodeSpeed
from minfer_lib.lessons.shared.look import BLUE, GREY, Picture, new_axes, style
from minfer_lib.lessons.shared.wording import counted


def roof_picture(speed: DecodeSpeed) -> Picture:
    """Two bars in tokens/s: measured, and what reading the weights at the ceiling's speed would allow."""
    roof = speed.tokens_per_second / speed.share_of_ceiling
    with style():
        axes = new_axes(7, 1.9)
        bars = axes.barh(["roof", "measured"], [roof, speed.tokens_per_second], color=[GREY, BLUE], height=0.6)
        bars[0].set(hatch="//", fill=False, edgecolor=GREY)
        axes.bar_label(bars, [f"{roof:.1f}", f"{speed.tokens_per_second:.1f}"], padding=4)
        axes.set_xlabel(f"tokens/s with {counted(speed.threads, 'thread')}")
        axes.margins(x=0.12)
        return Picture(
            axes.figure,
            f"Bar chart: {speed.tokens_per_second:.1f} tokens per second measured, {roof:.1f} possible if the weights "
            f"were read at the memory's {speed.ceiling_gigabytes_per_second:.1f} GB/s.",
        )
