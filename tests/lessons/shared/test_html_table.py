"""A table in a notebook, and the same in a terminal."""

from minfer_lib.lessons import Table


def test_numbers_are_right_aligned_and_words_left():
    table = Table(("name", "count", "share"), [("a", 12345, 0.123456), ("longer", 7, 2.0)])
    assert repr(table).splitlines() == ["name     count   share", "a       12,345  0.1235", "longer       7       2"]
    page = table._repr_html_()
    assert '<td style="text-align:right">12,345</td>' in page and '<td style="text-align:left">longer</td>' in page


def test_a_cell_is_text_and_no_markup():
    assert "&lt;b&gt;" in Table(("x",), [("<b>",)])._repr_html_()
