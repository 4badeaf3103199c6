"""A tile of prefill: the order in which its outputs are computed, and what each needs."""

from __future__ import annotations

from minfer_lib.lessons.shared.look import BLUE, GREY, INK, ORANGE, Drawing

_CELL, _LEFT, _TOP = 25, 150, 52


def tile_picture(rows: int, columns: int, row_bytes: int, column_bytes: int) -> Drawing:
    """Outputs of a tile, numbered as ggml computes them: column after column, rows inside."""
    parts = [
        _text(_LEFT + columns * _CELL / 2, 14, f"{columns} columns of x, one a token, {column_bytes:,} bytes each")
    ]
    parts += [_rect(_LEFT + c * _CELL, 22, _CELL - 3, 20, ORANGE, 0.5 if c == 1 else 0.2) for c in range(columns)]
    parts += [_rect(_LEFT - 60, _TOP + r * _CELL, 46, _CELL - 3, BLUE, 0.3) for r in range(rows)]
    middle = _TOP + rows * _CELL / 2
    for i, line in enumerate((f"{rows} rows", "of weights,", f"{row_bytes:,}", "bytes each")):
        parts.append(_text(_LEFT - 70, middle + 18 * (i - 1.5), line, "end"))
    for c in range(columns):
        for r in range(rows):
            x, y = _LEFT + c * _CELL, _TOP + r * _CELL
            parts.append(_rect(x, y, _CELL - 3, _CELL - 3, ORANGE if c == 1 else GREY, 0.35 if c == 1 else 0.12))
            parts.append(_text(x + (_CELL - 3) / 2, y + 15, str(c * rows + r + 1), size=11))
    width, height = _LEFT + columns * _CELL + 4, _TOP + rows * _CELL + 4
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" fill="{INK}" font-family="sans-serif" '
        f'font-size="12" style="width:{width}px;height:{height}px;max-width:none">{"".join(parts)}</svg>'
    )
    told = (
        f"A tile of {rows} rows and {columns} columns, {rows * columns} outputs. Outputs 1 to {rows} are the first "
        f"column's, {rows + 1} to {2 * rows} the second's, and so on: {rows} rows of {row_bytes:,} bytes meet one "
        f"column of {column_bytes:,} bytes after the other."
    )
    return Drawing(svg, told)


def _rect(x: float, y: float, width: float, height: float, colour: str, opacity: float) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{colour}" fill-opacity="{opacity}"/>'


def _text(x: float, y: float, text: str, anchor: str = "middle", size: int = 12) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}">{text}</text>'
