"""The output of a product in memory: token-major, and written the other way round."""

from __future__ import annotations

from minfer_lib.lessons.shared import svg
from minfer_lib.lessons.shared.look import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Drawing

_COLOURS = (BLUE, ORANGE, GREEN, PURPLE)  # of tokens
_LEFT, _CELL, _ROW = 210, 62, 32


def layout_picture(n_tokens: int, n_out: int) -> Drawing:
    """At most four tokens: what the caller reads at each position of the buffer, and what `o * n_tokens + t` put there.

    A cross marks a position with another number than the one that is read there.
    """
    read = [(t, o) for t in range(n_tokens) for o in range(n_out)]
    put = [(t, o) for o in range(n_out) for t in range(n_tokens)]
    wrong = [i for i, (a, b) in enumerate(zip(read, put, strict=True)) if a != b]
    rows = (("the caller reads t·n_out + o", read, 24), ("the bug wrote o·n_tokens + t", put, 24 + _ROW + 6))
    parts = [svg.text(_LEFT - 8, 16, "position in the buffer", "end")]
    parts += [svg.text(_LEFT + (i + 0.5) * _CELL, 16, str(i), "middle") for i in range(len(read))]
    for name, order, y in rows:
        parts.append(svg.text(_LEFT - 8, y + 21, name, "end"))
        parts += [_square(i, y, t, o, i in wrong) for i, (t, o) in enumerate(order)]
    y = rows[1][2] + _ROW + 18
    parts += [svg.text(_LEFT + (i + 0.5) * _CELL, y, "✕", "middle") for i in wrong]
    width, height = _LEFT + len(read) * _CELL + 4, y + 8
    told = f"{n_tokens} tokens, {n_out} outputs each. The bug wrote, in the order of memory: "
    listed = ", ".join(f"token {t} output {o}" for t, o in put)
    return svg.drawing(
        parts, width, height, f"{told}{listed}. {len(wrong)} of {len(read)} positions are wrong.", font_size=13
    )


def _square(i: int, y: int, t: int, o: int, wrong: bool) -> str:
    stroke = f'stroke="{RED}" stroke-width="2" stroke-dasharray="4 2"' if wrong else f'stroke="{GREY}"'
    box = (
        f'<rect x="{_LEFT + i * _CELL + 2}" y="{y}" width="{_CELL - 4}" height="{_ROW}" rx="3" '
        f'fill="{_COLOURS[t % len(_COLOURS)]}" fill-opacity=".25" {stroke}/>'
    )
    return box + svg.text(_LEFT + (i + 0.5) * _CELL, y + 21, f"t{t} · o{o}", "middle")
