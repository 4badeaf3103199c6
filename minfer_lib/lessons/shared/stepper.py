"""Steps of a recorded run, one at a time: buttons, a player and a slider above a kernel's source and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from minfer_lib.lessons.shared.look import Drawing
from minfer_lib.lessons.shared.page_box import PageBox

INTERVAL = 1200  # milliseconds a step while it plays


class Stepper(PageBox):
    """A subclass says how a step is shown. `.step` is the one that is, `.alt` its picture in words.

    picture: CSS class of the picture, and how many pixels wide it is. more: controls beside the others.
    """

    def __init__(self, steps: Sequence[Any], picture: tuple[str, int], more: Sequence[widgets.Widget] = ()) -> None:
        self.steps, self.alt, last = steps, "", len(steps)
        self._back = widgets.Button(description="previous", icon="step-backward", tooltip="The step before")
        self._on = widgets.Button(description="next", icon="step-forward", tooltip="The step after")
        self._play = widgets.Play(min=1, max=last, interval=INTERVAL, show_repeat=False)
        self._slider = widgets.IntSlider(min=1, max=last, description="step", continuous_update=True)
        self._title, self._source, self._picture = widgets.HTML(), widgets.HTML(), widgets.HTML()
        for button, by in ((self._back, -1), (self._on, 1)):
            button.on_click(lambda _, by=by: self._go(self._slider.value + by))
            button.layout.width = "110px"
        widgets.link((self._play, "value"), (self._slider, "value"))  # it plays on from what is shown
        self._slider.observe(lambda change: self._draw(), "value")
        name, width = picture
        self._slider.layout = widgets.Layout(flex="1 1 260px", max_width="560px")
        self._source.layout = widgets.Layout(flex="1 1 310px", min_width="0", max_width="560px", overflow="auto")
        self._picture.layout = widgets.Layout(
            flex=f"1 1 {width}px", min_width="0", max_width=f"{width + 114}px", overflow="auto"
        )
        flow = widgets.Layout(flex_flow="row wrap", grid_gap="8px 10px")
        both = widgets.Box([self._source, self._picture], layout=flow)
        keys = widgets.Box(
            [self._back, self._on, self._play, self._slider, *more], layout=widgets.Layout(flex_flow="row wrap")
        )
        super().__init__([keys, self._title, both])
        for widget, css in (
            (self, "stepper"),
            (self._back, "previous"),
            (self._on, "next"),
            (self._play, "play"),
            (self._slider, "step"),
            (self._title, "told"),
            (self._source, "source"),
            (self._picture, name),
        ):
            widget.add_class(f"minfer-{css}")
        self._draw()

    @property
    def step(self) -> Any:
        return self.steps[self._slider.value - 1]

    def _drawn(self, step: Any) -> tuple[Drawing, str, str]:
        """The step's picture; its source, HTML; what is said above them, HTML."""
        raise NotImplementedError

    def _go(self, number: int) -> None:
        self._slider.value = min(max(number, 1), len(self.steps))

    def _draw(self) -> None:
        number, count = self._slider.value, len(self.steps)
        picture, source, told = self._drawn(self.step)
        self._back.disabled, self._on.disabled = number == 1, number == count
        self.alt = f"Step {number} of {count}, line {self.step.line} of {self.step.kernel}: {picture.alt}"
        self._source.value, self._picture.value = source, picture.svg
        self._title.value = (  # last: who hears that the step is another one finds its picture there
            f'<div role="status" aria-live="polite" style="line-height:1.5;min-height:3em;font-size:14px">'
            f"<b>{number} of {count}</b> · {self.step.kernel}, line {self.step.line} · {told}</div>"
        )

    def __repr__(self) -> str:
        return self.alt

    def _page(self) -> str:
        return self._title.value + self._source.value + self._picture.value
