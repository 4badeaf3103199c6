"""Temperature, top-k, top-p and min-p as sliders over the logits of one prompt."""

from __future__ import annotations

import html

import ipywidgets as widgets
import numpy as np

from minfer_lib.lessons.lesson_08.candidates import Candidates, candidates_picture
from minfer_lib.lessons.shared.page_box import PageBox
from minfer_lib.text.sampling import Sampler
from minfer_lib.text.tokenizer import Tokenizer


class SamplerExplorer(PageBox):
    """logits: f32[n_vocab], of which the sliders' sampler is shown. `.candidates`: what it does with them.

    choose() does what the sliders do.
    """

    candidates: Candidates

    def __init__(self, logits: np.ndarray, tokenizer: Tokenizer) -> None:
        self._logits, self._tokenizer, self._quiet = logits, tokenizer, False
        box, wide = widgets.Layout(width="340px"), {"description_width": "90px"}
        self._controls = {
            "temperature": widgets.FloatSlider(0.8, min=0, max=2, step=0.05, description="temperature"),
            "top_k": widgets.IntSlider(40, 0, 100, description="top-k (0: all)"),
            "top_p": widgets.FloatSlider(0.95, min=0.05, max=1, step=0.05, description="top-p (1: all)"),
            "min_p": widgets.FloatSlider(0.05, min=0, max=1, step=0.01, description="min-p (0: all)"),
        }
        for name, control in self._controls.items():
            control.layout, control.style, control.tooltip = box, wide, control.description
            control.add_class(f"minfer-{name.replace('_', '-')}")
            control.observe(lambda change: self._draw(), "value")
        self._words, self._picture = widgets.HTML(), widgets.HTML()
        flow = widgets.Layout(flex_flow="row wrap", max_width="720px")  # two and two
        super().__init__([widgets.Box(list(self._controls.values()), layout=flow), self._words, self._picture])
        for widget, name in ((self, "sampler"), (self._words, "left"), (self._picture, "candidates")):
            widget.add_class(f"minfer-{name}")
        self._draw()

    def choose(self, **values: float) -> Candidates:
        """Set temperature, top_k, top_p or min_p; draw once."""
        self._quiet = True
        for name, value in values.items():
            self._controls[name].value = value
        self._quiet = False
        self._draw()
        return self.candidates

    def _draw(self) -> None:
        if self._quiet:
            return
        self.candidates = Candidates(self._logits, Sampler(**{n: c.value for n, c in self._controls.items()}))
        self._words.value = html.escape(self._told())
        self._picture.value = candidates_picture(self.candidates, self._tokenizer)._repr_html_()

    def _told(self) -> str:
        left = ", ".join(f"{count:,} after {name}" for name, count in self.candidates.left.items())
        drawn = np.count_nonzero(self.candidates.after)
        return f"Of {self._logits.size:,} tokens: {left}. Temperature leaves {drawn:,} to draw from."

    def __repr__(self) -> str:
        return self._told()

    def _page(self) -> str:
        return self._words.value + self._picture.value
