"""Lesson 8's pictures say what they were given; the recorded numbers belong to their model."""

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.lessons import attention_picture, course_model, recorded, time_picture


def test_attention_has_a_number_for_each_pair_that_can_be():
    shares = np.array([[1, 0, 0], [0.25, 0.75, 0], [0.1, 0.7, 0.2]], np.float32)
    picture = attention_picture(shares, ["'a'", "' costs $5'", "'c'"])
    assert "'c' takes most from ' costs $5', 70%" in picture.alt
    assert picture.svg.count("%") >= 6 and "25%" in picture.svg and "$5" in picture.svg


def test_the_time_is_told_part_by_part(tiny):
    session = mf.load_model(tiny(), threads=1).session()
    session.feed([1, 2, 3])
    picture = time_picture(session.timing)
    for kind, seconds in session.timing.shares().items():
        assert f"{kind} {seconds / session.timing.wall:.1%}" in picture.alt
    assert all(name in picture.svg for name in session.timing.of_kind("matmul"))


def test_recorded_numbers_are_of_the_courses_model(tiny):
    model = mf.load_model(course_model())
    cases = recorded(model)
    assert len(cases) == 4 and all(len(case.greedy) == len(case.margin) > 0 for case in cases)
    assert all(model.tokenizer.encode(case.prompt) == case.ids for case in cases)
    with pytest.raises(mf.ModelMissingError, match="recorded"):
        recorded(mf.load_model(tiny()))
