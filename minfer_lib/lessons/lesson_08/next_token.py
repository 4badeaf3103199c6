"""The likeliest next tokens."""

from __future__ import annotations

import numpy as np

from minfer_lib.lessons.shared.look import BLUE, Picture, new_axes, style
from minfer_lib.text import Tokenizer

COUNT = 10  # tokens that are shown


def next_token_picture(probabilities: np.ndarray, tokenizer: Tokenizer) -> Picture:
    """probabilities: f32[n_vocab] -> bars for the COUNT likeliest tokens, largest on top."""
    top = np.argsort(-probabilities, kind="stable")[:COUNT]
    names = [repr(tokenizer.decode([int(token)]))[1:-1] for token in top]
    values = probabilities[top]
    with style():
        axes = new_axes(7, 0.5 + 0.3 * COUNT)
        bars = axes.barh(range(COUNT), values, color=BLUE, height=0.7)
        axes.bar_label(bars, [f"{value:.1%}" for value in values], padding=4)
        axes.set_yticks(range(COUNT), [f"“{_plain(name)}”" for name in names])
        axes.invert_yaxis()
        axes.set_xlabel("probability of being next")
        axes.margins(x=0.12)
        told = ", ".join(f"“{name}” {value:.1%}" for name, value in zip(names, values, strict=True))
        return Picture(axes.figure, f"Bar chart of the likeliest next tokens: {told}.")


def _plain(name: str) -> str:
    """A dollar sign would begin a formula."""
    return name.replace("$", r"\$")
