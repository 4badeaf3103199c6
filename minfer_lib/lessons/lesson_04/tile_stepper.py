"""A kernel over tile registers, one instruction at a time, with one cell of the result followed through all of them."""

from __future__ import annotations

import ipywidgets as widgets

from minfer_lib.lessons.lesson_04.tile_registers import tile_dots, tile_step_picture
from minfer_lib.lessons.shared.look import Drawing
from minfer_lib.lessons.shared.register_stepper import RegisterStepper
from minfer_lib.simd.step import KernelStep, KernelTrace


class TileStepper(RegisterStepper):
    """As RegisterStepper, for a trace that multiplies tiles. Choose a cell of C: its row of A, its column of B."""

    def __init__(self, trace: KernelTrace, at: KernelStep | str | None = None, row: int = 0, column: int = 0) -> None:
        shapes = [s.inputs[0].value.shape for s in tile_dots(trace)]
        ends = min(rows for rows, _ in shapes), min(c_bytes // 4 for _, c_bytes in shapes)
        layout = widgets.Layout(width="250px")
        self._row, self._column = (
            widgets.IntSlider(value, 0, end - 1, description=f"{name} of C", layout=layout)
            for name, value, end in zip(("row", "column"), (row, column), ends, strict=True)
        )
        super().__init__(trace, at)
        for slider, name in ((self._row, "row"), (self._column, "column")):
            slider.add_class(f"minfer-{name}")
            slider.observe(lambda change: self._draw(), "value")
        cell = widgets.Box([self._row, self._column], layout=widgets.Layout(flex_flow="row wrap"))
        self.children = [self.children[0], cell, *self.children[1:]]

    def _drawn(self, step: KernelStep) -> tuple[Drawing, str, str]:
        _, source, told = super()._drawn(step)
        return tile_step_picture(self.trace, step, self._row.value, self._column.value), source, told
