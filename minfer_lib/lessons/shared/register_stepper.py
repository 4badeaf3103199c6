"""A kernel, one operation at a time: its source at the left, its registers at the right."""

from __future__ import annotations

import html

from minfer_lib.errors import ArgumentError
from minfer_lib.lessons.shared.kernel_source import source_html
from minfer_lib.lessons.shared.look import Drawing
from minfer_lib.lessons.shared.register_picture import flagged, meaning, step_picture
from minfer_lib.lessons.shared.stepper import Stepper
from minfer_lib.simd.step import KernelStep, KernelTrace


class RegisterStepper(Stepper):
    """Walk through a trace (minfer_lib.simd.step.step) of a kernel of any kernel set, on any machine.

    at: where to begin, as in `show`. `.step` is the KernelStep that is shown, `.alt` its picture in words.
    """

    def __init__(self, trace: KernelTrace, at: KernelStep | str | None = None) -> None:
        if not trace.steps:
            raise ArgumentError(f"{trace.kernel} did nothing on registers: there is no step to show.")
        self.trace = trace
        super().__init__(trace.steps, ("registers", 486))
        if at is not None:
            self.show(at)

    def show(self, at: KernelStep | str) -> RegisterStepper:
        """Go to a step of this trace, or to the first step of that operation ("maddubs"). ArgumentError if none is."""
        numbers = [s.number for s in self.trace.steps if s is at or s.name == at]
        if not numbers:
            names = ", ".join(dict.fromkeys(s.name for s in self.trace.steps))
            raise ArgumentError(f"{self.trace.kernel} has no such step: {at!r}. Its operations are {names}.")
        self._go(numbers[0] + 1)
        return self

    def _drawn(self, step: KernelStep) -> tuple[Drawing, str, str]:
        instruction = f"<code>{step.instruction}</code>" if step.instruction else "no instruction"
        told = html.escape(meaning(step).removesuffix("."))
        flag = f" · <b>{html.escape(flagged(step))}</b>" if step.lost is not None else ""
        said = f"<b>{step.name}</b>: {instruction}<br>{told}{flag}"
        return step_picture(self.trace, step), source_html(step), said
