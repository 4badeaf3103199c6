"""SentencePiece vocabularies: scores, spaces, bytes, and text that comes back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minfer_lib.errors import ArgumentError, GgufError
from minfer_lib.text.tokenizer import Tokenizer

# --- A vocabulary small enough to reason about ----------------------------------------------------------------------

SPECIAL = {"<unk>": 2, "<s>": 3, "</s>": 3, "<tool>": 4, "<gap>": 5}
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SCORES = {
    "▁": -20, "a": -20, "b": -20, "c": -20, "é": -20, "▁▁": -3, "▁a": -4, "ab": -2, "bc": -1, "▁ab": -5, "aa": -6,
    "aaaa": -7,
}  # fmt: skip
TOKENS = [*SPECIAL, *BYTES, *SCORES]


def metadata(**changes):
    """The metadata of the tiny vocabulary; a change to None takes the key away."""
    keys = {
        "model": "llama",
        "tokens": TOKENS,
        "scores": [0.0] * (len(SPECIAL) + 256) + [float(score) for score in SCORES.values()],
        "token_type": [*SPECIAL.values()] + [6] * 256 + [1] * len(SCORES),
    } | changes
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items() if value is not None}


def with_token(text, score):
    """The metadata with one more token at the end."""
    lists = {key: metadata()[f"tokenizer.ggml.{key}"] for key in ("tokens", "scores", "token_type")}
    added = {"tokens": text, "scores": score, "token_type": 1}
    return metadata(**{key: [*values, added[key]] for key, values in lists.items()})


TINY = Tokenizer(metadata())
ACROSS = Tokenizer(with_token("a▁", 0.0))  # a space inside a token: no place where a text may be cut


def pieces(text, tokenizer=TINY, bos=False, **options):
    return [tokenizer.tokens[token_id] for token_id in tokenizer.encode(text, bos=bos, **options)]


# --- Encoding -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", []),
        ("abc", ["▁a", "bc"]),  # "bc" has the highest score, so "ab" finds no b
        ("ab", ["▁ab"]),  # "ab" first, and then "▁ab"
        ("aaa", ["▁a", "aa"]),
        ("aaaaa", ["▁a", "aaaa"]),
        (" ab", ["▁▁", "ab"]),
        ("c a", ["▁", "c", "▁a"]),
        ("▁a", ["▁▁", "a"]),  # as if it were a space
        ("é", ["▁", "é"]),
        ("ñ\n", ["▁", "<0xC3>", "<0xB1>", "<0x0A>"]),
        ("\x00🎉", ["▁", "<0x00>", "<0xF0>", "<0x9F>", "<0x8E>", "<0x89>"]),
    ],
)
def test_the_highest_score_first_and_bytes_for_the_rest(text, expected):
    assert pieces(text) == expected


def test_of_equal_scores_the_leftmost_pair_is_merged():
    equal = metadata(scores=[0.0] * len(TOKENS))
    assert pieces("abc", Tokenizer(equal)) == ["▁ab", "c"]
    assert pieces("abc", Tokenizer(metadata(scores=None))) == ["▁ab", "c"], "without scores all are equal"
    assert pieces("abc", Tokenizer(metadata(scores=np.zeros(len(TOKENS), np.int32)))) == ["▁ab", "c"]


def test_the_space_before_a_text_and_after_each_special_token():
    assert pieces("a<s>a<tool>a") == ["▁a", "<s>", "▁a", "<tool>", "▁a"]
    assert pieces("<s><s> a") == ["<s>", "<s>", "▁▁", "a"]
    assert pieces("a<s>a", Tokenizer(metadata(add_space_prefix=False))) == ["a", "<s>", "a"]


def test_special_tokens_are_read_or_not():
    plain = pieces("<s><tool>a", special=False)
    assert plain[-2:] == ["<tool>", "▁a"] and "<s>" not in plain
    assert TINY.decode(TINY.encode("<s>", bos=False, special=False)) == "<s>"


def test_bos_comes_by_default_and_eos_on_request():
    assert (TINY.bos, TINY.eos, TINY.add_bos, TINY.add_eos) == (1, 2, True, False)
    assert pieces("a", bos=None) == ["<s>", "▁a"]
    assert pieces("", bos=None) == ["<s>"]
    assert pieces("a", eos=True) == ["▁a", "</s>"]
    assert pieces("a", eos=None) == ["▁a"]
    with_eos = Tokenizer(metadata(add_bos_token=False, add_eos_token=True))
    assert pieces("a", with_eos, bos=None, eos=None) == ["▁a", "</s>"]
    assert pieces("a", with_eos, bos=None) == ["▁a"], "a prompt is to be continued"
    assert TINY.end_ids == {2}


def test_a_vocabulary_without_bytes_drops_what_it_cannot_say():
    tokenizer = Tokenizer(metadata(tokens=["<unk>", "<s>", "</s>", "a"], scores=None, token_type=None))
    assert pieces("añb", tokenizer) == ["a"]


def test_words_are_merged_alone_only_where_no_token_holds_a_space_inside():
    assert pieces("ca ab", ACROSS) == ["▁", "c", "a▁", "ab"]
    assert pieces("ca ab") == ["▁", "c", "a", "▁ab"]


def test_surrogates_are_raw_bytes_or_an_error():
    assert pieces(b"a\xff".decode("utf-8", "surrogateescape")) == ["▁a", "<0xFF>"]
    with pytest.raises(ArgumentError, match="surrogate at index 1"):
        TINY.encode("a\ud800")


@pytest.mark.parametrize("text", ["a" * 100_000, " " * 100_000, "ab c" * 25_000, "ñ" * 50_000])
@pytest.mark.parametrize("across", [False, True])
def test_a_very_long_text_ends(text, across):
    tokenizer = ACROSS if across else TINY
    assert tokenizer.decode(tokenizer.encode(text, bos=False)) == text


# --- Decoding -----------------------------------------------------------------------------------------------------

TEXTS = st.text() | st.lists(st.sampled_from(["a", "ab", "bc", " ", "  ", "é", "🎉", "\n", "<tool>"])).map("".join)


@given(text=TEXTS)
@pytest.mark.parametrize("prefix", [True, False])
def test_decode_undoes_encode(prefix, text):
    tokenizer = Tokenizer(metadata(add_space_prefix=prefix))
    # "▁" is how a space is written, so it comes back as one; after a special token a space is added.
    expected = text.replace("▁", " ")
    if prefix:
        head, *rest = expected.split("<tool>")
        expected = head + "".join("<tool>" + (" " + part if part else "") for part in rest)
    assert tokenizer.decode(tokenizer.encode(text, special=False, bos=False)) == expected


def test_decode_takes_the_added_space_away_at_the_beginning_only():
    ids = TINY.encode("ab ab", bos=False)
    assert TINY.decode(ids) == "ab ab"
    assert TINY.decode(ids[1:]) == "ab"
    assert TINY.decode([TINY.bos, *ids]) == "<s> ab ab"
    assert TINY.decode([]) == ""


def test_unused_tokens_have_no_text():
    assert TINY.decode([TOKENS.index("<gap>"), TOKENS.index("a")]) == "a"


def test_a_stream_continues_a_text():
    ids = TINY.encode("ab é🎉", bos=False)
    stream = TINY.stream()
    assert [stream.feed(token_id) for token_id in ids] == [" ab", " ", "é", "", "", "", "🎉"]
    assert stream.finish() == ""


@given(st.lists(st.integers(0, len(TINY) - 1)))
def test_a_stream_says_what_decode_says(ids):
    stream = TINY.stream()
    said = "".join(map(stream.feed, ids)) + stream.finish()
    space = bool(ids) and TINY.token_bytes(ids[0]).startswith(b" ")
    assert said == space * " " + TINY.decode(ids)


# --- Vocabularies that it must refuse -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"scores": [0.0]}, r"scores holds float64\[1\].*273 tokens"),
        ({"scores": ["high"] * len(TOKENS)}, "scores"),
        ({"scores": [[0.0], [0.0, 1.0]]}, "scores"),
        ({"scores": [*[0.0] * (len(TOKENS) - 1), float("nan")]}, r"scores\[272\] is nan"),
        ({"scores": [*[0.0] * (len(TOKENS) - 1), 1e39]}, r"scores\[272\] is 1e\+39"),
        ({"token_type": [6] * len(TOKENS)}, r"tokens\[0\] is '<unk>'.*byte.*<0x00>"),
        ({"tokens": [*TOKENS[:-1], "a"]}, "'a' more than once"),
        ({"add_space_prefix": "no"}, "add_space_prefix is 'no'"),
        ({"add_bos_token": 1}, "add_bos_token is 1"),
        ({"tokens": ["a"], "scores": None, "token_type": None}, "BOS"),
        (
            {"tokens": ["a"], "scores": None, "token_type": None, "add_bos_token": False, "add_eos_token": True},
            "EOS",
        ),
    ],
)
def test_vocabularies_that_contradict_themselves(changes, message):
    with pytest.raises(GgufError, match=message):
        Tokenizer(metadata(**changes))
