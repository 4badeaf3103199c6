"""One operation on registers, drawn: what goes in, what comes out, lane above lane.

A row is 128 bits, 16 bytes, whatever the lanes are: so a wide lane stands under the narrow ones that its bits cover.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from functools import cache

import numpy as np

from minfer_lib.lessons.shared import svg
from minfer_lib.lessons.shared.look import BLUE, GREY, ORANGE, RED, Drawing
from minfer_lib.lessons.shared.wording import shown
from minfer_lib.simd.instruction import INSTRUCTIONS
from minfer_lib.simd.step import KernelStep, KernelTrace, Operand

_LEFT, _BYTE, _GAP, _ROW = 34, 27, 4, 22  # of lane numbers; a byte; between groups of four bytes; height of lanes
WIDTH = _LEFT + 16 * _BYTE + 3 * _GAP + 2
_LONG = 52  # letters of an expression that are shown


def step_picture(trace: KernelTrace, step: KernelStep) -> Drawing:
    """The inputs and the output of one step. A lane's ground is blue above zero, orange below, strong if far off.

    A lane that did not hold its result has an edge and a filled corner.
    """
    parts, y, told = [], 4, []
    for text, operand in _shown_inputs(trace, step):
        parts += _operand(operand, text, y, "in", None)
        told.append(_told(operand, text))
        y += _height(operand)
    if step.output is not None:
        name = step.output.name or _expression(step)
        parts += [_rule(y), *_operand(step.output, name, y + 8, "out", step.lost)]
        told.append("out comes " + _told(step.output, name))
        y += 8 + _height(step.output)
    if step.lost is not None:
        told.append(flagged(step))
    return svg.drawing(parts, WIDTH, y, f"{_expression(step)}: " + "; ".join(told) + ".", widest=WIDTH + 100)


def flagged(step: KernelStep) -> str:
    """Which lanes did not hold their result; "" where all did."""
    if step.lost is None:
        return ""
    lanes = np.flatnonzero(step.lost)
    first = ", ".join(map(str, lanes[:6])) + (" …" if lanes.size > 6 else "")
    how = "saturated" if step.saturated else "wrapped around"
    return f"lane{'s' if lanes.size > 1 else ''} {first}: the result did not fit and {how}"


def _shown_inputs(trace: KernelTrace, step: KernelStep) -> Iterator[tuple[str, Operand]]:
    """(what it is called, operand); the names of types are left out, and memory is one with the offset into it."""
    memory = None
    for operand in step.inputs:
        if operand.type.startswith("array"):
            memory = operand
        elif memory is not None:
            yield f"memory of {memory.value.size:,} bytes, from byte {operand.value:,} on", memory
            memory = None
        elif not operand.type.startswith("name of"):
            yield named(trace, operand), operand


@cache
def _meanings() -> dict[str, str]:
    return {i.name: (i.meaning.__doc__ or "").strip().split("\n")[0].replace("`", "") for i in INSTRUCTIONS.values()}


_OPERATORS = {
    "add": "a + b, lane by lane", "sub": "a − b, lane by lane", "mul": "a · b, lane by lane",
    "and": "the bits that both have", "or": "the bits that either has", "xor": "the bits in which they differ",
    "lshift": "bits moved up, within each lane", "rshift": "bits moved down, within each lane",
}  # fmt: skip


def meaning(step: KernelStep) -> str:
    """What the operation does, in a line."""
    return _OPERATORS.get(step.name) or _meanings().get(step.name, "")


def named(trace: KernelTrace, operand: Operand) -> str:
    """The variable that holds the operand, or the expression that made it; "" where it is known by neither."""
    if operand.name:
        return operand.name
    return "" if operand.step is None else _expression(trace.steps[operand.step])


def _expression(step: KernelStep) -> str:
    text = " ".join(step.text[slice(*step.columns)].split()) or step.name
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"


def _is_register(operand: Operand) -> bool:
    return isinstance(operand.value, np.ndarray) and operand.value.ndim == 1 and not operand.type.startswith("array")


def _height(operand: Operand) -> int:
    if not _is_register(operand):
        return 26
    return 24 + (_ROW + 2) * -(-operand.value.nbytes // 16) + 6


def _operand(operand: Operand, name: str, y: int, way: str, lost: np.ndarray | None) -> list[str]:
    if not _is_register(operand):
        return [svg.text(_LEFT, y + 16, _scalar(operand, name))]
    title = f"<tspan font-weight='bold'>{html.escape(name)}</tspan> {operand.type}"
    parts = [svg.text(_LEFT, y + 15, title), svg.text(_LEFT - 6, y + 15, way, "end", opacity=0.75)]
    return parts + lanes(operand.value, y + 22, lost)


def _scalar(operand: Operand, name: str) -> str:
    if isinstance(operand.value, np.ndarray):
        return name
    kind = "a whole number" if operand.type == "int64" else operand.type
    return f"{html.escape(name)}{' = ' if name else ''}{shown(operand.value)}, {kind}"


def lanes(values: np.ndarray, y: int, lost: np.ndarray | None = None, label: str | None = None) -> list[str]:
    """SVG from y on, `_ROW` + 2 a row; `label`: at the left of each row instead of its first lane's number."""
    size, parts = values.dtype.itemsize, []
    finite = np.abs(np.where(np.isfinite(values), values, 0).astype(np.float64))
    most = finite.max() or 1.0
    for k, value in enumerate(values):
        row, at = divmod(k * size, 16)
        x, top = _LEFT + at * _BYTE + at // 4 * _GAP, y + row * (_ROW + 2)
        if at == 0:
            parts.append(svg.text(_LEFT - 6, top + 15, label or str(k), "end", size=11, opacity=0.75))
        colour = GREY if value == 0 else ORANGE if value < 0 else BLUE
        opacity = 0.1 if value == 0 else 0.12 + 0.45 * finite[k] / most
        flag = lost is not None and lost[k]
        edge = f' stroke="{RED}" stroke-width="2.5"' if flag else ""
        width = size * _BYTE - 2
        parts.append(
            f'<rect x="{x}" y="{top}" width="{width}" height="{_ROW}" fill="{colour}" '
            f'fill-opacity="{opacity:.2f}"{edge}/>'
        )
        if flag:
            parts.append(f'<path d="M{x + width - 9} {top}h9v9z" fill="{RED}"/>')
        parts.append(svg.text(x + width / 2, top + 15, shown(value), "middle", size=11 if size == 1 else 12))
    return parts


def _told(operand: Operand, name: str) -> str:
    if not _is_register(operand):
        return html.unescape(_scalar(operand, name))
    return f"{name} {operand.type}: {', '.join(map(shown, operand.value))}"


def _rule(y: int) -> str:
    return f'<line x1="{_LEFT}" x2="{WIDTH}" y1="{y + 1}" y2="{y + 1}" stroke="{GREY}"/>'
