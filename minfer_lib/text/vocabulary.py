"""What a GGUF file says of its vocabulary, checked: tokens, merge rules, scores, types, special ids, flags.

Source: llama.cpp llama-vocab.cpp, llama_vocab::impl::load.
"""

import operator

import numpy as np

from minfer_lib.errors import GgufError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # tokenizer.ggml.token_type


def utf8(text: str) -> bytes:
    """UTF-8, where U+DC80 … U+DCFF are the raw bytes that Python's surrogateescape made them from."""
    return text.encode("utf-8", "surrogateescape")


def _strings(metadata: dict, name: str) -> list[str]:
    strings = metadata.get(f"tokenizer.ggml.{name}")
    if not isinstance(strings, list) or set(map(type, strings)) - {str}:
        raise GgufError(f"tokenizer.ggml.{name} is missing or not a list of strings: the vocabulary cannot be read")
    return strings


def read_tokens(metadata: dict) -> tuple[list[str], dict[str, int]]:
    """The text of each token, and the token of each text."""
    tokens = _strings(metadata, "tokens")
    if not tokens:
        raise GgufError("tokenizer.ggml.tokens is empty: a vocabulary needs at least one token")
    if "" in tokens:
        tokens = [text or f"[EMPTY_{token_id}]" for token_id, text in enumerate(tokens)]
    id_of = dict(zip(tokens, range(len(tokens)), strict=True))
    if len(id_of) < len(tokens):
        twice = next(text for token_id, text in enumerate(tokens) if id_of[text] != token_id)
        raise GgufError(f"tokenizer.ggml.tokens holds {twice!r} more than once: each token needs its own text")
    return tokens, id_of


def read_merges(metadata: dict) -> dict[str, int]:
    """The place of each rule "left right" in the file."""
    merges = _strings(metadata, "merges")
    for rank, rule in enumerate(merges):
        if rule.find(" ", 1) < 0:
            raise GgufError(f"tokenizer.ggml.merges[{rank}] is {rule!r}: a rule is two symbols with a space between")
    # Backwards, so that of two equal rules the first keeps its rank.
    return dict(zip(reversed(merges), range(len(merges) - 1, -1, -1), strict=True))


def _numbers(metadata: dict, name: str, count: int, kinds: str, wanted: str) -> np.ndarray | None:
    """A list with one number a token; `kinds` are NumPy's letters for the dtypes that it may have."""
    given = metadata.get(f"tokenizer.ggml.{name}")
    if given is None:
        return None
    try:
        numbers = np.array(given)
    except ValueError:  # lists of different lengths
        numbers = np.array(None)
    if numbers.dtype.kind not in kinds or numbers.shape != (count,):
        raise GgufError(
            f"tokenizer.ggml.{name} holds {numbers.dtype}{list(numbers.shape)}: it must be {wanted} for each of the "
            f"{count} tokens"
        )
    return numbers


def read_types(metadata: dict, count: int) -> np.ndarray:
    """The type of each token, int[count]; a file without them has normal tokens only."""
    types = _numbers(metadata, "token_type", count, "iu", "one integer")
    return np.full(count, NORMAL) if types is None else types


def read_scores(metadata: dict, count: int) -> list[float]:
    """The score of each token; a file without them gives all the same."""
    scores = _numbers(metadata, "scores", count, "iuf", "one number")
    if scores is None:
        return [0.0] * count
    with np.errstate(over="ignore"):  # such a score becomes infinite, and is refused
        rounded = scores.astype(np.float32)
    bad = np.isnan(rounded) | np.isinf(rounded) & np.isfinite(scores)
    if bad.any():
        at = bad.argmax()
        raise GgufError(f"tokenizer.ggml.scores[{at}] is {scores[at]}: a score is a float32 to compare")
    return rounded.tolist()


def read_special_id(metadata: dict, name: str, count: int, default: int | None = None) -> int | None:
    """The id that the file gives to the token called `name`, or the default one, if there are so many tokens."""
    key = f"tokenizer.ggml.{name}_token_id"
    if key not in metadata:
        return default if default is not None and default < count else None
    try:
        token_id = operator.index(metadata[key])
    except TypeError:
        raise GgufError(f"{key} is {metadata[key]!r}, not a token id") from None
    if not 0 <= token_id < count:
        raise GgufError(f"{key} is {token_id}, but the vocabulary has {count} tokens")
    return token_id


def read_flag(metadata: dict, name: str, default: bool) -> bool:
    """A switch of the file's, or its default."""
    value = metadata.get(f"tokenizer.ggml.{name}", default)
    if not isinstance(value, bool | np.bool_):
        raise GgufError(f"tokenizer.ggml.{name} is {value!r}: it must be true or false")
    return bool(value)
