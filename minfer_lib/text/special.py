"""Special tokens: read from the raw text before anything else, and, some of them, the end of a generation.

Source: llama.cpp llama-vocab.cpp, llama_vocab::impl::load and tokenizer_st_partition.
"""

from collections.abc import Iterable, Iterator

from minfer_lib.text.vocabulary import utf8

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
# Markers around the gap that a code model fills: control tokens too, whatever type the file gives them.
GAP_TEXTS = (
    *("<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>"),
    *("<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>"),
    *("<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>"),
)


def longest_first(specials: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """(text, id) in the order in which to look for them, by length in bytes."""
    return sorted(specials, key=lambda special: -len(utf8(special[0])))


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


def _cut(fragment: str, text: str, token_id: int) -> Iterator[str | int]:
    first, *others = fragment.split(text)
    yield first
    for other in others:
        yield token_id
        yield other
