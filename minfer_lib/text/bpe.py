"""Byte-level BPE: text to words, a word's bytes to characters that stand for them, characters to merged symbols.

Source: llama.cpp llama-vocab.cpp and unicode.cpp; the characters that stand for bytes are GPT-2's.
"""

from collections.abc import Iterable

import regex

from minfer_lib.errors import UnsupportedError
from minfer_lib.text.merge import merge
from minfer_lib.text.vocabulary import read_merges, utf8

# --- Words: what the merges never cross ---------------------------------------------------------------------------

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_DIGIT_THEN_GPT2 = (r"\p{N}", _GPT2)


def _llama3_words(digits: str) -> str:
    contraction = "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
    return (
        rf"{contraction}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


_QWEN2 = (_llama3_words(r"\p{N}"),)
_LLAMA3 = (_llama3_words(r"\p{N}{1,3}"),)

# name in the file -> expressions applied one after the other, each to the pieces that the one before left
PRE_TOKENIZERS: dict[str, tuple[str, ...]] = {
    "default": (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"),
    "gpt-2": (_GPT2,),
    "smollm": _DIGIT_THEN_GPT2,
    "starcoder": _DIGIT_THEN_GPT2,
    "refact": _DIGIT_THEN_GPT2,
    "command-r": _DIGIT_THEN_GPT2,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
}
# Llama 3 begins every text with BOS, and takes a word that is a token as it is, without merging.
WHOLE_WORDS = frozenset({"llama-bpe", "llama3", "llama-v3"})


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


# --- The vocabulary -----------------------------------------------------------------------------------------------


class ByteLevelBpe:
    """The rules of a vocabulary of model "gpt2": words by `tokenizer.ggml.pre`, merges in the order of the file.

    Raises UnsupportedError for a pre-tokenizer that is not in PRE_TOKENIZERS, GgufError for merges that are none.
    """

    default_ids = {"bos": 11, "eos": 11}  # where the file names none, as in llama.cpp
    added_space = ""  # before a text

    def __init__(self, metadata: dict, id_of: dict[str, int]):
        pre = str(metadata.get("tokenizer.ggml.pre", "default"))
        if pre not in PRE_TOKENIZERS:
            raise UnsupportedError(f"pre-tokenizer {pre!r} is not supported; known are {', '.join(PRE_TOKENIZERS)}")
        self._expressions = PRE_TOKENIZERS[pre]
        self._whole_words = self.default_add_bos = pre in WHOLE_WORDS
        self._id_of = id_of
        self._rank_of = read_merges(metadata)

    def words(self, text: str) -> list[str]:
        return split_words(text, self._expressions)

    def word_ids(self, word: str) -> list[int]:
        characters = utf8(word).decode("latin-1").translate(CHARACTER_OF)
        if self._whole_words and characters in self._id_of:
            return [self._id_of[characters]]
        ids = []
        for symbol in merge(characters, lambda left, right: self._rank_of.get(f"{left} {right}")):
            # A rule may make a symbol that is no token: its bytes then stand alone.
            known = [symbol] if symbol in self._id_of else [byte for byte in symbol if byte in self._id_of]
            ids += [self._id_of[token] for token in known]
        return ids

    def token_bytes(self, token: str) -> bytes:
        return bytes(BYTE_OF[character] for character in token) if BYTE_OF.keys() >= set(token) else utf8(token)
