"""One quantized block, drawn: the values and what they decode to, the errors in steps, the codes."""

from __future__ import annotations

import html

import numpy as np

import minfer_lib as mf
from minfer_lib.lessons.lesson_02.quantized_block import QuantizedBlock
from minfer_lib.lessons.shared import svg
from minfer_lib.lessons.shared.look import BLUE, FIELD_ROLES, GREY, INK, RED, ROLES, Drawing, role_css

# At least 800 wide; a narrower page scrolls. Column i of 32 stands under the playground's slider i.
WIDTH, LEFT, RIGHT = 800, 56, 8
COLUMN = (WIDTH - LEFT - RIGHT) / 32
_VALUES, _ERRORS = (26, 206), (248, 338)  # top and bottom of the two plots
_CODES, _INDEX, _HEIGHT = 374, 408, 416
_REACH = 1.1  # steps: how far the error plot reaches


def block_picture(block: QuantizedBlock, limit: float | None = None) -> Drawing:
    """`limit`: the largest value that the plot shows; None: the block's own."""
    limit = limit or 1.05 * float(max(np.abs(block.x).max(), np.abs(block.values).max())) or 1.0
    parts = [*_value_plot(block, limit), *_error_plot(block), *_code_rows(block)]
    return svg.drawing(parts, WIDTH, _HEIGHT, described(block), widest=1000)


def described(block: QuantizedBlock) -> str:
    """The picture in words."""
    offset = "" if block.m is None else f", m {block.m:.6g}"
    return (
        f"A block of 32 values as {block.format}: d {block.d:.6g}{offset}. Codes {', '.join(map(str, block.codes))}. "
        f"The largest error is {abs(block.steps[block.worst]):.3f} steps, at value {block.worst}."
    )


def block_numbers(block: QuantizedBlock) -> str:
    """HTML: the block in numbers, and its bytes with each field underlined in its colour."""
    named = [("d", f"{block.d:.6g}")] + ([] if block.m is None else [("m", f"{block.m:.6g}")])
    worst = float(abs(block.errors[block.worst]))
    named += [
        ("largest error", f"{worst:.4g} = {abs(block.steps[block.worst]):.3f} steps, at value {block.worst}"),
        ("signal to noise", _decibels(block.snr)),
        ("size", f"{block.raw.size} bytes, {8 * block.raw.size / 32:g} bits a value"),
    ]
    numbers = " · ".join(f"{name} <b>{html.escape(value)}</b>" for name, value in named)
    return f'<div style="line-height:1.6">{numbers}<br>{_bytes(block)}</div>'


def _decibels(snr: float) -> str:
    return {float("inf"): "no error", float("-inf"): "all zeros"}.get(snr, f"{snr:.1f} dB")


def _bytes(block: QuantizedBlock) -> str:
    shown = []
    for field in mf.FORMATS[block.format].fields:
        role = ROLES[FIELD_ROLES[field.name]]
        part = block.raw[field.offset : field.offset + field.dtype.itemsize * field.count]
        shown.append(
            f'<span style="{role_css(role)};margin-right:6px" title="{role.what}">'
            f"<b>{field.name}</b> {part.tobytes().hex(' ')}</span>"
        )
    return f'<code style="white-space:normal;background:none">{" ".join(shown)}</code>'


def _x(i: int) -> float:
    return LEFT + COLUMN * (i + 0.5)


def _line(y: float, extra: str) -> str:
    return f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" {extra}/>'


def _ticks(height, marks) -> list[str]:
    return [svg.text(LEFT - 8, height(mark) + 4, label, "end") for mark, label in marks]


def _short(value: float) -> str:
    return f"{value:.0f}" if 100 <= value < 1e5 else f"{value:.3g}"


def _scale(span: tuple[int, int], reach: float):
    """A function from a value in [-reach, reach] to a height in the picture."""
    top, bottom = span
    return lambda value: (top + bottom) / 2 - np.clip(value, -reach, reach) / reach * (bottom - top) / 2


def _value_plot(block: QuantizedBlock, limit: float) -> list[str]:
    height = _scale(_VALUES, limit)
    grid = f"; lines: the {len(block.levels)} levels" if len(block.levels) else "; 255 levels, too close to draw"
    parts = [svg.text(LEFT, 14, f"○ value, ▬ decoded{grid}")]
    parts += [_line(height(level), f'stroke="{GREY}" stroke-opacity="0.45"') for level in block.levels]
    parts.append(_line(height(0), f'stroke="{INK}"'))
    parts += _ticks(height, [(limit, _short(limit)), (0, "0"), (-limit, f"−{_short(limit)}")])
    for i in range(32):
        y, decoded = height(block.x[i]), height(block.values[i])
        parts.append(
            f'<line x1="{_x(i)}" x2="{_x(i)}" y1="{y:.1f}" y2="{decoded:.1f}" stroke="{RED}" stroke-width="2"/>'
        )
        parts.append(f'<rect x="{_x(i) - 8}" y="{decoded - 2:.1f}" width="16" height="4" fill="{BLUE}"/>')
        parts.append(f'<circle cx="{_x(i)}" cy="{y:.1f}" r="4" fill="none" stroke="{INK}" stroke-width="1.5"/>')
    return parts


def _error_plot(block: QuantizedBlock) -> list[str]:
    height = _scale(_ERRORS, _REACH)
    parts = [svg.text(LEFT, _ERRORS[0] - 12, "error in steps; dashed: half a step; ✕: beyond it")]
    parts += [_line(height(bound), f'stroke="{INK}" stroke-dasharray="5 4"') for bound in (-0.5, 0.5)]
    parts.append(_line(height(0), f'stroke="{INK}"'))
    parts += _ticks(height, [(1, "1"), (0.5, "½"), (0, "0"), (-0.5, "−½"), (-1, "−1")])
    for i, step in enumerate(block.steps):
        low, high = height(min(step, 0)), height(max(step, 0))
        beyond = abs(step) > 0.5
        parts.append(
            f'<rect x="{_x(i) - 6}" y="{high:.1f}" width="12" height="{max(low - high, 0):.1f}" '
            f'fill="{RED if beyond else BLUE}"/>'
        )
        if beyond:
            parts.append(svg.text(_x(i), height(0) + (14 if step > 0 else -5), "✕", "middle"))
    return parts


def _code_rows(block: QuantizedBlock) -> list[str]:
    """Codes of three digits are wider than a column, so every other one stands lower."""
    stagger = 7 if block.format == "Q8_0" else 0
    top, height = _CODES - 15 - stagger, 22 + 2 * stagger
    ground = f'fill="{BLUE}" fill-opacity="0.25"'
    parts = [f'<rect x="{LEFT}" y="{top}" width="{WIDTH - LEFT - RIGHT}" height="{height}" {ground}/>']
    parts.append(svg.text(LEFT - 8, _CODES, "code", "end"))
    for i, code in enumerate(block.codes):
        parts.append(svg.text(_x(i), _CODES + stagger * (2 * (i % 2) - 1), str(code).replace("-", "−"), "middle"))
        parts.append(svg.text(_x(i), _INDEX, i, "middle", size=11))
    return [*parts, svg.text(LEFT - 8, _INDEX, "value no.", "end", size=11)]
