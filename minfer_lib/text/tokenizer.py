"""Byte-level BPE: text to token ids and back, as a GGUF file describes it.

Four steps lead from text to ids. Special tokens are cut out of the raw text; what is left is split into words by the
model's regular expressions; a word's bytes are written as printable characters and its neighbours merged, the earliest
rule of the file first; each merged symbol is looked up.
"""

import codecs
import operator
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

from minfer_lib.errors import ArgumentError, GgufError
from minfer_lib.text.bpe import BYTE_OF, CHARACTER_OF, PRE_TOKENIZERS, WHOLE_WORDS, merge, split_words, utf8
from minfer_lib.text.vocabulary import (
    CONTROL,
    END_KEYS,
    END_TEXTS,
    LEGACY_ID,
    UNKNOWN,
    USER_DEFINED,
    check_supported,
    read_merges,
    read_special_id,
    read_tokens,
    read_types,
)


def _cut(fragment: str, text: str, token_id: int) -> Iterator[str | int]:
    first, *others = fragment.split(text)
    yield first
    for other in others:
        yield token_id
        yield other


def partition(text: str, specials: Iterable[tuple[str, int]]) -> list[str | int]:
    """Cut special tokens out of text, one after the other in the order given: a list of pieces of text and ids.

    Longest first is the order that matters: no part of a longer token is then taken for a shorter one.
    """
    fragments: list[str | int] = [text]
    for special, token_id in specials:
        if special in text:
            fragments = [
                piece
                for fragment in fragments
                for piece in (_cut(fragment, special, token_id) if isinstance(fragment, str) else (fragment,))
            ]
    return [fragment for fragment in fragments if fragment != ""]


class Tokenizer:
    """A GGUF file's vocabulary: text to token ids and back.

    `metadata` is the file's dict of keys, of which it reads `tokenizer.ggml.*`: model, pre, tokens (list of str),
    token_type (integers), merges (list of str), the special ids and add_bos_token.

    Attributes: `.tokens` (list of str, as in the file), `.bos` and `.eos` (an id or None), `.add_bos` (whether the file
    wants BOS before a text), `.end_ids` (frozenset of the ids that end a generation).

    Raises UnsupportedError for a kind of vocabulary that it cannot read, GgufError for one that contradicts itself.
    Source: llama.cpp llama-vocab.cpp, llama_vocab::impl::load.
    """

    def __init__(self, metadata: dict):
        pre = check_supported(metadata)
        self._expressions = PRE_TOKENIZERS[pre]
        self._whole_words = pre in WHOLE_WORDS
        self.tokens, self._id_of = read_tokens(metadata)
        self._rank_of = read_merges(metadata)

        count = len(self.tokens)
        self.bos = read_special_id(metadata, "bos", count, LEGACY_ID)
        self.eos = read_special_id(metadata, "eos", count, LEGACY_ID)
        self.add_bos = bool(metadata.get("tokenizer.ggml.add_bos_token", pre in WHOLE_WORDS))
        if self.add_bos and self.bos is None:
            raise GgufError("the file wants BOS before a text (add_bos_token), but names no bos_token_id")

        named_ends = {self.eos, *(read_special_id(metadata, name, count) for name in END_KEYS)} - {None}
        text_ends = {self._id_of[text] for text in END_TEXTS if text in self._id_of}
        self.end_ids = frozenset(named_ends | text_ends)

        types = read_types(metadata, count)
        types[list(text_ends)] = CONTROL  # some files call them normal, and then would read them letter by letter
        self._user_defined = self._longest_first(np.flatnonzero(types == USER_DEFINED))
        self._specials = self._longest_first(np.flatnonzero(np.isin(types, (UNKNOWN, CONTROL, USER_DEFINED))))
        self._special_ids = frozenset(token_id for _, token_id in self._specials)
        self._word_ids = lru_cache(maxsize=1 << 16)(self._merge_word)

    def _longest_first(self, ids: np.ndarray) -> list[tuple[str, int]]:
        texts = [(self.tokens[token_id], token_id) for token_id in ids.tolist()]
        return sorted(texts, key=lambda special: -len(utf8(special[0])))

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str, special: bool = True, bos: bool | None = None) -> list[int]:
        """Token ids of text.

        special: whether "<|im_start|>" in the text is the token of that name, or twelve characters to read as any
        others; tokens that the vocabulary's makers defined as words of their own (type 4) are found either way.
        bos: whether BOS comes first; None does as the file says. EOS is never appended: a prompt is to be continued.

        A byte that no token stands for is dropped. A lone surrogate from U+DC80 to U+DCFF is the raw byte that Python
        made it from (surrogateescape, as in sys.argv); any other lone surrogate is an ArgumentError.
        """
        self._check_text(text)
        bos = self.add_bos if bos is None else bos
        if bos and self.bos is None:
            raise ArgumentError("bos=True, but this vocabulary names no BOS token")
        ids = [self.bos] if bos else []
        for fragment in partition(text, self._specials if special else self._user_defined):
            if isinstance(fragment, str):
                for word in split_words(fragment, self._expressions):
                    ids += self._word_ids(word)
            else:
                ids.append(fragment)
        return ids

    @staticmethod
    def _check_text(text: str) -> None:
        if not isinstance(text, str):
            raise ArgumentError(f"encode takes a str, not {type(text).__name__}")
        try:
            utf8(text)
        except UnicodeEncodeError as error:
            raise ArgumentError(f"the text is not Unicode: a lone surrogate at index {error.start}") from None

    def _merge_word(self, word: str) -> tuple[int, ...]:
        """Ids of one word; `_word_ids` remembers them."""
        characters = utf8(word).decode("latin-1").translate(CHARACTER_OF)
        if self._whole_words and characters in self._id_of:
            return (self._id_of[characters],)
        ids = []
        for symbol in merge(characters, self._rank_of):
            # A rule may make a symbol that is no token: its bytes then stand alone.
            known = [symbol] if symbol in self._id_of else [byte for byte in symbol if byte in self._id_of]
            ids += [self._id_of[token] for token in known]
        return tuple(ids)

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token adds to the text; a special token adds its own text. ArgumentError if out of range."""
        try:
            index = operator.index(token_id)
        except TypeError:
            raise ArgumentError(f"a token id is an integer, not {token_id!r}") from None
        if not 0 <= index < len(self.tokens):
            raise ArgumentError(f"token id {index} is outside the vocabulary of {len(self.tokens)} tokens")
        text = self.tokens[index]
        if index in self._special_ids or not BYTE_OF.keys() >= set(text):
            return utf8(text)
        return bytes(BYTE_OF[character] for character in text)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids. Bytes that are not UTF-8 become U+FFFD. ArgumentError for an id out of range."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")

    def stream(self) -> "TokenStream":
        """A decoder for tokens that arrive one by one."""
        return TokenStream(self)


class TokenStream:
    """Decodes tokens one by one, and holds back the bytes of a character that is not complete yet.

    What `feed` and the last `finish` return, joined, is what `Tokenizer.decode` returns for the same ids.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token_id: int) -> str:
        """The text that this token completes; often "" in the middle of a character."""
        return self._decoder.decode(self._tokenizer.token_bytes(token_id))

    def finish(self) -> str:
        """What was held back: "", or U+FFFD for a character that never ended. The stream can then be used again."""
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return text
