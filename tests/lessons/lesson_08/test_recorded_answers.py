"""The recorded numbers of llama.cpp belong to their model."""

import pytest

import minfer_lib as mf
from minfer_lib.lessons import course_model, recorded


def test_recorded_numbers_are_of_the_courses_model(tiny):
    model = mf.load_model(course_model())
    cases = recorded(model)
    assert len(cases) == 4 and all(len(case.greedy) == len(case.margin) > 0 for case in cases)
    assert all(model.tokenizer.encode(case.prompt) == case.ids for case in cases)
    with pytest.raises(mf.ModelMissingError, match="recorded"):
        recorded(mf.load_model(tiny()))
