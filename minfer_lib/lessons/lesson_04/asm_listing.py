"""Machine code beside the Python that it comes from."""

from __future__ import annotations

import html
from collections.abc import Sequence

from minfer_lib.lessons.shared.look import SKY
from minfer_lib.simd.asm import Line

_CELL = (
    "padding:1px 12px;text-align:left;white-space:pre;font-family:var(--jp-code-font-family,monospace);font-size:12px"
)


class Listing:
    """Instructions in their order, each with the line of Python that asked for it; a new ground, a new line."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = list(lines)

    def __repr__(self) -> str:
        return "\n".join(f"{line.instruction:44} {line.line or '':>4}  {line.source}".rstrip() for line in self.lines)

    def _repr_html_(self) -> str:
        rows, before, shaded = [], object(), False
        for line in self.lines:
            same = line.line == before
            shaded ^= not same
            ground = f"background:{SKY}2e" if shaded else "background:none"
            number, source = ("", "″") if same else (line.line or "", line.source)
            cells = (line.instruction, number, source)
            body = "".join(f'<td style="{_CELL}">{html.escape(str(cell))}</td>' for cell in cells)
            if line.label:  # where a jump goes
                rows.append(f'<tr><td style="{_CELL}">{line.label}:</td></tr>')
            rows.append(f'<tr style="{ground}">{body}</tr>')
            before = line.line
        head = "".join(f'<th style="{_CELL}">{name}</th>' for name in ("instruction", "line", "Python"))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        return f'<div style="max-width:100%;max-height:560px;overflow:auto" tabindex="0">{table}</div>'


def loop_of(lines: Sequence[Line]) -> list[Line]:
    """The longest stretch from a label to the jump back to it; all the lines where nothing jumps back."""
    labels, found = {}, [range(0)]
    for at, line in enumerate(lines):
        if line.label:
            labels[line.label] = at
        first = labels.get(line.instruction.split()[-1])
        if first is not None:
            found.append(range(first, at + 1))
    return [lines[at] for at in max(found, key=len)] or list(lines)
