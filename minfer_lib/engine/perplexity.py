"""How well a model predicts a text: exp of the mean negative log probability of its tokens.

By llama.cpp's definition (`tools/perplexity`): the text is cut into chunks of `context` tokens, each read in an empty
context with the first token replaced by BOS where the vocabulary adds one, and only the second half of each is judged,
so that every judged token has at least half a context before it. What is left at the end is not read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tqdm.auto import tqdm

from minfer_lib.engine.session import Model
from minfer_lib.errors import ArgumentError


@dataclass(frozen=True)
class Perplexity:
    value: float
    error: float  # one standard error, from the spread over the judged tokens
    tokens: int  # judged
    chunks: int


def perplexity(model: Model, text: str, context: int = 512, chunks: int | None = None) -> Perplexity:
    """Of `text`, in chunks of `context` tokens (at most `chunks` of them), under a progress bar.

    Raises ArgumentError: a context that the model does not hold, or a text shorter than two chunks.
    """
    if not 4 <= context <= model.context:
        raise ArgumentError(f"context is a whole number from 4 to the model's {model.context}, not {context}.")
    tokenizer = model.tokenizer
    ids = tokenizer.encode(text, special=False)
    if len(ids) < 2 * context:
        raise ArgumentError(f"the text has {len(ids)} tokens; a perplexity at context {context} needs {2 * context}.")
    count = min(len(ids) // context, chunks or len(ids))
    session, losses = model.session(), []
    for chunk in tqdm(range(count), desc="perplexity", unit="chunk"):
        piece = ids[chunk * context : (chunk + 1) * context]
        if tokenizer.add_bos:
            piece[0] = tokenizer.bos
        session.reset()
        losses.append(-session.log_probabilities(piece, first=context // 2 + 1))
    nll = np.concatenate(losses)
    value = float(np.exp(nll.mean()))
    return Perplexity(value, value * float(nll.std()) / max(1, nll.size - 1) ** 0.5, nll.size, count)
