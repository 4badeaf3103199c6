"""Byte-pair encoding: text to words, words to characters that stand for bytes, characters to merged symbols.

Source: llama.cpp llama-vocab.cpp and unicode.cpp; the characters that stand for bytes are GPT-2's.
"""

import heapq
from collections.abc import Iterable

import regex

# --- Words: what the merges never cross ---------------------------------------------------------------------------

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_DIGIT_THEN_GPT2 = (r"\p{N}", _GPT2)


def _llama3_words(digits: str) -> str:
    contraction = "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
    return (
        rf"{contraction}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


# name in the file -> expressions applied one after the other, each to the pieces that the one before left
PRE_TOKENIZERS: dict[str, tuple[str, ...]] = {
    "default": (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"),
    "gpt-2": (_GPT2,),
    "smollm": _DIGIT_THEN_GPT2,
    "starcoder": _DIGIT_THEN_GPT2,
    "refact": _DIGIT_THEN_GPT2,
    "command-r": _DIGIT_THEN_GPT2,
    "qwen2": (_llama3_words(r"\p{N}"),),
    "llama-bpe": (_llama3_words(r"\p{N}{1,3}"),),
}
# Llama 3 begins every text with BOS, and takes a word that is a token as it is, without merging.
WHOLE_WORDS = frozenset({"llama-bpe"})


def split_words(text: str, expressions: Iterable[str]) -> list[str]:
    """Split text into words. What an expression does not match stays as a piece: joined, the words are the text."""
    pieces = [text]
    for expression in expressions:
        # The brackets make split() keep what it matched, between the gaps.
        split = regex.compile(f"({expression})").split
        pieces = [word for piece in pieces for word in split(piece) if word]
    return pieces


# --- Bytes as characters ------------------------------------------------------------------------------------------


def _byte_characters() -> list[str]:
    """The character that stands for each byte: itself where it prints, else the next one from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


CHARACTER_OF = dict(enumerate(_byte_characters()))
BYTE_OF = {character: byte for byte, character in CHARACTER_OF.items()}


def utf8(text: str) -> bytes:
    """UTF-8, where U+DC80 … U+DCFF are the raw bytes that Python's surrogateescape made them from."""
    return text.encode("utf-8", "surrogateescape")


# --- Merges -------------------------------------------------------------------------------------------------------


def merge(symbols: Iterable[str], rank_of: dict[str, int]) -> list[str]:
    """Merge neighbours until no rule is left: the lowest rank first, the leftmost of equals. O(n log n).

    `rank_of` maps "left right" to the rule's place in the file. Source: llama.cpp llm_tokenizer_bpe_session.
    """
    symbols = list(symbols)
    end = len(symbols)
    # A linked list: a merge grows the left symbol and takes the right one out of the chain.
    before, after = list(range(-1, end - 1)), list(range(1, end + 1))
    queue: list[tuple[int, int]] = []

    def rank(left: int) -> int | None:
        """Rank of the pair that begins at `left`, as it is now."""
        if left < 0 or not symbols[left] or after[left] == end:
            return None
        return rank_of.get(f"{symbols[left]} {symbols[after[left]]}")

    def offer(left: int) -> None:
        found = rank(left)
        if found is not None:
            heapq.heappush(queue, (found, left))

    for left in range(end - 1):
        offer(left)
    while queue:
        promised, left = heapq.heappop(queue)
        if rank(left) != promised:  # one of the two was merged with another since
            continue
        right = after[left]
        symbols[left] += symbols[right]
        symbols[right] = ""
        after[left] = after[right]
        if after[left] < end:
            before[after[left]] = left
        offer(before[left])
        offer(left)
    return [symbol for symbol in symbols if symbol]
