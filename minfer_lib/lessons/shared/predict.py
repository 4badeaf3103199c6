"""A question that wants a number before it gives one."""

from __future__ import annotations

import html
from collections.abc import Callable

import ipywidgets as widgets

from minfer_lib.lessons.shared.page_box import PageBox


class Predict(PageBox):
    """Ask `question`; once the learner has committed to a number, compute `answer()` and show both.

    `.guess` and `.actual` are None until then. One prediction is one try: it cannot be changed afterwards.
    """

    def __init__(self, question: str, answer: Callable[[], float], unit: str = "", because: str = "") -> None:
        self.guess: float | None = None
        self.actual: float | None = None
        self._answer, self._unit, self._because = answer, unit, because
        self._question = html.escape(question)
        self._box = widgets.FloatText(description="I predict", tooltip=question)
        self._button = widgets.Button(description="Commit", tooltip="Record the prediction, then see the answer")
        self._reveal = widgets.HTML()
        self._button.on_click(lambda button: self.commit(self._box.value))
        for widget, name in ((self._box, "guess"), (self._button, "commit"), (self._reveal, "reveal")):
            widget.add_class(f"minfer-{name}")
        unit_label = widgets.Label(unit)
        super().__init__(
            [
                widgets.HTML(f"<b>{self._question}</b>"),
                widgets.HBox([self._box, unit_label, self._button]),
                self._reveal,
            ]
        )
        self.add_class("minfer-predict")

    def commit(self, guess: float) -> None:
        """Record `guess` and reveal the answer; a second call changes nothing."""
        if self.guess is not None:
            return
        self.guess, self._box.disabled, self._button.disabled = guess, True, True
        self.actual = float(self._answer())
        self._reveal.value = self._told()

    def _told(self) -> str:
        verdict = "Exactly." if self.guess == self.actual else f"You said {self.guess:g}{self._off()}."
        because = f" {html.escape(self._because)}" if self._because else ""
        return f"It is <b>{self.actual:,.6g} {html.escape(self._unit)}</b>. {verdict}{because}"

    def _off(self) -> str:
        if self.actual and self.guess / self.actual > 0:
            ratio = self.guess / self.actual
            return f", {ratio:.2g} times that" if ratio >= 1 else f", {1 / ratio:.2g} times too little"
        return ""

    def _page(self) -> str:
        return f"<p><b>{self._question}</b> {self._reveal.value}</p>"
