"""A GPU kernel, one statement of a warp at a time: its source at the left, its 32 lanes at the right."""

from __future__ import annotations

import html

import ipywidgets as widgets

from minfer_lib.errors import ArgumentError
from minfer_lib.gpu.warp_sim import Step, Trace
from minfer_lib.lessons.figures.kernel_source import source_html
from minfer_lib.lessons.figures.look import Drawing
from minfer_lib.lessons.figures.warp_lanes import WIDTH, lanes_picture
from minfer_lib.lessons.widgets.stepper import Stepper


class WarpStepper(Stepper):
    """Walk through what the warps of one block of a trace (minfer_lib.gpu.warp_sim.simulate) did.

    at: where to begin, as in `show`. `.step` is the Step that is shown, `.alt` its picture in words. Of the source only
    lines are shown that some warp came to: a kernel is written for many launches, and this is one of them.
    """

    def __init__(self, trace: Trace, block: int = 0, at: str | None = None) -> None:
        self.trace = trace
        self._of = {warp: trace.of(warp, block) for warp in range(-(-trace.threads // 32))}
        if not self._of[0]:
            raise ArgumentError(f"{trace.kernel}: block {block} was not simulated, so there is no step to show.")
        self._warp = widgets.Dropdown(
            options=[(f"warp {warp}", warp) for warp in self._of], value=0, layout=widgets.Layout(width="110px")
        )
        self._warp.add_class("minfer-warp")
        super().__init__(self._of[0], ("lanes", WIDTH), [self._warp])
        self._warp.observe(lambda change: self._choose(change["new"]), "value")
        if at is not None:
            self.show(at)

    def show(self, text: str, warp: int = 0, skip: int = 0) -> WarpStepper:
        """Go to a step of `warp` whose line contains `text`, the first after `skip` others. ArgumentError if none."""
        numbers = [n for n, s in enumerate(self._of[warp], 1) if text in s.text]
        if len(numbers) <= skip:
            raise ArgumentError(f"warp {warp} does not come {skip + 1} times to a line with {text!r}.")
        self._warp.value = warp
        self._go(numbers[skip])
        return self

    def _choose(self, warp: int) -> None:
        """Another warp, as near as can be to the statement that was shown."""
        before = self.step
        self.steps = self._of[warp]
        numbers = [n for n, s in enumerate(self.steps, 1) if (s.filename, s.line) == (before.filename, before.line)]
        now = min(numbers, key=lambda n: abs(n - self._slider.value), default=1)
        with self.hold_trait_notifications():
            self._slider.max = self._play.max = len(self.steps)
        if now == self._slider.value:
            self._draw()
        self._go(now)

    def _drawn(self, step: Step) -> tuple[Drawing, str, str]:
        said = f"block {step.block}, warp {step.warp}<br><code>{html.escape(step.text.strip())}</code>"
        return lanes_picture(step), source_html(step, self.trace.lines), said
