"""The tokenizer against its rules, against Hugging Face's implementation, and against llama.cpp's ids."""

import json
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers

from minfer_lib.errors import ArgumentError, GgufError, UnsupportedError
from minfer_lib.formats.gguf import read_gguf
from minfer_lib.text.bpe import PRE_TOKENIZERS, split_words
from minfer_lib.text.special import partition
from minfer_lib.text.tokenizer import Tokenizer

DATA = Path(__file__).parents[2] / "data"

# --- A vocabulary small enough to reason about: 256 bytes, a few merges, a few special tokens -----------------------

PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
ALPHABET = [chr(b) if b in PRINTABLE else chr(256 + sum(a not in PRINTABLE for a in range(b))) for b in range(256)]
MERGES = ["Ġ t", "h e", "Ġt he", "a a", "aa a", "i n", "1 2", "Ġ Ġ", "Ã ©", "Ċ Ċ", "' t", "l l", "he ll", "e ll", "Ġ a"]
MERGED = [rule.replace(" ", "") for rule in MERGES]
SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<think>", "<|im_end|>!", "<end_of_turn>"]
TYPES = {"<unk>": 2, "<think>": 4, "<end_of_turn>": 1}
FIRST_SPECIAL = 256 + len(MERGED)


def metadata(pre="gpt-2", **changes):
    """The metadata of the tiny vocabulary; a change to None takes the key away."""
    keys = {
        "model": "gpt2",
        "pre": pre,
        "tokens": ALPHABET + MERGED + SPECIAL,
        "token_type": np.array([1] * FIRST_SPECIAL + [TYPES.get(text, 3) for text in SPECIAL], np.int32),
        "merges": MERGES,
        "bos_token_id": FIRST_SPECIAL + SPECIAL.index("<s>"),
        "eos_token_id": FIRST_SPECIAL + SPECIAL.index("</s>"),
    } | changes
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items() if value is not None}


TINY = Tokenizer(metadata())


def pieces(text, tokenizer=TINY, **options):
    return [tokenizer.tokens[token_id] for token_id in tokenizer.encode(text, **options)]


def special_id(text):
    return FIRST_SPECIAL + SPECIAL.index(text)


# --- The parts ----------------------------------------------------------------------------------------------------


def test_alphabet_is_gpt2s():
    assert sorted(ALPHABET) == sorted(pre_tokenizers.ByteLevel.alphabet())
    assert [TINY.token_bytes(byte) for byte in range(256)] == [bytes([byte]) for byte in range(256)]


@pytest.mark.parametrize("pre", PRE_TOKENIZERS)
@settings(deadline=None)
@given(text=st.text())
def test_words_joined_are_the_text(pre, text):
    words = split_words(text, PRE_TOKENIZERS[pre])
    assert "".join(words) == text and "" not in words


@pytest.mark.parametrize(
    "pre, text, words",
    [
        ("gpt-2", "don't  stop 123!\n\nnow", ["don", "'t", " ", " stop", " 123", "!", "\n", "\n", "now"]),
        ("smollm", "don't  stop 123!\n\nnow", ["don", "'t", " ", " stop", " ", "1", "2", "3", "!", "\n", "\n", "now"]),
        ("qwen2", "DON'T  stop 12!\n\nnow", ["DON", "'T", " ", " stop", " ", "1", "2", "!\n\n", "now"]),
        ("llama-bpe", "x=12345 \n y", ["x", "=", "123", "45", " \n", " y"]),
        ("default", "a+b 12345 'tis", ["a", "+", "b", " ", "123", "45", " ", "'", "tis"]),
    ],
)
def test_words_of_each_pre_tokenizer(pre, text, words):
    assert split_words(text, PRE_TOKENIZERS[pre]) == words


def test_partition_cuts_the_longer_special_token_first():
    # "bcd" is cut out before "ab" is looked for, so that "ab" is not found, although it begins earlier.
    assert partition("abcd ab", [("bcd", 1), ("ab", 2)]) == ["a", 1, " ", 2]


# --- Encoding -----------------------------------------------------------------------------------------------------


def test_encode_merges_within_words():
    assert pieces("the hell in the") == ["t", "he", "Ġ", "hell", "Ġ", "in", "Ġthe"]
    assert pieces("café\n\n") == ["c", "a", "f", "Ã©", "ĊĊ"]
    assert pieces("") == []


def test_special_tokens_are_read_or_not():
    text = "<|im_start|>in<think><|im_end|>!"
    assert pieces(text) == ["<|im_start|>", "in", "<think>", "<|im_end|>!"]
    plain = pieces(text, special=False)
    assert "<|im_start|>" not in plain and "<|im_end|>!" not in plain
    assert "<think>" in plain, "a user-defined token is part of the language, special or not"
    assert TINY.decode(TINY.encode(text, special=False)) == text


def test_an_end_token_that_the_file_calls_normal_is_special_all_the_same():
    assert pieces("<end_of_turn>") == ["<end_of_turn>"]


def test_end_ids():
    assert TINY.end_ids == {special_id(text) for text in ("</s>", "<|im_end|>", "<end_of_turn>")}
    assert 65 in Tokenizer(metadata(eot_token_id=65)).end_ids


@pytest.mark.parametrize(
    "pre, key, asked, expected",
    [
        ("gpt-2", None, None, False),
        ("gpt-2", True, None, True),
        ("gpt-2", True, False, False),
        ("gpt-2", False, True, True),
        ("llama-bpe", None, None, True),
        ("llama-bpe", False, None, False),
    ],
)
def test_bos_follows_the_file_unless_told(pre, key, asked, expected):
    tokenizer = Tokenizer(metadata(pre, add_bos_token=key))
    assert tokenizer.encode("x", bos=asked) == [tokenizer.bos] * expected + [ord("x")]


def test_special_ids_that_the_file_leaves_out():
    legacy = Tokenizer(metadata(bos_token_id=None, eos_token_id=None))
    assert (legacy.bos, legacy.eos) == (11, 11)  # as in llama.cpp
    small = Tokenizer(metadata(tokens=["a", "b"], token_type=None, merges=[], bos_token_id=None, eos_token_id=None))
    assert (small.bos, small.eos) == (None, None)
    with pytest.raises(ArgumentError, match="BOS"):
        small.encode("a", bos=True)


def test_llama_bpe_takes_a_whole_word_before_any_merge():
    tokens = [*ALPHABET, "xyz"]
    keys = {"tokens": tokens, "token_type": None, "merges": [], "bos_token_id": 0, "eos_token_id": 0}
    assert Tokenizer(metadata("llama-bpe", **keys)).encode("xyz", bos=False) == [256]
    assert Tokenizer(metadata("gpt-2", **keys)).encode("xyz") == [ord(c) for c in "xyz"]


def test_bytes_without_a_token_are_dropped():
    tokenizer = Tokenizer(metadata(tokens=["a", "Ã"], token_type=None, merges=["a a"], bos_token_id=0, eos_token_id=0))
    assert tokenizer.encode("aéb") == [0, 1]
    assert tokenizer.encode("aa") == [0, 0], "a merge that makes no token falls back to its bytes"


def test_of_two_equal_merges_the_first_counts():
    tokenizer = Tokenizer(metadata(merges=[*MERGES, "h e", "Ġ t"]))
    assert pieces("the the", tokenizer) == ["t", "he", "Ġthe"]


def test_surrogates_are_raw_bytes_or_an_error():
    text = b"a\xff\xc3".decode("utf-8", "surrogateescape")
    assert [TINY.token_bytes(i) for i in TINY.encode(text)] == [b"a", b"\xff", b"\xc3"]
    with pytest.raises(ArgumentError, match="surrogate at index 1"):
        TINY.encode("a\ud800")
    with pytest.raises(ArgumentError, match="str"):
        TINY.encode(b"bytes")


@pytest.mark.parametrize("text", ["a" * 200_000, "\n" * 200_000, "hell" * 50_000])
def test_a_very_long_word_ends(text):
    assert TINY.decode(TINY.encode(text)) == text  # the naive search would sit here for hours


# --- Decoding -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pre", PRE_TOKENIZERS)
@pytest.mark.parametrize("special", [True, False])
@settings(deadline=None)
@given(text=st.text() | st.lists(st.sampled_from([*SPECIAL, "the ", "é", "🎉", "12", "\n"])).map("".join))
def test_decode_undoes_encode(pre, special, text):
    tokenizer = Tokenizer(metadata(pre))
    assert tokenizer.decode(tokenizer.encode(text, special=special, bos=False)) == text


def test_decode_renders_special_tokens_and_replaces_broken_utf8():
    assert TINY.decode([special_id("<|im_start|>"), 0xE9, ord("x"), 0xC3]) == "<|im_start|>\ufffdx\ufffd"
    assert TINY.token_bytes(np.int32(special_id("<think>"))) == b"<think>"


def test_a_token_that_is_not_utf8_keeps_its_bytes():
    tokens = [*ALPHABET, b"<\xff>".decode("utf-8", "surrogateescape"), "snow☃"]
    tokenizer = Tokenizer(metadata(tokens=tokens, token_type=None, bos_token_id=0, eos_token_id=0))
    assert tokenizer.token_bytes(256) == b"<\xff>"
    assert tokenizer.token_bytes(257) == "snow☃".encode()


@pytest.mark.parametrize("bad", [-1, len(TINY), 10**9, 1.5, None, "x"])
def test_ids_out_of_range(bad):
    for call in (TINY.token_bytes, TINY.stream().feed, lambda token_id: TINY.decode([token_id])):
        with pytest.raises(ArgumentError, match="token id"):
            call(bad)


@settings(deadline=None)
@given(st.lists(st.integers(0, len(TINY) - 1)))
def test_a_stream_says_what_decode_says(ids):
    stream = TINY.stream()
    assert "".join(map(stream.feed, ids)) + stream.finish() == TINY.decode(ids)


def test_a_stream_never_shows_half_a_character():
    stream = TINY.stream()
    assert [stream.feed(byte) for byte in "é🎉".encode()] == ["", "é", "", "", "", "🎉"]
    assert (stream.feed(0xF0), stream.finish(), stream.finish()) == ("", "\ufffd", "")
    assert stream.feed(ord("x")) == "x", "and can be used again"


# --- Vocabularies that it must refuse -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"model": None}, "no vocabulary.*ids"),
        ({"model": "no_vocab"}, "no vocabulary.*ids"),
        ({"model": "none"}, "'none'.*ids"),
        ({"model": "bert"}, "'bert'.*ids"),
        ({"model": "t5"}, "'t5'.*ids"),
        ({"model": "rwkv"}, "'rwkv'.*ids"),
        ({"model": 3}, "'3'.*ids"),
        ({"pre": "mystery"}, "'mystery'.*known are default, gpt-2"),
    ],
)
def test_unsupported_vocabularies_are_named(changes, message):
    with pytest.raises(UnsupportedError, match=message):
        Tokenizer(metadata(**changes))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"tokens": None}, "tokens is missing"),
        ({"tokens": []}, "empty"),
        ({"tokens": ["a", 5]}, "list of strings"),
        ({"tokens": ["a", "b", "a"]}, "'a' more than once"),
        ({"merges": None}, "merges is missing"),
        ({"merges": [1, 2]}, "list of strings"),
        ({"merges": ["a b", "ab"]}, r"merges\[1\] is 'ab'"),
        ({"token_type": [1, 2, 3]}, "token_type"),
        ({"token_type": ["x"] * len(TINY)}, "token_type"),
        ({"bos_token_id": len(TINY)}, "bos_token_id"),
        ({"eos_token_id": -1}, "eos_token_id"),
        ({"eot_token_id": 10**6}, "eot_token_id"),
        ({"eos_token_id": "2"}, "eos_token_id"),
        (
            {"tokens": ["a"], "token_type": None, "bos_token_id": None, "eos_token_id": None, "add_bos_token": True},
            "BOS",
        ),
    ],
)
def test_vocabularies_that_contradict_themselves(changes, message):
    with pytest.raises(GgufError, match=message):
        Tokenizer(metadata(**changes))


def test_empty_token_texts_are_told_apart():
    keys = {"tokens": ["", "a", ""], "token_type": None, "merges": [], "bos_token_id": 1, "eos_token_id": 1}
    assert Tokenizer(metadata(**keys)).tokens == ["[EMPTY_0]", "a", "[EMPTY_2]"]


def test_a_missing_pre_tokenizer_is_the_default_one():
    assert pieces("a+b", Tokenizer(metadata(pre=None))) == ["a", "+", "b"]


# --- Hugging Face's tokenizers, an independent implementation -------------------------------------------------------


def hugging_face(pre):
    rules = [tuple(rule.split()) for rule in MERGES]
    vocabulary = dict(zip(ALPHABET + MERGED, range(FIRST_SPECIAL), strict=True))
    oracle = tokenizers.Tokenizer(models.BPE(vocabulary, rules, ignore_merges=pre == "llama-bpe"))
    if pre in ("gpt-2", "smollm"):
        steps = [pre_tokenizers.ByteLevel(add_prefix_space=False)]
        if pre == "smollm":
            steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    else:  # the expression as Qwen2's and Llama 3's own tokenizer files have it
        digits = {"qwen2": r"\p{N}", "llama-bpe": r"\p{N}{1,3}"}[pre]
        words = (
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
            + digits
            + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        )
        steps = [
            pre_tokenizers.Split(tokenizers.Regex(words), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    oracle.pre_tokenizer = pre_tokenizers.Sequence(steps)
    return oracle


WORDS = st.sampled_from(
    ["the", " the", "hell", "'t", "'LL", "12", "3", "é", " ", "  ", "\n", "\r\n", "\t", "!", "日本", "🎉"]
)
# Scripts whose characters have had the same category in every Unicode version of the last ten years.
LETTERS = st.characters(codec="utf-8", max_codepoint=0x4FF, exclude_categories=("Cn", "Cs"))


@pytest.mark.parametrize("pre", ["gpt-2", "smollm", "qwen2", "llama-bpe"])
@settings(deadline=None)
@given(text=st.lists(WORDS | LETTERS, max_size=30).map("".join))
def test_ids_equal_hugging_faces(pre, text):
    ours = Tokenizer(metadata(pre)).encode(text, special=False, bos=False)
    if "<think>" not in text:
        assert ours == hugging_face(pre).encode(text).ids


# --- The real model, against llama.cpp ----------------------------------------------------------------------------

# Ids by llama.cpp's llama_tokenize(add_special=false, parse_special=true) on SmolLM2-135M-Instruct.
TRICKY = [
    ("", []),
    (" ", [216]),
    ("a", [81]),
    ("1234567", [33, 34, 35, 36, 37, 38, 39]),
    ("3.14159", [35, 30, 33, 36, 33, 37, 41]),
    ("x = 10  # ten", [104, 446, 216, 33, 32, 216, 907, 3772]),
    ("It's we've I'LL don't", [1589, 506, 392, 3543, 339, 23, 16421, 1326, 982]),
    ("  leading", [216, 2899]),
    ("trailing  ", [4861, 4966, 256]),
    ("a\n\n\nb", [81, 1116, 198, 82]),
    ("\t\tif x:\n\t\t\treturn\r\n", [197, 197, 342, 1792, 42, 3558, 197, 5406, 2738]),
    (
        "    for i in range(10):\n        print(i)",
        [333, 327, 2056, 281, 1845, 24, 33, 32, 727, 448, 1628, 24, 89, 25],
    ),
    (
        "日本語のテキスト",
        [23274, 115, 40993, 179, 120, 248, 26453, 11100, 224, 10391, 251, 10391, 134, 11100, 226],
    ),
    ("中文，标点。", [28589, 29184, 12831, 46781, 44083, 19076]),
    (
        "🎉👩\u200d👩\u200d👧\u200d👦",
        [10813, 232, 227, 10813, 235, 119, 321, 231, 10813, 235, 119, 321, 231, 10813, 235, 117, 321, 231]
        + [10813, 235, 116],
    ),
    ("naïve café Ünïcödé", [3546, 46494, 37366, 5549, 246, 94, 25972, 83, 7466, 84, 2756]),
    ("Привет мир", [155, 249, 46879, 16464, 32547, 41337, 7872, 9175]),
    ("مرحبا بالعالم", [21706, 20602, 44626, 31462, 10805, 45726, 22208, 34966, 22208, 21706]),
    ("नमस्ते", [30658, 35090, 38770, 16525, 26293, 30581]),
    ("½ ² Ⅷ ٣", [16738, 216, 19133, 216, 173, 223, 117, 216, 164, 113]),
    ("\u00a0\u3000\u2028", [15442, 12109, 218, 321, 118]),
    ("a_b__c---d...!!!", [81, 79, 82, 890, 83, 5583, 84, 2026, 29646]),
    ("e\u0301 \u200b\ufeff", [85, 151, 219, 459, 229, 186, 136, 140]),
    ("\x00\x7f", [190, 217]),
    ("\x04", []),  # a byte for which this vocabulary has no token
    ("<|im_start|>user\nHi<|im_end|>\n<|endoftext|>", [1, 4093, 198, 26843, 2, 198, 0]),
    ("<|im_start|", [44, 108, 306, 79, 3738, 108]),
    ("<<|im_end|>>", [44, 2, 46]),
]


@pytest.fixture(scope="module")
def smollm(smollm2):
    return Tokenizer(read_gguf(smollm2).metadata)


@pytest.mark.parametrize("text, ids", TRICKY)
def test_tricky_strings_equal_llama_cpps(smollm, text, ids):
    assert smollm.encode(text) == ids
    assert smollm.decode(ids) == text or text == "\x04"


def test_special_tokens_as_plain_text_equal_llama_cpps(smollm):
    # parse_special=false
    ids = [44, 108, 306, 79, 3738, 108, 46, 4093, 44, 108, 306, 79, 486, 108, 46]
    assert smollm.encode("<|im_start|>user<|im_end|>", special=False) == ids


def test_golden_prompts(smollm):
    for case in json.loads((DATA / "golden" / "smollm2_135m_q4_1.json").read_text()):
        assert smollm.encode(case["prompt"]) == case["ids"]
        assert smollm.decode(case["greedy"]) == case["text"]


def test_the_real_vocabularys_special_tokens(smollm):
    assert len(smollm) == 49152
    assert (smollm.bos, smollm.eos, smollm.add_bos) == (1, 2, False)
    # <|endoftext|>, <|im_end|>, <reponame>: llama_vocab_is_eog of all ids
    assert smollm.end_ids == {0, 2, 4}
