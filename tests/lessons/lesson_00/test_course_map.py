"""The map: a link where the notebook is, a note where it is not; boxes that do not lie on each other."""

from itertools import combinations

from minfer_lib.lessons import course_map
from minfer_lib.lessons.lesson_00.course_map import STATIONS


def test_a_station_is_a_link_where_its_notebook_is(tmp_path):
    (tmp_path / "03_scalar_dot.ipynb").touch()
    page = course_map(tmp_path)._repr_html_()
    assert page.count("<a href=") == 1 and '<a href="03_scalar_dot.ipynb">3 · One number</a>' in page
    assert page.count("not in this edition yet") == len(STATIONS) - 1


def test_stations_stand_apart():
    for one, other in combinations(STATIONS, 2):
        (x, y, w, h), (x2, y2, w2, h2) = one.place, other.place
        assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y, f"{one.title} and {other.title}"
