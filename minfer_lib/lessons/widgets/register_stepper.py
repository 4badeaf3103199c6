"""A kernel, one operation at a time: its source at the left, its registers at the right."""

from __future__ import annotations

import html

import ipywidgets as widgets

from minfer_lib.errors import ArgumentError
from minfer_lib.lessons.figures.kernel_source import source_html
from minfer_lib.lessons.figures.look import Drawing
from minfer_lib.lessons.figures.registers import flagged, meaning, step_picture
from minfer_lib.simd.step import Step, Trace

INTERVAL = 1200  # milliseconds a step while it plays


class RegisterStepper(widgets.VBox):
    """Walk through a trace (minfer_lib.simd.step.step) of a kernel of any kernel set, on any machine.

    at: where to begin, as in `show`. `.step` is the Step that is shown, `.alt` its picture in words.
    """

    def __init__(self, trace: Trace, at: Step | str | None = None) -> None:
        if not trace.steps:
            raise ArgumentError(f"{trace.kernel} did nothing on registers: there is no step to show.")
        self.trace, self.alt, last = trace, "", len(trace.steps)
        self._back = widgets.Button(description="previous", icon="step-backward", tooltip="The operation before")
        self._on = widgets.Button(description="next", icon="step-forward", tooltip="The operation after")
        self._play = widgets.Play(min=1, max=last, interval=INTERVAL, show_repeat=False)
        self._slider = widgets.IntSlider(min=1, max=last, description="step", continuous_update=True)
        self._title, self._source, self._picture = widgets.HTML(), widgets.HTML(), widgets.HTML()
        for button, by in ((self._back, -1), (self._on, 1)):
            button.on_click(lambda _, by=by: self._go(self._slider.value + by))
            button.layout.width = "110px"
        widgets.link((self._play, "value"), (self._slider, "value"))  # it plays on from what is shown
        self._slider.observe(lambda change: self._draw(), "value")
        self._slider.layout = widgets.Layout(flex="1 1 260px", max_width="560px")
        self._source.layout = widgets.Layout(flex="1 1 310px", min_width="0", max_width="560px", overflow="auto")
        self._picture.layout = widgets.Layout(flex="1 1 486px", min_width="0", max_width="600px", overflow="auto")
        both = widgets.Box(
            [self._source, self._picture], layout=widgets.Layout(flex_flow="row wrap", grid_gap="8px 10px")
        )
        keys = widgets.Box(
            [self._back, self._on, self._play, self._slider], layout=widgets.Layout(flex_flow="row wrap")
        )
        super().__init__([keys, self._title, both])
        for widget, name in (
            (self, "stepper"),
            (self._back, "previous"),
            (self._on, "next"),
            (self._play, "play"),
            (self._slider, "step"),
            (self._title, "told"),
            (self._source, "source"),
            (self._picture, "registers"),
        ):
            widget.add_class(f"minfer-{name}")
        self._draw()
        if at is not None:
            self.show(at)

    @property
    def step(self) -> Step:
        return self.trace.steps[self._slider.value - 1]

    def show(self, at: Step | str) -> RegisterStepper:
        """Go to a step of this trace, or to the first step of that operation ("maddubs"). ArgumentError if none is."""
        numbers = [s.number for s in self.trace.steps if s is at or s.name == at]
        if not numbers:
            names = ", ".join(dict.fromkeys(s.name for s in self.trace.steps))
            raise ArgumentError(f"{self.trace.kernel} has no such step: {at!r}. Its operations are {names}.")
        self._go(numbers[0] + 1)
        return self

    def _go(self, number: int) -> None:
        self._slider.value = min(max(number, 1), len(self.trace.steps))

    def _draw(self) -> None:
        step, (picture, source, told) = self.step, self._drawn(self.step)
        self._back.disabled, self._on.disabled = step.number == 0, step.number + 1 == len(self.trace.steps)
        self.alt = (
            f"Step {step.number + 1} of {len(self.trace.steps)}, line {step.line} of {step.kernel}: {picture.alt}"
        )
        self._title.value, self._source.value, self._picture.value = told, source, picture.svg

    def _drawn(self, step: Step) -> tuple[Drawing, str, str]:
        """The step's picture; its source, HTML; what is said above them, HTML."""
        return step_picture(self.trace, step), source_html(step), _title(step, len(self.trace.steps))

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        """With the step as HTML, for a page where no kernel runs."""
        static = self._title.value + self._source.value + self._picture.value
        return super()._repr_mimebundle_(**kwargs) | {"text/html": static}


def _title(step: Step, count: int) -> str:
    instruction = f"<code>{step.instruction}</code>" if step.instruction else "no instruction"
    told = html.escape(meaning(step).removesuffix("."))
    flag = f" · <b>{html.escape(flagged(step))}</b>" if step.lost is not None else ""
    return (
        f'<div role="status" aria-live="polite" style="line-height:1.5;min-height:3em;font-size:14px">'
        f"<b>{step.number + 1} of {count}</b> · {step.kernel}, line {step.line} · <b>{step.name}</b>: {instruction}"
        f"<br>{told}{flag}</div>"
    )
