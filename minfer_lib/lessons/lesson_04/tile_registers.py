"""One tile instruction drawn: A at the left, B above, C where they meet; below them all products of one cell of C.

The four bytes of B that a column of C takes from each row stand above that column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.lessons.shared import svg
from minfer_lib.lessons.shared.look import BLUE, GREY, INK, ORANGE, RED, Drawing
from minfer_lib.lessons.shared.register_picture import WIDTH, lanes
from minfer_lib.lessons.shared.wording import shown
from minfer_lib.simd.step import KernelStep, KernelTrace

_BYTE, _ROW = 3, 6  # of a tile, drawn
_RIGHT, _TOP = 270, 20  # where B begins
_BESIDE, _BETWEEN = 50, 24  # between A and C: the row's number; between B and C: C's name
_LINE = 76  # 16 bytes of A, 16 of B, their four sums
_STRENGTHS = 4  # of a colour


@dataclass(frozen=True)
class Product:
    """C += A · B as it stands after `step`, which prepares it, computes it or stores C."""

    trace: KernelTrace
    step: KernelStep

    @cached_property
    def dot(self) -> KernelStep:
        """The step that computes it."""
        operands = [o for o in (self.step.output, *self.step.inputs) if o is not None]
        tiles = {o.type for o in operands if o.type.startswith("tmm")}
        dots = [s for s in tile_dots(self.trace) if tiles <= {o.type for o in s.inputs}]
        later = [s for s in dots if s.number >= self.step.number]
        return later[0] if later and self.step.name != "tile_store" else dots[-1]

    def shape(self, which: int) -> tuple[int, int]:
        """Rows, and bytes a row, of C (0), A (1) or B (2)."""
        return self.dot.inputs[which].value.shape

    def held(self, which: int, dtype: type) -> np.ndarray | None:
        """What the tile holds; None: nothing was put into it yet, or it was given back."""
        for s in reversed(self.trace.steps[: self.step.number + 1]):
            if s.name in ("tile_shapes", "tile_release"):
                break
            if s.output is not None and s.output.type == self.dot.inputs[which].type:
                return s.output.value.view(dtype)
        return None

    def written(self, which: int) -> bool:
        return self.step.output is not None and self.step.output.type == self.dot.inputs[which].type


def tile_dots(trace: KernelTrace) -> list[KernelStep]:
    """The steps that multiply tiles; ArgumentError if there are none."""
    dots = [s for s in trace.steps if s.name == "tile_dot"]
    if not dots:
        raise ArgumentError(f"{trace.kernel} multiplies no tiles: there is no tile_dot to show.")
    return dots


def tile_step_picture(trace: KernelTrace, step: KernelStep, row: int, column: int) -> Drawing:
    """The tiles after a step, and what cell [row, column] of C is made of. Colours are those of `step_picture`."""
    product, mine = Product(trace, step), slice(4 * column, 4 * column + 4)
    (n_rows, _), (_, a_bytes), (groups, _) = map(product.shape, range(3))
    c, a, b = (product.held(which, dtype) for which, dtype in enumerate((np.int32, np.int8, np.int8)))
    below = _TOP + groups * _ROW + _BETWEEN
    parts = [
        *_tile(product, 1, a, _RIGHT - _BESIDE - a_bytes * _BYTE, below, np.s_[row, :]),
        *_tile(product, 2, b, _RIGHT, _TOP, np.s_[:, mine]),
        *_tile(product, 0, c, _RIGHT, below, np.s_[row, column : column + 1]),
        svg.text(_RIGHT - 6, below + row * _ROW + 8, f"row {row}", "end"),
        svg.text(
            min(_RIGHT + (4 * column + 2) * _BYTE, WIDTH - 32), below + n_rows * _ROW + 14, f"column {column}", "middle"
        ),
        *(svg.text(4, _TOP + 12 + 17 * i, line) for i, line in enumerate(_done(step))),
    ]
    sides = {
        f"row {row} of A": None if a is None else a[row],
        f"column {column} of B": None if b is None else b[:, mine].reshape(-1),
    }
    told, y = _cell(product, c, row, column), below + n_rows * _ROW + 32
    parts.append(svg.text(4, y, f"<tspan font-weight='bold'>{told}</tspan>"))
    for at in range(0, a_bytes, 16):
        parts += _products(*sides.values(), at, y + 10 + _LINE * (at // 16), step is product.dot)
    height = y + 6 + _LINE * -(-a_bytes // 16)
    alt = [f"{what}: {'empty' if v is None else ', '.join(map(shown, v))}" for what, v in sides.items()]
    return svg.drawing(
        parts, WIDTH, height, f"{' '.join(_done(step)) or step.name}; {'; '.join(alt)}; {told}.", widest=WIDTH
    )


def _done(step: KernelStep) -> list[str]:
    """What the step did with whole tiles."""
    if step.name == "tile_dot":
        (rows, c_bytes), (_, products) = (o.value.shape for o in step.inputs[:2])
        cells = rows * c_bytes // 4
        return [f"{rows} × {c_bytes // 4} cells,", f"{products} products each:", f"{cells * products:,} multiply-adds"]
    if step.name == "tile_load":
        tile, raw, at, stride = step.inputs
        return [f"memory → {tile.type}", f"from byte {at.value:,} of {raw.value.size:,} on,", _apart(stride.value)]
    if step.name == "tile_store":
        _, at, stride, tile = step.inputs
        return [f"{tile.type} → memory", f"from byte {at.value:,} on,", _apart(stride.value)]
    return []


def _apart(stride: int) -> str:
    return f"rows {stride:,} bytes apart"


def _cell(product: Product, c: np.ndarray | None, row: int, column: int) -> str:
    """The chosen cell of C in words."""
    name = f"C[{row}, {column}]"
    if c is None:
        return f"{name}: empty"
    if product.step is not product.dot:
        return f"{name} = {shown(c[row, column])}"
    before = product.step.inputs[0].value.view(np.int32)[row, column]
    added = f"{shown(c[row, column] - before)} from these {product.shape(1)[1]} products"
    return f"{name} = {shown(c[row, column])}: {shown(before)} before, {added}"


def _tile(product: Product, which: int, values: np.ndarray | None, x: int, y: int, chosen: tuple) -> list[str]:
    """A tile as a map, its chosen cells strong. A frame and a bold name: this step wrote it; dashes: it is empty."""
    rows, row_bytes = product.shape(which)
    what = f"{rows} × {row_bytes // 4} int32" if which == 0 else f"{rows} rows of {row_bytes} bytes"
    weight, stroke = ("bold", 2) if product.written(which) else ("normal", 0.75)
    dashes = ' stroke-dasharray="4 3"' if values is None else ""
    size = 4 if which == 0 else 1  # bytes of a cell
    grid = np.zeros((rows, row_bytes // size)) if values is None else values.astype(np.float64)
    strong = np.zeros(grid.shape, bool)
    strong[chosen] = True
    (top, first), (bottom, last) = np.argwhere(strong)[[0, -1]]
    width = size * _BYTE
    name = f"<tspan font-weight='{weight}'>{'CAB'[which]} = {product.dot.inputs[which].type}</tspan>: {what}"
    return [
        svg.text(x + row_bytes * _BYTE, y - 6, name, "end") if which == 1 else svg.text(x, y - 6, name),
        *([] if values is None else _cells(grid, x, y, width, strong)),
        _box(x, y, row_bytes * _BYTE, rows * _ROW, INK, stroke, dashes),
        _box(x + first * width, y + top * _ROW, (last + 1 - first) * width, (bottom + 1 - top) * _ROW, RED, 1.5),
    ]


def _cells(values: np.ndarray, x: int, y: int, width: int, strong: np.ndarray) -> list[str]:
    """One path for all cells of a sign and a strength."""
    strength = np.sign(values) * np.ceil(_STRENGTHS * np.abs(values) / max(1, np.abs(values).max()))
    parts = []
    for s in np.unique(strength):
        colour = GREY if s == 0 else ORANGE if s < 0 else BLUE
        for which, share in ((~strong, 0.45), (strong, 1)):
            places = np.argwhere((strength == s) & which)
            path = "".join(f"M{x + k * width} {y + r * _ROW}h{width}v{_ROW}h-{width}z" for r, k in places)
            if path:
                parts.append(f'<path d="{path}" fill="{colour}" fill-opacity="{share * (0.15 + 0.17 * abs(s)):.2f}"/>')
    return parts


def _products(a: np.ndarray | None, b: np.ndarray | None, at: int, y: int, summed: bool) -> list[str]:
    """16 bytes of each side, byte under byte, and the sums of each four products."""
    here, parts = slice(at, at + 16), []
    for i, (name, values) in enumerate((("A", a), ("B", b))):
        if values is not None:
            parts += lanes(values[here], y + 24 * i, label=name)
    if summed:
        sums = (a[here].astype(np.int32) * b[here]).reshape(-1, 4).sum(axis=1, dtype=np.int32)
        parts += lanes(sums, y + 48, label="sums")
    return parts


def _box(x: float, y: float, width: float, height: float, stroke: str, thick: float, more: str = "") -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="none" stroke="{stroke}" '
        f'stroke-width="{thick}"{more}/>'
    )
