"""What a GGUF file says of its vocabulary, checked: tokens, merge rules, types, special ids, and what ends a text.

Source: llama.cpp llama-vocab.cpp, llama_vocab::impl::load.
"""

import operator

import numpy as np

from minfer_lib.errors import GgufError, UnsupportedError
from minfer_lib.text.bpe import PRE_TOKENIZERS

UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4  # tokenizer.ggml.token_type; 1 is a normal token, 5 unused, 6 a byte

# Texts that end a generation whatever the file says of them, as in llama.cpp. The last three lines are markers of
# code models: they begin another file, which is an end too.
END_TEXTS = (
    *("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|calls|>", "<|flush|>"),
    *("<|endoftext|>", "<|end_of_text|>", "<end_of_turn>", "<end_of_utterance>", "<turn|>", "<|tool_response>"),
    *("</s>", "<eos>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<｜end▁of▁sentence｜>", "[e~["),
    *("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    *("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    *("<|file_sep|>",),
)
END_KEYS = ("eot", "eom", "fim_pad", "fim_rep", "fim_sep")
LEGACY_ID = 11  # BOS and EOS of a byte-level BPE file that names none, as in llama.cpp


def _strings(metadata: dict, name: str) -> list[str]:
    strings = metadata.get(f"tokenizer.ggml.{name}")
    if not isinstance(strings, list) or set(map(type, strings)) - {str}:
        raise GgufError(f"tokenizer.ggml.{name} is missing or not a list of strings: the vocabulary cannot be read")
    return strings


def read_tokens(metadata: dict) -> tuple[list[str], dict[str, int]]:
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
    merges = _strings(metadata, "merges")
    for rank, rule in enumerate(merges):
        if rule.find(" ", 1) < 0:
            raise GgufError(f"tokenizer.ggml.merges[{rank}] is {rule!r}: a rule is two symbols with a space between")
    # Backwards, so that of two equal rules the first keeps its rank.
    return dict(zip(reversed(merges), range(len(merges) - 1, -1, -1), strict=True))


def read_types(metadata: dict, count: int) -> np.ndarray:
    """The type of each token, int[count]; a file without them has normal tokens only."""
    given = metadata.get("tokenizer.ggml.token_type")
    if given is None:
        return np.ones(count, np.int64)
    types = np.array(given)
    if types.dtype.kind not in "iu" or types.shape != (count,):
        raise GgufError(
            f"tokenizer.ggml.token_type holds {types.dtype}{list(types.shape)}: it must be one integer for each of the "
            f"{count} tokens"
        )
    return types


def read_special_id(metadata: dict, name: str, count: int, default: int | None = None) -> int | None:
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


def check_supported(metadata: dict) -> str:
    """The pre-tokenizer's name, if this module can read the vocabulary."""
    model = str(metadata.get("tokenizer.ggml.model", "no_vocab"))
    if model == "no_vocab":
        raise UnsupportedError("this model has no vocabulary: it cannot read or write text, feed it token ids instead")
    if model != "gpt2":
        raise UnsupportedError(f"tokenizer model {model!r} is not supported, only byte-level BPE ('gpt2'): feed ids")
    pre = str(metadata.get("tokenizer.ggml.pre", "default"))
    if pre not in PRE_TOKENIZERS:
        raise UnsupportedError(f"pre-tokenizer {pre!r} is not supported; known are {', '.join(PRE_TOKENIZERS)}")
    return pre
