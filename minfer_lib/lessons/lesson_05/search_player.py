"""The search for a group's scale and min, played try by try."""

from __future__ import annotations

import html

import ipywidgets as widgets
import numpy as np

from minfer_lib.lessons.lesson_05.scale_search import ScaleSearch
from minfer_lib.lessons.lesson_05.search_tries import search_picture, told
from minfer_lib.lessons.shared.page_box import PageBox


class SearchPlayer(PageBox):
    """A slider over the tries of a ScaleSearch, which arrow keys move and a play button runs.

    x: f32[32], for Q2_K f32[16]. `.search` holds the tries; show(i) does what the slider does.
    """

    def __init__(self, x: np.ndarray, format: str = "Q4_K") -> None:
        self.search = ScaleSearch(x, format)
        last = len(self.search.tries) - 1
        self._slider = widgets.IntSlider(0, 0, last, description="try", tooltip="Which try is shown")
        self._play = widgets.Play(value=0, min=0, max=last, interval=700, tooltip="Play the tries")
        self._words, self._picture = widgets.HTML(), widgets.HTML()
        widgets.jslink((self._play, "value"), (self._slider, "value"))
        self._slider.observe(lambda change: self._draw(), "value")
        super().__init__([widgets.HBox([self._play, self._slider]), self._words, self._picture])
        for widget, name in (
            (self, "search"),
            (self._slider, "try"),
            (self._words, "told"),
            (self._picture, "tries"),
        ):
            widget.add_class(f"minfer-{name}")
        self._draw()

    def show(self, i: int) -> None:
        self._slider.value = i

    def _draw(self) -> None:
        i = self._slider.value
        self._words.value = html.escape(told(self.search, i))
        self._picture.value = search_picture(self.search, i)._repr_html_()

    def __repr__(self) -> str:
        return told(self.search, self._slider.value)

    def _page(self) -> str:
        return self._words.value + self._picture.value
