"""The stepper that all others are made of: buttons, player and slider show the same step."""

from types import SimpleNamespace

from minfer_lib.lessons.shared.look import Drawing
from minfer_lib.lessons.shared.stepper import Stepper


class Letters(Stepper):
    """A step is a letter."""

    def _drawn(self, step):
        return Drawing(f"<svg >{step.letter}</svg>", f"the letter {step.letter}"), f"source {step.letter}", step.letter


def test_it_shows_one_step_after_the_other():
    letters = [SimpleNamespace(letter=letter, line=10 + i, kernel="word") for i, letter in enumerate("abc")]
    stepper = Letters(letters, ("letters", 100))
    seen = [stepper.alt]
    for _ in range(3):
        stepper._on.click()
        seen.append(stepper.alt)
    last = "Step 3 of 3, line 12 of word: the letter c"
    assert seen[0] == "Step 1 of 3, line 10 of word: the letter a" and seen[2:] == [last, last]
    assert stepper._on.disabled and not stepper._back.disabled and stepper._play.value == 3
    stepper._back.click()
    assert stepper.step is letters[1] and "<b>2 of 3</b>" in stepper._title.value
    assert "source b" in stepper._repr_mimebundle_()["text/html"]
