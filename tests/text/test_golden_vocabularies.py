"""Ids equal to llama.cpp's, with vocabularies in which every cut shows; how they were made: data/golden/README.md."""

import json
import os
from pathlib import Path

import pytest

from minfer_lib.errors import UnsupportedError
from minfer_lib.formats.gguf import read_gguf
from minfer_lib.text import PRE_TOKENIZERS, Tokenizer

GOLDEN = json.loads((Path(__file__).parents[2] / "data" / "golden" / "vocabularies.json").read_text("utf-8"))
NAMES = [f"{run['vocabulary']} {run['keys']} {run['add_special']} {run['parse_special']}" for run in GOLDEN["runs"]]


def tokenizer_of(run):
    keys = GOLDEN["vocabularies"][run["vocabulary"]] | run["keys"]
    return Tokenizer({f"tokenizer.ggml.{key}": value for key, value in keys.items()})


@pytest.mark.parametrize("run", GOLDEN["runs"], ids=NAMES)
def test_ids_equal_llama_cpps(run):
    tokenizer = tokenizer_of(run)
    ends = None if run["add_special"] else False
    for text, ids in zip(GOLDEN["texts"], run["ids"], strict=True):
        assert tokenizer.encode(text, special=run["parse_special"], bos=ends, eos=ends) == ids, text


@pytest.mark.parametrize("run", GOLDEN["runs"], ids=NAMES)
def test_ids_that_end_a_generation_equal_llama_cpps(run):
    assert sorted(tokenizer_of(run).end_ids) == run["ends"]


@pytest.mark.parametrize("run", [run for run in GOLDEN["runs"] if "decoded" in run], ids=str)
def test_text_of_ids_equals_llama_cpps(run):
    tokenizer = tokenizer_of(run)
    for ids, (whole, second_half) in zip(run["ids"], run["decoded"], strict=True):
        assert tokenizer.decode(ids) == whole
        assert tokenizer.decode(ids[len(ids) // 2 :]) == second_half


def test_every_pre_tokenizer_is_here():
    assert {run["keys"].get("pre") for run in GOLDEN["runs"]} - {None} == PRE_TOKENIZERS.keys()


def vocabulary_files():
    """MINFER_VOCABULARIES names a folder like llama.cpp's models/, with ggml-vocab-qwen2.gguf, .inp and .out …"""
    folder = os.environ.get("MINFER_VOCABULARIES")
    files = sorted(Path(folder).glob("*.gguf")) if folder else []
    return [file for file in files if file.with_suffix(".out").exists() or Path(f"{file}.out").exists()]


@pytest.mark.skipif(
    not vocabulary_files(), reason="MINFER_VOCABULARIES names no folder of llama.cpp's vocabulary files"
)
@pytest.mark.parametrize("path", vocabulary_files(), ids=lambda path: path.name)
def test_llama_cpps_own_cases(path):
    cases, answers = (
        next(file for file in (path.with_suffix(suffix), Path(f"{path}{suffix}")) if file.exists())
        .read_bytes()
        .decode()
        for suffix in (".inp", ".out")
    )
    try:
        tokenizer = Tokenizer(read_gguf(path).metadata)
    except UnsupportedError as error:
        pytest.skip(str(error))
    for text, ids in zip(cases.split("\n__ggml_vocab_test__\n"), answers.split("\n"), strict=True):
        assert tokenizer.encode(text, special=False, bos=False) == list(map(int, ids.split())), text
