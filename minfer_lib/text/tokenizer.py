"""Text to token ids and back, as a GGUF file describes it.

Special tokens are cut out of the raw text first. What is left is split into words, and the characters of each word are
merged into tokens: `bpe` and `sentencepiece` hold the two sets of rules for that.
"""

import codecs
import operator
import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from minfer_lib.errors import ArgumentError, GgufError, UnsupportedError
from minfer_lib.text.bpe import ByteLevelBpe
from minfer_lib.text.sentencepiece import SentencePiece
from minfer_lib.text.special import END_KEYS, END_TEXTS, GAP_TEXTS, longest_first, partition
from minfer_lib.text.vocabulary import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    read_flag,
    read_special_id,
    read_tokens,
    read_types,
    utf8,
)

RULES = {"gpt2": ByteLevelBpe, "llama": SentencePiece}  # tokenizer.ggml.model -> how words become tokens
SPECIAL_TYPES = (UNKNOWN, CONTROL, USER_DEFINED)  # read from the raw text, and written as they are called
BYTE_TEXT = re.compile("<0x[0-9A-F]{2}>")
_LONGEST_KEPT = 64  # characters of a word whose ids are remembered


def _rules(metadata: dict) -> type[ByteLevelBpe] | type[SentencePiece]:
    model = str(metadata.get("tokenizer.ggml.model", "no_vocab"))
    if model == "no_vocab":
        raise UnsupportedError("this model has no vocabulary: it cannot read or write text, feed it token ids instead")
    if model not in RULES:
        raise UnsupportedError(
            f"tokenizer model {model!r} is not supported, only 'gpt2' (byte-level BPE) and 'llama' (SentencePiece): "
            "feed token ids instead"
        )
    return RULES[model]


class Tokenizer:
    """A GGUF file's vocabulary: text to token ids and back.

    `metadata` is the file's dict of keys, of which it reads `tokenizer.ggml.*`: model ("gpt2": byte-level BPE, or
    "llama": SentencePiece), pre, tokens (list of str), token_type (integers), merges (list of str) or scores (numbers),
    the special ids, add_bos_token, add_eos_token and add_space_prefix.

    Attributes: `.tokens` (list of str, as in the file), `.bos` and `.eos` (an id or None), `.add_bos` and `.add_eos`
    (whether the file wants BOS before a text, EOS after it), `.end_ids` (frozenset of the ids that end a generation).

    Raises UnsupportedError for a kind of vocabulary that it cannot read, GgufError for one that contradicts itself.
    Source: llama.cpp llama-vocab.cpp, llama_vocab::impl::load.
    """

    def __init__(self, metadata: dict):
        rules = _rules(metadata)
        self.tokens, self._id_of = read_tokens(metadata)
        self._rules = rules(metadata, self._id_of)
        self._word_ids = lru_cache(maxsize=1 << 16)(self._rules.word_ids)

        count = len(self.tokens)
        self.bos = read_special_id(metadata, "bos", count, rules.default_ids["bos"])
        self.eos = read_special_id(metadata, "eos", count, rules.default_ids["eos"])
        self.add_bos = read_flag(metadata, "add_bos_token", self._rules.default_add_bos)
        self.add_eos = read_flag(metadata, "add_eos_token", False)
        for name, wanted, token_id in (("bos", self.add_bos, self.bos), ("eos", self.add_eos, self.eos)):
            if wanted and token_id is None:
                raise GgufError(f"the file wants {name.upper()} (add_{name}_token), but names no {name}_token_id")

        named_ends = {self.eos, *(read_special_id(metadata, name, count) for name in END_KEYS)} - {None}
        self.end_ids = frozenset(named_ends | {*self._of_texts(END_TEXTS)})

        types = read_types(metadata, count)
        types[self._of_texts(END_TEXTS + GAP_TEXTS)] = CONTROL  # or they would be read letter by letter
        self._types = types.tolist()
        self._specials = self._of_types(types, SPECIAL_TYPES)
        self._user_defined = self._of_types(types, (USER_DEFINED,))
        self._byte_of = dict(map(self._byte, np.flatnonzero(types == BYTE).tolist()))

    def _of_texts(self, texts: Iterable[str]) -> list[int]:
        return [self._id_of[text] for text in texts if text in self._id_of]

    def _of_types(self, types: np.ndarray, wanted: tuple[int, ...]) -> list[tuple[str, int]]:
        return longest_first((self.tokens[i], i) for i in np.flatnonzero(np.isin(types, wanted)).tolist())

    def _byte(self, token_id: int) -> tuple[int, bytes]:
        text = self.tokens[token_id]
        if not BYTE_TEXT.fullmatch(text):
            raise GgufError(
                f"tokenizer.ggml.tokens[{token_id}] is {text!r}, of the type that stands for a byte: it must be one of "
                "<0x00> to <0xFF>"
            )
        return token_id, bytes.fromhex(text[3:5])

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str, special: bool = True, bos: bool | None = None, eos: bool | None = False) -> list[int]:
        """Token ids of text.

        special: whether "<|im_start|>" in the text is the token of that name, or twelve characters to read as any
        others; tokens that the vocabulary's makers defined as words of their own (type 4) are found either way.
        bos, eos: whether BOS comes first and EOS last; None does as the file says. A prompt is to be continued, so EOS
        is only appended on request.

        A byte that no token stands for is dropped. A lone surrogate from U+DC80 to U+DCFF is the raw byte that Python
        made it from (surrogateescape, as in sys.argv); any other lone surrogate is an ArgumentError.
        """
        self._check_text(text)
        ids = self._edge("bos", bos, self.add_bos, self.bos)
        for fragment in partition(text, self._specials if special else self._user_defined):
            if isinstance(fragment, str):
                for word in self._rules.words(fragment):
                    ids += self._word_ids(word) if len(word) <= _LONGEST_KEPT else self._rules.word_ids(word)
            else:
                ids.append(fragment)
        return ids + self._edge("eos", eos, self.add_eos, self.eos)

    @staticmethod
    def _edge(name: str, asked: bool | None, wanted: bool, token_id: int | None) -> list[int]:
        """The token at one end of a text, or none."""
        if not (wanted if asked is None else asked):
            return []
        if token_id is None:
            raise ArgumentError(f"{name}=True, but this vocabulary names no {name.upper()} token")
        return [token_id]

    @staticmethod
    def _check_text(text: str) -> None:
        if not isinstance(text, str):
            raise ArgumentError(f"encode takes a str, not {type(text).__name__}")
        try:
            utf8(text)
        except UnicodeEncodeError as error:
            raise ArgumentError(f"the text is not Unicode: a lone surrogate at index {error.start}") from None

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token adds to the text; a special token adds its own text. ArgumentError if out of range."""
        try:
            index = operator.index(token_id)
        except TypeError:
            raise ArgumentError(f"a token id is an integer, not {token_id!r}") from None
        if not 0 <= index < len(self.tokens):
            raise ArgumentError(f"token id {index} is outside the vocabulary of {len(self.tokens)} tokens")
        text, type_ = self.tokens[index], self._types[index]
        if type_ in SPECIAL_TYPES:
            return utf8(text)
        if type_ == BYTE:
            return self._byte_of[index]
        return self._rules.token_bytes(text) if type_ == NORMAL else b""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids. Bytes that are not UTF-8 become U+FFFD. ArgumentError for an id out of range.

        The ids are a text from its beginning, so the space that SentencePiece puts there is taken away again. For ids
        that continue a text, use `stream`.
        """
        pieces = list(map(self.token_bytes, ids))
        if pieces:
            pieces[0] = pieces[0].removeprefix(self._rules.added_space.encode())
        return b"".join(pieces).decode("utf-8", "replace")

    def stream(self) -> "TokenStream":
        """A decoder for tokens that arrive one by one and continue a text."""
        return TokenStream(self)


class TokenStream:
    """Decodes tokens one by one, and holds back the bytes of a character that is not complete yet.

    What `feed` and the last `finish` return, joined, is what the ids add to a text that is there already: what
    `Tokenizer.decode` returns for them, and, with SentencePiece, the space before the first word.
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
