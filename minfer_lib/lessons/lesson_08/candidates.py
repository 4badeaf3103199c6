"""The likeliest next tokens, and what a sampler's filters leave of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minfer_lib.lessons.shared.look import BLUE, GREY, Picture, new_axes, style
from minfer_lib.text.sampling import Sampler, min_p, softmax, temperature, top_k, top_p
from minfer_lib.text.tokenizer import Tokenizer

COUNT = 12  # tokens that are shown


@dataclass(frozen=True)
class Candidates:
    """logits: f32[n_vocab]; what a Sampler's filters do with them, one after the other, in llama.cpp's order."""

    logits: np.ndarray
    sampler: Sampler

    @property
    def filtered(self) -> dict[str, np.ndarray]:
        """filter -> logits after it and all before it; what is ruled out is minus infinity."""
        after_k = top_k(self.logits, self.sampler.top_k)
        after_p = top_p(after_k, self.sampler.top_p)
        return {"top-k": after_k, "top-p": after_p, "min-p": min_p(after_p, self.sampler.min_p)}

    @property
    def left(self) -> dict[str, int]:
        """filter -> how many tokens are still possible."""
        return {name: int(np.isfinite(logits).sum()) for name, logits in self.filtered.items()}

    def ruled_out_by(self, token: int) -> str:
        """The filter that ruled the token out; "" where none did."""
        return next((name for name, logits in self.filtered.items() if not np.isfinite(logits[token])), "")

    @property
    def before(self) -> np.ndarray:
        return softmax(self.logits)

    @property
    def after(self) -> np.ndarray:
        """f32[n_vocab]: the chances from which the token is drawn."""
        return softmax(temperature(self.filtered["min-p"], self.sampler.temperature))


def candidates_picture(candidates: Candidates, tokenizer: Tokenizer) -> Picture:
    """Two bars a token: the model's probability, and the sampler's chance of drawing it."""
    before, after = candidates.before, candidates.after
    top = np.argsort(-before, kind="stable")[:COUNT]
    names = [repr(tokenizer.decode([int(token)]))[1:-1] for token in top]
    with style():
        axes = new_axes(7.6, 0.9 + 0.36 * COUNT)
        axes.figure.get_layout_engine().set(w_pad=0.2)
        rows = np.arange(COUNT)
        axes.barh(rows - 0.2, before[top], 0.36, color="none", edgecolor=GREY, hatch="///", label="the model")
        axes.barh(rows + 0.2, after[top], 0.36, color=BLUE, label="the sampler draws")
        for row, token in enumerate(top):
            by = candidates.ruled_out_by(int(token))
            told = f"ruled out by {by}" if by else f"{after[token]:.1%}"
            place = max(before[token], after[token])
            axes.annotate(told, (place, row), (5, 0), textcoords="offset points", va="center")
        axes.set_yticks(rows, [f"“{name}”".replace("$", r"\$") for name in names])
        axes.invert_yaxis()
        axes.set_xlim(0, 1.18)
        axes.set_xticks(np.linspace(0, 1, 6), [f"{x:.0%}" for x in np.linspace(0, 1, 6)])
        axes.legend(frameon=False, loc="lower right")
        told = ", ".join(f"“{name}” {before[t]:.1%} to {after[t]:.1%}" for name, t in zip(names, top, strict=True))
        return Picture(axes.figure, f"The likeliest next tokens, probability and chance of being drawn: {told}.")
