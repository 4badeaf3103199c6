"""SentencePiece's BPE: characters merged into tokens, the token with the highest score first; the rest as bytes.

There are no merge rules: two neighbours may be merged if together they are a token. A space is a character like any
other, written "▁", and one is put before a text, and before what follows a special token, so that a first word is the
same word as elsewhere after a space.
Source: llama.cpp llama-vocab.cpp, llm_tokenizer_spm_session and llama_vocab::impl::tokenize.
"""

import regex

from minfer_lib.text.merge import merge
from minfer_lib.text.vocabulary import read_flag, read_scores, utf8

SPACE = "▁"
_WORD = regex.compile(f"{SPACE}*[^{SPACE}]+|{SPACE}+")


class SentencePiece:
    """The rules of a vocabulary of model "llama". Raises GgufError for scores that are none."""

    default_ids = {"bos": 1, "eos": 2}  # where the file names none, as in llama.cpp
    default_add_bos = True

    def __init__(self, metadata: dict, id_of: dict[str, int]):
        self._id_of = id_of
        scores = read_scores(metadata, len(id_of))
        self._rank_of = dict(zip(id_of, (-score for score in scores), strict=True))
        self.added_space = " " if read_flag(metadata, "add_space_prefix", True) else ""
        # Where no token holds a space after something else, no merge can cross that place: a text may be cut there,
        # and each word is merged once for all its occurrences.
        self._cuts_at_spaces = not any(SPACE in token.lstrip(SPACE) for token in id_of)

    def words(self, text: str) -> list[str]:
        text = (self.added_space + text).replace(" ", SPACE)
        return _WORD.findall(text) if self._cuts_at_spaces else [text]

    def word_ids(self, word: str) -> list[int]:
        ids = []
        for symbol in merge(word, lambda left, right: self._rank_of.get(left + right)):
            if symbol in self._id_of:
                ids.append(self._id_of[symbol])
            else:
                tokens = (f"<0x{byte:02X}>" for byte in utf8(symbol))
                ids += [self._id_of[token] for token in tokens if token in self._id_of]
        return ids

    def token_bytes(self, token: str) -> bytes:
        return utf8(token.replace(SPACE, " "))
