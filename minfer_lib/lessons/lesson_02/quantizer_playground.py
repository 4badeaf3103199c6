"""Thirty-two values to move, and the block that they become."""

from __future__ import annotations

import ipywidgets as widgets
import numpy as np

from minfer_lib.lessons.lesson_02.block_picture import (
    LEFT,
    RIGHT,
    WIDTH,
    block_numbers,
    block_picture,
    described,
)
from minfer_lib.lessons.lesson_02.quantized_block import BLOCK_FORMATS, QuantizedBlock, quantized
from minfer_lib.lessons.shared.page_box import PageBox

LIMIT = 4  # sliders go from -LIMIT to LIMIT
STEP = 1 / 64  # an arrow key; exact in float32, and half a step of Q8_0 where the largest value is 127 / 32


def _normal(random: np.random.Generator, format: str) -> np.ndarray:
    return random.normal(0, 1.2, 32)


def _outlier(random: np.random.Generator, format: str) -> np.ndarray:
    x = random.normal(0, 0.15, 32)
    x[random.integers(32)] = LIMIT
    return x


def _ties(random: np.random.Generator, format: str) -> np.ndarray:
    """Extremes that make d a power of two, and values that lie half way between two codes."""
    step = {"Q8_0": 1 / 32, "Q4_0": 1 / 2, "Q4_1": 1 / 2}.get(format, 1 / 4)
    highest = {"Q8_0": 127 * step, "Q4_1": 7 * step, "Q5_1": 15 * step}.get(format, 7 * step)
    lowest = -highest if format == "Q8_0" else -LIMIT
    halves = np.arange(np.ceil(lowest / step), np.floor(highest / step)) + 0.5
    picked = halves[np.linspace(0, len(halves) - 1, 30).astype(int)] * step
    return np.concatenate([[lowest], picked, [highest]])


def _zeros(random: np.random.Generator, format: str) -> np.ndarray:
    return np.zeros(32)


def _positive(random: np.random.Generator, format: str) -> np.ndarray:
    return random.uniform(2, 3.5, 32)


PRESETS = {"normal": _normal, "one outlier": _outlier, "ties": _ties, "zeros": _zeros, "all positive": _positive}


class QuantizerPlayground(PageBox):
    """Sliders for the 32 values of one block, a choice of format, and the block as it is stored.

    `.block` holds the bytes and everything read from them; set_values(), preset() and choose() do what the controls do.
    """

    block: QuantizedBlock

    def __init__(self, format: str = "Q8_0") -> None:
        self._random, self._still = np.random.default_rng(2), False
        self._format = widgets.ToggleButtons(options=BLOCK_FORMATS, value=format, style={"button_width": "70px"})
        self._presets = [widgets.Button(description=name, tooltip=f"Set the values: {name}") for name in PRESETS]
        self._sliders = [self._slider(i) for i in range(32)]
        self._picture, self._numbers = widgets.HTML(), widgets.HTML()
        for button in self._presets:
            button.on_click(lambda button: self.preset(button.description))
            button.layout.width = "110px"
        self._format.observe(lambda change: self._draw(), "value")
        super().__init__([self._format, widgets.HBox(self._presets), self._columns(), self._numbers])
        for widget, name in (
            (self, "playground"),
            (self._format, "format"),
            (self._picture, "block"),
            (self._numbers, "numbers"),
        ):
            widget.add_class(f"minfer-{name}")
        self.layout.max_width = "1000px"
        self.preset("normal")

    def _slider(self, i: int) -> widgets.FloatSlider:
        slider = widgets.FloatSlider(
            min=-LIMIT,
            max=LIMIT,
            step=STEP,
            orientation="vertical",
            readout=False,
            tooltip=f"value {i}",
            layout=widgets.Layout(
                flex="1 1 0", min_width="0", width="auto", height="100px", margin="0", overflow="visible"
            ),
        )
        slider.observe(lambda change: self._draw(), "value")
        slider.add_class(f"minfer-value-{i}")
        return slider

    def _columns(self) -> widgets.Box:
        """The sliders, each above its column of the picture; both scroll together where the page is narrow."""
        padding = f"10px {100 * RIGHT / WIDTH}% 10px {100 * LEFT / WIDTH}%"  # handles at the ends reach beyond
        row = widgets.HBox(
            self._sliders, layout={"width": "100%", "padding": padding, "margin": "0", "overflow": "visible"}
        )
        self._picture.layout = {"width": "100%", "margin": "0"}
        both = widgets.VBox(
            [row, self._picture], layout={"width": "100%", "min_width": f"{WIDTH}px", "overflow": "visible"}
        )
        return widgets.Box([both], layout={"overflow": "auto"})

    def set_values(self, values: np.ndarray) -> None:
        """f32[32]; each is rounded to the sliders' step and kept within their range."""
        values = np.clip(np.round(np.asarray(values, np.float64) / STEP) * STEP, -LIMIT, LIMIT)
        self._still = True  # one drawing for all 32
        for slider, value in zip(self._sliders, values, strict=True):
            slider.value = float(value)
        self._still = False
        self._draw()

    def preset(self, name: str) -> None:
        """One of PRESETS; "ties" are ties of the format that is chosen now."""
        self.set_values(PRESETS[name](self._random, self._format.value))

    def choose(self, format: str) -> None:
        self._format.value = format

    def _draw(self) -> None:
        if self._still:
            return
        self.block = quantized(self._format.value, [slider.value for slider in self._sliders])
        self._picture.value = block_picture(self.block, LIMIT).svg
        self._numbers.value = block_numbers(self.block)

    def __repr__(self) -> str:
        return described(self.block)

    def _page(self) -> str:
        return self._picture.value + self._numbers.value
