"""How many workers take part: all on a calm machine, fewer while passes are spent waiting."""

from hypothesis import given
from hypothesis import strategies as st

from minfer_lib.native.crew import LONGEST, SHORTEST, TRIAL, WAITED, Crew

BAD, GOOD = WAITED + 0.1, WAITED / 2


def passes(crew: Crew, workers: int, waited: float, count: int) -> list[int]:
    """The crews of so many passes, each of which waited so much unless a single worker ran it."""
    sizes = []
    for _ in range(count):
        sizes.append(crew.size(workers))
        crew.judge(workers, waited if sizes[-1] > 1 else 0.0)
    return sizes


def test_all_take_part_while_nothing_is_waited_for():
    assert set(passes(Crew(), 4, GOOD, 1000)) == {4}


def test_a_single_bad_pass_changes_nothing():
    crew = Crew()
    for _ in range(50):
        crew.judge(2, BAD)
        assert set(passes(crew, 2, GOOD, 10)) == {2}


def test_one_stays_away_after_two_bad_passes_and_comes_back():
    crew = Crew()
    assert passes(crew, 2, BAD, 2) == [2, 2]
    assert passes(crew, 2, GOOD, SHORTEST + 1) == [1] * SHORTEST + [2]


def test_a_return_that_goes_wrong_is_tried_less_and_less_often():
    sizes = passes(Crew(), 2, BAD, 20 * LONGEST)
    away = [len(run) for run in "".join(map(str, sizes)).split("2") if run]
    assert away[:6] == [16, 32, 64, 128, 256, 512] and set(away[5:-1]) == {LONGEST}
    assert sizes.count(2) < 0.02 * len(sizes)


def test_after_a_calm_trial_the_next_absence_is_short_again():
    crew = Crew()
    passes(crew, 2, BAD, 300)
    passes(crew, 2, GOOD, LONGEST + TRIAL + 1)
    assert crew.size(2) == 2
    passes(crew, 2, BAD, 2)
    assert passes(crew, 2, GOOD, SHORTEST + 1)[-2:] == [1, 2]


@given(st.lists(st.tuples(st.integers(1, 9), st.floats(0, 1)), max_size=400))
def test_there_is_always_one_and_never_more_than_asked_for(history):
    crew = Crew()
    for workers, waited in history:
        assert 1 <= crew.size(workers) <= workers
        crew.judge(workers, waited)
