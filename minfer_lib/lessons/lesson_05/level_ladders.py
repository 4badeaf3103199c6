"""A super-block's weights, and for each of its groups the ladder of levels that a code can choose from."""

from __future__ import annotations

import numpy as np

from minfer_lib.lessons.shared.look import BLUE, GREEN, GREY, PLOT_INK, Picture, new_axes, style
from minfer_lib.lessons.shared.super_block import SuperBlock

_MANY = 16  # more levels than these are drawn as a bar


def ladders_picture(block: SuperBlock, x: np.ndarray) -> Picture:
    """`x`: f32[256], the weights that were quantized. Under each group stands its scale, and its min if it has one."""
    x = np.asarray(x, np.float32).reshape(block.codes.shape)
    groups, size = x.shape
    with style():
        axes = new_axes(8.6, 4.2)
        axes.axhline(0, color=GREY, linewidth=0.8)
        for g, levels in enumerate(block.levels):
            left, right = g + 0.08, g + 0.92
            if len(levels) <= _MANY:
                axes.hlines(levels, left, right, color=BLUE, linewidth=1.2)
            else:
                low, high = float(levels.min()), float(levels.max())
                axes.bar(g + 0.5, high - low, 0.84, low, color=BLUE, alpha=0.25, hatch="---", edgecolor=BLUE)
            if block.dmin:
                axes.hlines(levels[0], left, right, color=GREEN, linewidth=3.5)
            at = g + 0.14 + 0.72 * (np.arange(size) + 0.5) / size
            axes.plot(at, x[g], "o", markersize=3.5, markerfacecolor="none", color=PLOT_INK, markeredgewidth=0.9)
        axes.set_xlim(-0.05, groups + 0.05)
        axes.set_xticks(np.arange(groups) + 0.5, _labels(block), linespacing=1.3)
        axes.tick_params(axis="x", length=0)
        under = "each group's scale s, under it its min m" if block.dmin else "each group's scale s"
        axes.set(xlabel=under, ylabel="weight")
        _legend(axes, block)
        return Picture(axes.figure, _told(block, x))


def _labels(block: SuperBlock) -> list[str]:
    if not block.dmin:
        return [f"{scale}".replace("-", "−") for scale in block.scales]
    return [f"{scale}\n{low}" for scale, low in zip(block.scales, block.mins, strict=True)]


def _legend(axes, block: SuperBlock) -> None:
    n_levels = block.levels.shape[1]
    axes.plot([], [], "o", markerfacecolor="none", color=PLOT_INK, markersize=4, label="weight")
    axes.plot([], [], color=BLUE, label=f"{n_levels} levels, d · s apart")
    if block.dmin:
        axes.plot([], [], color=GREEN, linewidth=3.5, label="level of code 0: −dmin · m")
    axes.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1), columnspacing=1.2)


def _told(block: SuperBlock, x: np.ndarray) -> str:
    dmin = f", dmin {block.dmin:.4g}" if block.dmin else ""
    groups = "; ".join(
        f"{g}: scale {block.scales[g]}"
        + (f", min {block.mins[g]}" if block.dmin else "")
        + f", {min(levels[0], levels[-1]):.3g} to {max(levels[0], levels[-1]):.3g}"
        for g, levels in enumerate(block.levels)
    )
    return (
        f"Level ladders of a {block.format} super-block: {x.size} weights in {len(x)} groups, "
        f"{block.levels.shape[1]} levels in each. d {block.d:.4g}{dmin}. Groups, with their levels: {groups}."
    )
