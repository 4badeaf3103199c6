"""A tile of prefill: the order in which its outputs are computed, and what each needs."""

from __future__ import annotations

from minfer_lib.lessons.shared import svg
from minfer_lib.lessons.shared.look import BLUE, GREY, ORANGE, Drawing

_CELL, _LEFT, _TOP = 25, 150, 52


def tile_picture(rows: int, columns: int, row_bytes: int, column_bytes: int) -> Drawing:
    """Outputs of a tile, numbered as ggml computes them: column after column, rows inside."""
    parts = [
        svg.text(
            _LEFT + columns * _CELL / 2,
            14,
            f"{columns} columns of x, one a token, {column_bytes:,} bytes each",
            "middle",
        )
    ]
    parts += [svg.box(_LEFT + c * _CELL, 22, _CELL - 3, 20, ORANGE, 0.5 if c == 1 else 0.2) for c in range(columns)]
    parts += [svg.box(_LEFT - 60, _TOP + r * _CELL, 46, _CELL - 3, BLUE, 0.3) for r in range(rows)]
    middle = _TOP + rows * _CELL / 2
    for i, line in enumerate((f"{rows} rows", "of weights,", f"{row_bytes:,}", "bytes each")):
        parts.append(svg.text(_LEFT - 70, middle + 18 * (i - 1.5), line, "end"))
    for c in range(columns):
        for r in range(rows):
            x, y = _LEFT + c * _CELL, _TOP + r * _CELL
            parts.append(svg.box(x, y, _CELL - 3, _CELL - 3, ORANGE if c == 1 else GREY, 0.35 if c == 1 else 0.12))
            parts.append(svg.text(x + (_CELL - 3) / 2, y + 15, str(c * rows + r + 1), "middle", size=11))
    width, height = _LEFT + columns * _CELL + 4, _TOP + rows * _CELL + 4
    told = (
        f"A tile of {rows} rows and {columns} columns, {rows * columns} outputs. Outputs 1 to {rows} are the first "
        f"column's, {rows + 1} to {2 * rows} the second's, and so on: {rows} rows of {row_bytes:,} bytes meet one "
        f"column of {column_bytes:,} bytes after the other."
    )
    return svg.drawing(parts, width, height, told)
