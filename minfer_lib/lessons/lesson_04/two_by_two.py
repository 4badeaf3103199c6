"""Two rows times two rows in one instruction: what SMMLA (i8mm) computes."""

from __future__ import annotations

import numpy as np

from minfer_lib.lessons.shared import svg
from minfer_lib.lessons.shared.look import BLUE, GREY, ORANGE, Drawing
from minfer_lib.lessons.shared.wording import shown

_CELL, _ROW = 36, 26
_BLOCK = 8 * _CELL
_TOP, _RIGHT = 26, _BLOCK + 44
_WIDTH, _HEIGHT = _RIGHT + 336, _TOP + 4 * (_ROW + 4) + 22


def two_by_two_picture(w: np.ndarray, a: np.ndarray) -> Drawing:
    """w, a: int8[2, 8], two rows of weights and two of activations -> the four dot products of their pairs."""
    w, a = np.asarray(w, int), np.asarray(a, int)
    out = w @ a.T
    names = ("w, row 0", "w, row 1", "a, token 0", "a, token 1")
    parts = [
        svg.text(_BLOCK / 2 + 80, 16, "two registers of 128 bits", "middle"),
        svg.text(_RIGHT + 200, 16, "one result", "middle"),
    ]
    for i, (name, row) in enumerate(zip(names, [*w, *a], strict=True)):
        y = _TOP + i * (_ROW + 4) + (10 if i > 1 else 0)
        parts.append(svg.text(72, y + 18, name, "end"))
        for j, value in enumerate(row):
            parts.append(svg.box(80 + j * _CELL, y, _CELL - 2, _ROW, BLUE if i < 2 else ORANGE, (0.2, 0.45)[i % 2]))
            parts.append(svg.text(80 + (j + 0.5) * _CELL, y + 18, shown(value), "middle"))
    for o in range(2):
        parts.append(svg.text(_RIGHT + 100, _TOP + 48 + o * 34, f"w, row {o}", "end"))
        for t in range(2):
            x, y = _RIGHT + 110 + t * 110, _TOP + 30 + o * 34
            parts += [svg.box(x, y, 104, _ROW, GREY, 0.25), svg.text(x + 52, y + 18, shown(out[o, t]), "middle")]
    for t in range(2):
        parts.append(svg.text(_RIGHT + 162 + t * 110, _TOP + 22, f"token {t}", "middle"))
    parts.append(svg.text(_RIGHT + 165, _TOP + 124, "4 × int32, 8 products in each", "middle"))
    results = ", ".join(f"row {o} times token {t} {shown(out[o, t])}" for o in range(2) for t in range(2))
    told = f"Two rows of eight weights, two rows of eight activations; one instruction makes {results}."
    return svg.drawing(parts, _WIDTH, _HEIGHT, told, font_size=13, widest=_WIDTH + 80)
