"""A small table that reads well in a notebook, in a terminal and in a page without a kernel."""

from __future__ import annotations

import html
from collections.abc import Sequence


class Table:
    """Rows of cells under a header; numbers are right-aligned."""

    def __init__(self, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self.header = [str(name) for name in header]
        self.rows = [[_shown(cell) for cell in row] for row in rows]
        self.right = [all(isinstance(row[i], (int, float)) for row in rows) for i in range(len(self.header))]

    def __repr__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]
        return "\n".join(
            "  ".join(
                cell.rjust(w) if right else cell.ljust(w)
                for cell, w, right in zip(line, widths, self.right, strict=True)
            )
            for line in lines
        )

    def _repr_html_(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            styles = ["right" if right else "left" for right in self.right]
            return "".join(
                f'<{tag} style="text-align:{style}">{html.escape(cell)}</{tag}>'
                for cell, style in zip(cells, styles, strict=True)
            )

        body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in self.rows)
        return f"<table><thead><tr>{line(self.header, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def _shown(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:,.4g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
