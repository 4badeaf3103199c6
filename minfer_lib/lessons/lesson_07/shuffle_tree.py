"""The sum over a warp's 32 lanes as a tree: five shuffles, each of which halves the sums that still count."""

from __future__ import annotations

from collections.abc import Sequence

from minfer_lib.gpu.warp_sim import Step
from minfer_lib.lessons.shared import svg
from minfer_lib.lessons.shared.look import BLUE, GREY, ORANGE, Drawing
from minfer_lib.lessons.shared.wording import shown

_LANE, _LEVEL, _LEFT, _TOP, _WIDTH = 22, 46, 84, 36, 800


def shuffle_tree(steps: Sequence[Step]) -> Drawing:
    """steps: those in which a warp adds to its sums what it shuffles down, in order.

    A filled lane is one whose sum still counts; grey lines are its own value, orange ones what it receives.
    """
    (last,) = steps[-1].changed.values()
    by = [int(step.sources[0]) for step in steps]
    height = _TOP + len(steps) * _LEVEL + 30
    parts = [
        svg.text(_LEFT - 16, 14, "lane", "end"),
        *(svg.text(_x(lane), 14, str(lane), "middle") for lane in range(0, 32, 4)),
    ]
    for level, counts in enumerate([32, *by]):
        y = _TOP + level * _LEVEL
        parts.append(svg.text(_LEFT - 16, y + 4, f"down by {by[level]}" if level < len(by) else "the sum", "end"))
        for lane in range(32):
            look = f'fill="{BLUE}"' if lane < counts else f'fill="none" stroke="{GREY}" opacity=".6"'
            parts.append(f'<circle cx="{_x(lane)}" cy="{y}" r="5" {look}/>')
    for level, distance in enumerate(by):
        y = _TOP + level * _LEVEL
        for lane in range(distance):
            for start, colour in ((lane, GREY), (lane + distance, ORANGE)):
                line = f"M{_x(start)} {y + 5}L{_x(lane)} {y + _LEVEL - 5}"
                parts.append(f'<path d="{line}" stroke="{colour}" stroke-width="1.4"/>')
    parts.append(svg.text(_x(0) - 6, height - 8, shown(last[0])))
    told = f"{len(by)} shuffles, down by {', '.join(map(str, by))}; lane 0 then holds {shown(last[0])}."
    return svg.drawing(parts, _WIDTH, height, f"The sum over 32 lanes as a tree: {told}")


def _x(lane: int) -> float:
    return _LEFT + lane * _LANE
