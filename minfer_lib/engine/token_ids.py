"""The check of token ids that a caller hands in."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from minfer_lib.errors import ArgumentError


def known_ids(ids: Sequence[int], n_vocab: int) -> list[int]:
    """Return `ids` as a list of Python ints.

    ids: one token or more, each a whole number from 0 to n_vocab - 1. n_vocab: how many tokens the vocabulary has.
    Raises ArgumentError: no ids, something that is not a whole number, or an id out of range.
    """
    try:
        ids = [operator.index(token) for token in ids]
    except TypeError:
        raise ArgumentError(f"tokens are whole numbers, as Tokenizer.encode returns them, not {ids!r:.60}.") from None
    if not ids:
        raise ArgumentError("there are no tokens to feed: the text or list of ids is empty.")
    wrong = [token for token in ids if not 0 <= token < n_vocab]
    if wrong:
        raise ArgumentError(f"token id {wrong[0]} is out of range: the vocabulary has {n_vocab} tokens.")
    return ids
