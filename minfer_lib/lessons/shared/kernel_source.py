"""The source of a kernel, with the line, and in it the expression, that is being computed."""

from __future__ import annotations

import ast
import html
import linecache
import re
from collections.abc import Container, Sequence
from functools import lru_cache

from minfer_lib.gpu.warp_sim import Step as WarpStep
from minfer_lib.lessons.shared.look import ORANGE
from minfer_lib.simd.step import KernelStep

_LINE = "padding:0 6px 0 {hang}ch;text-indent:{back}ch;border-left:4px solid {edge};background:{ground}"
_NUMBER = 5  # letters of the line's number and its mark


def source_html(step: KernelStep | WarpStep, seen: Container[tuple[str, int]] | None = None) -> str:
    """The function in which `step` happens, without docstring and comments; its line has a bar, a ground and ▶.

    seen: only these (file, line) of it, and its head; None: all.
    """
    lines, found = [], function_lines(step.filename, step.line)
    indent = linecache.getline(step.filename, step.line).find(dict(found)[step.line])
    for number, text in found:
        if seen is not None and number != found[0][0] and (step.filename, number) not in seen:
            continue
        here = number == step.line
        code = _marked(text, [column - indent for column in step.columns]) if here else html.escape(text)
        depth = (len(text) - len(text.lstrip())) // 2  # half the indentation, so that less must wrap
        code = "\u00a0" * depth + code.lstrip()
        hang = _NUMBER + depth + 2
        edge, ground = (ORANGE, f"{ORANGE}33") if here else ("transparent", "none")
        look = _LINE.format(hang=hang, back=-hang, edge=edge, ground=ground)
        mark = "▶" if here else "\u00a0"
        lines.append(f'<div style="{look}">{number:\u00a0>4}{mark}{code}</div>')
    style = "font-family:var(--jp-code-font-family,monospace);font-size:11px;line-height:1.6;white-space:pre-wrap"
    return f'<div style="{style};overflow-wrap:anywhere">{"".join(lines)}</div>'


def function_lines(filename: str, line: int) -> list[tuple[int, str]]:
    """(number, text) of the function around `line`, without docstring, comments and common indentation."""
    source = linecache.getlines(filename)
    found = [f for f in _functions("".join(source)) if f[0] <= line <= f[1]]
    if not found:
        return [(line, linecache.getline(filename, line).strip())]
    first, last, doc, indent = max(found)
    kept = [n for n in range(first, last + 1) if n not in doc]
    return [(n, re.sub(r"\s+# .*", "", source[n - 1].rstrip("\n")[indent:])) for n in kept]


@lru_cache(maxsize=64)
def _functions(source: str) -> list[tuple[int, int, range, int]]:
    """(first line, last line, lines of its docstring, columns before it) of each function in the source."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            head = node.body[0]
            has_doc = isinstance(head, ast.Expr) and isinstance(head.value, ast.Constant)
            doc = range(head.lineno, head.end_lineno + 1) if has_doc else range(0)
            found.append((node.lineno, node.end_lineno, doc, node.col_offset))
    return found


def _marked(text: str, columns: Sequence[int]) -> str:
    before, middle, after = text[: columns[0]], text[columns[0] : columns[1]], text[columns[1] :]
    return f"{html.escape(before)}<u><b>{html.escape(middle)}</b></u>{html.escape(after)}"
