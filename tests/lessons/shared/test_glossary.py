"""The glossary: in order, one meaning a word, and each word at home in a notebook that uses it."""

import json
from pathlib import Path

import pytest

import minfer_lib as mf
from minfer_lib.lessons import glossary
from minfer_lib.lessons.shared.glossary import TERMS

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"


def test_every_word_once_in_order():
    names = [term.name.lower() for term in TERMS]
    assert names == sorted(set(names))


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_the_lesson_of_a_word_uses_it(term):
    found = list(NOTEBOOKS.glob(f"{term.lesson:02}_*.ipynb"))
    if not found:
        pytest.skip(f"lesson {term.lesson} is not there yet")
    cells = json.loads(found[0].read_text(encoding="utf-8"))["cells"]
    text = "".join(line for cell in cells for line in cell["source"]).lower()
    assert term.name.lower() in text


def test_one_word_is_asked_for_as_it_is_written():
    table = glossary("lane", "gqa")
    assert [row[0] for row in table.rows] == ["lane", "GQA"]
    assert len(glossary().rows) == len(TERMS)
    with pytest.raises(mf.ArgumentError, match="no 'lame'"):
        glossary("lame")
