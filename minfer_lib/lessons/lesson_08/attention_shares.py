"""Who looks at whom: the softmax of one head, a row a token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from minfer_lib.lessons.shared.look import BLUE, PLOT_INK, Picture, new_axes, style

_SHADES = LinearSegmentedColormap.from_list("shares", [BLUE + "00", BLUE])  # nothing is the page itself


def attention_picture(shares: np.ndarray, words: Sequence[str]) -> Picture:
    """shares: f32[n_tokens, n_tokens], row t: how much token t takes from each token up to itself. Rows sum to 1."""
    n, names = len(words), [word.replace("$", r"\$") for word in words]
    with style():
        axes = new_axes(1.9 + 0.62 * n, 1.3 + 0.42 * n)
        axes.imshow(shares, cmap=_SHADES, vmin=0, vmax=1, aspect="auto")
        for t, j in zip(*np.tril_indices(n), strict=True):
            light = shares[t, j] > 0.6
            axes.text(j, t, f"{shares[t, j]:.0%}", ha="center", va="center", color="white" if light else PLOT_INK)
        axes.figure.get_layout_engine().set(w_pad=0.15, h_pad=0.15)  # a browser's letters may be wider
        axes.set_xticks(range(n), names, rotation=30, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(n), names)
        axes.set_xlabel("… takes from")
        axes.set_ylabel("this token")
        told = "; ".join(
            f"{word} takes most from {words[int(row.argmax())]}, {row.max():.0%}"
            for word, row in zip(words, shares, strict=True)
        )
        return Picture(axes.figure, f"Attention of one head, a row a token: {told}.")
