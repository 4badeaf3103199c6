"""A prediction: the answer is computed only after the guess, and the guess stays."""

import pytest

from minfer_lib.lessons import Predict


def test_the_answer_comes_after_the_guess():
    asked = []
    question = Predict("How <many>?", lambda: asked.append(1) or 8, "GB/s", "It is read once.")
    assert question.actual is None and not asked
    assert "How &lt;many&gt;?" in question._repr_mimebundle_()["text/html"]
    question._box.value = 4
    question._button.click()
    assert (question.guess, question.actual, len(asked)) == (4, 8, 1)
    told = question._repr_mimebundle_()["text/html"]
    assert "<b>8 GB/s</b>. You said 4, 2 times too little. It is read once." in told


def test_a_second_guess_changes_nothing():
    question = Predict("How many?", lambda: 8)
    question.commit(8)
    question.commit(9)
    assert question.guess == 8 and question._box.disabled and question._button.disabled


@pytest.mark.parametrize("guess, told", [(8, "Exactly."), (12, "1.5 times that"), (-8, "You said -8.")])
def test_the_verdict(guess, told):
    question = Predict("How many?", lambda: 8)
    question.commit(guess)
    assert told in question._reveal.value
