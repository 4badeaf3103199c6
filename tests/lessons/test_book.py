"""The book: pages with the outputs of a run, readable alone."""

import re

import nbformat
import pytest

import minfer_lib as mf
from minfer_lib.lessons.book import write_book


def notebook(path, *sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)


def test_pages_hold_what_the_notebooks_showed(tmp_path):
    source, book = tmp_path / "notebooks", tmp_path / "book"
    source.mkdir()
    notebook(source / "00_start_here.ipynb", "open('kept', 'w').close()\nfrom minfer_lib import lessons\n6 * 7",
             "lessons.course_map()", "lessons.Predict('How many?', lambda: 3)")  # fmt: skip
    notebook(source / "08_full_model_decode.ipynb", "import os\nos.listdir()")
    first, last = write_book(source, book)
    page = first.read_text(encoding="utf-8")
    assert re.search(r"<pre>42\s*</pre>", page) and "How many?" in page
    assert 'href="08_full_model_decode.html"' in page
    assert "widget-view" not in page.split("</style>")[-1]
    assert not re.findall(r'<(?:script|link)[^>]+(?:src|href)="', page), "a page needs nothing from elsewhere"
    assert "kept" in last.read_text(encoding="utf-8"), "lessons share a folder, as a learner's do: the byte passport"
    assert first.name in (book / "index.html").read_text(encoding="utf-8")
    assert sorted(path.name for path in source.iterdir()) == ["00_start_here.ipynb", "08_full_model_decode.ipynb"]


def test_a_cell_that_fails_is_named(tmp_path):
    notebook(tmp_path / "01_bad.ipynb", "1 / 0")
    with pytest.raises(mf.MinferError, match="01_bad.ipynb[^$]*ZeroDivisionError"):
        write_book(tmp_path, tmp_path / "book")


def test_no_notebooks_no_book(tmp_path):
    with pytest.raises(mf.ArgumentError, match="no notebooks"):
        write_book(tmp_path, tmp_path / "book")
