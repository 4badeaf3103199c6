"""One statement of a warp, drawn: which of its 32 lanes do it, what each gets, and from where.

Eight lanes stand in a line: the eight that share a super-block of 256.
"""

from __future__ import annotations

import html
from collections import Counter

import numpy as np

from minfer_lib.gpu.warp_memory import LANES, Access
from minfer_lib.gpu.warp_sim import Step
from minfer_lib.lessons.shared import svg
from minfer_lib.lessons.shared.look import BLUE, GREEN, GREY, ORANGE, Drawing
from minfer_lib.lessons.shared.wording import counted, shown

WIDTH = 518
_LEFT, _PER_LINE, _CELL, _ROW, _SHUFFLED = 34, 8, 60, 22, 34  # of lane numbers; lanes a line; pixels
_MASK = 14  # of a lane in the mask
_MOST = 4  # registers that are drawn; the others are told


def lanes_picture(step: Step) -> Drawing:
    """The mask of one step, the registers that it changed, and the memory that it asked for."""
    parts, y = _mask(step), 54
    names = list(step.changed)
    for name in names[:_MOST]:
        parts += _register(name, step.changed[name], step, y)
        y += 26 + 4 * ((_SHUFFLED if step.sources is not None else _ROW) + 2) + 4
    if names[_MOST:]:
        parts.append(svg.text(_LEFT, y + 14, f"and {', '.join(map(_name, names[_MOST:]))}", size=11))
        y += 22
    for told, times in Counter(map(access_told, step.accesses)).items():
        parts.append(svg.text(_LEFT, y + 14, told if times == 1 else f"{times} × {told}"))
        y += 20
    return svg.drawing(parts, WIDTH, y + 4, _told(step), widest=WIDTH + 100)


def access_told(access: Access) -> str:
    """ "load: 32 lanes, 4 bytes each of w: 128 bytes in 4 sectors"."""
    n = int(access.active.sum())
    asked = f"{access.kind}: {counted(n, 'lane')}, {access.n_bytes} bytes each"
    if access.kind.startswith("shared"):
        return f"{asked}, of the block's own memory"
    used, sectors = access.used, access.sectors
    return f"{asked}, of {access.array}: {used} different bytes, {counted(sectors, 'sector')} of 32 fetched"


def _mask(step: Step) -> list[str]:
    """32 small boxes, filled where the lane does the statement."""
    parts = [svg.text(_LEFT, 14, f"{counted(int(step.active.sum()), 'lane')} of {LANES} do it")]
    for lane in range(LANES):
        x = _LEFT + lane * _MASK + lane // _PER_LINE * 4
        look = f'fill="{GREEN}" fill-opacity=".65"' if step.active[lane] else f'fill="none" stroke="{GREY}"'
        parts.append(f'<rect x="{x}" y="22" width="{_MASK - 3}" height="{_MASK - 3}" {look}/>')
        if lane % _PER_LINE == 0:
            parts.append(svg.text(x, 48, str(lane), size=11, opacity=0.75))
    return parts


def _register(name: str, values: np.ndarray, step: Step, y: int) -> list[str]:
    height = _ROW if step.sources is None else _SHUFFLED
    parts = [
        svg.text(_LEFT, y + 14, f"<tspan font-weight='bold'>{html.escape(_name(name))}</tspan> {values.dtype}"),
    ]
    strength = _strength(values)
    for lane, value in enumerate(values):
        line, at = divmod(lane, _PER_LINE)
        x, top = _LEFT + at * _CELL, y + 20 + line * (height + 2)
        if at == 0:
            parts.append(svg.text(_LEFT - 6, top + 15, str(lane), "end", size=11, opacity=0.75))
        on = bool(step.active[lane])
        colour = GREY if not on or not value else ORANGE if value < 0 else BLUE
        look = f'fill="{colour}" fill-opacity="{strength[lane] if on else 0:.2f}"'
        edge = "" if on else f' stroke="{GREY}" stroke-dasharray="2 3"'
        parts.append(f'<rect x="{x}" y="{top}" width="{_CELL - 3}" height="{height}" {look}{edge}/>')
        if on:
            text = lane_value(value)
            parts.append(svg.text(x + (_CELL - 3) / 2, top + 15, text, "middle", size=12 if len(text) < 9 else 11))
            if step.sources is not None and step.sources[lane] != lane:
                parts.append(
                    svg.text(x + (_CELL - 3) / 2, top + 29, f"← {step.sources[lane]}", "middle", size=11, opacity=0.8)
                )
    return parts


def _strength(values: np.ndarray) -> np.ndarray:
    """How strong each lane's ground is: the farthest from zero is the strongest."""
    if values.dtype.kind in "ub":
        return np.where(values != 0, 0.25, 0.08)
    far = np.abs(np.where(np.isfinite(values.astype(np.float64)), values, 0).astype(np.float64))
    return np.where(values == 0, 0.08, 0.12 + 0.45 * far / (far.max() or 1.0))


def lane_value(value: object) -> str:
    """As in the register pictures; words, which hold four bytes, in hexadecimal."""
    if isinstance(value, np.bool_):
        return "yes" if value else "no"
    return f"{value:08x}" if isinstance(value, np.unsignedinteger) else shown(value)


def _name(name: str) -> str:
    return name if len(name) <= 52 else name[:51] + "…"


def _told(step: Step) -> str:
    idle = np.flatnonzero(~step.active)
    told = [f"{counted(int(step.active.sum()), 'lane')} of {LANES} are active"]
    if 0 < idle.size:
        told[0] += f", not {_ranges(idle)}"
    for name, values in step.changed.items():
        shown_lanes = ", ".join(lane_value(v) if on else "–" for v, on in zip(values, step.active, strict=True))
        told.append(f"{name}: {shown_lanes}")
    if step.sources is not None:
        told.append(f"lane 0 received the value of lane {step.sources[0]}")
    told += map(access_told, step.accesses)
    return "; ".join(told) + "."


def _ranges(lanes: np.ndarray) -> str:
    """ "0 to 3, 8"."""
    runs = np.split(lanes, np.flatnonzero(np.diff(lanes) > 1) + 1)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)
