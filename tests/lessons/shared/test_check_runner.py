"""How a check speaks: the input, what was expected, what came, where they differ first, and the usual cause."""

import numpy as np
import pytest

from minfer_lib.lessons.check import CheckFailedError
from minfer_lib.lessons.shared.check_runner import Case, run

ROW = Case("a row", (np.arange(3),), np.array([0.0, 2.0, np.nan]), "the cause", tolerance=0.01)


def fails(function, *cases) -> str:
    with pytest.raises(CheckFailedError) as failure:
        run(function, cases)
    return str(failure.value)


def test_right_answers_pass(capsys):
    run(lambda x: [0.005, 2, float("nan")], [ROW])
    run(lambda: float("inf"), [Case("infinity", (), np.inf, "")])
    assert "✓ <lambda>: right in its one case" in capsys.readouterr().out


def test_the_message_teaches():
    message = fails(lambda x: np.array([0.0, 2.5, 7.0]), ROW)
    assert "wrong for: a row" in message and "Often the cause: the cause" in message
    assert "first difference at [1]: expected 2, got 2.5; 2 differ" in message


@pytest.mark.parametrize("got", [None, "text", [1, [2]], object(), (i for i in range(3)), {}, [[0.0, 2.0, np.nan]]])
def test_anything_may_come_back(got):
    assert "got" in fails(lambda x: got, ROW)


def test_another_shape_is_said():
    assert "of shape (2,), not (3,)" in fails(lambda x: [1, 2], ROW)


def test_an_answer_may_be_a_word(capsys):
    case = Case("a word", (), "stride", "the cause")
    run(lambda: "stride", [case])
    for got in ("strides", None, 3, [1, 2]):
        assert "expected 'stride'" in fails(lambda got=got: got, case)


def test_an_argument_that_was_written_to_spoils_nothing(capsys):
    def writes(x):
        x += 1
        return x

    case = Case("zeros", (np.zeros(2),), np.ones(2), "")
    run(writes, [case, case])


def test_an_error_that_must_come():
    case = Case("a bad shape", (3,), ValueError, "rows")

    def refuses(n):
        raise ValueError

    run(refuses, [case])
    assert "expected a ValueError" in fails(lambda n: 4, case)
    with pytest.raises(KeyError) as failure:
        run(lambda n: {}[n], [case])
    assert "inside your <lambda>, for: a bad shape" in failure.value.__notes__[0]


def test_a_stub_is_no_failure(capsys):
    def stub(x):
        raise NotImplementedError

    run(stub, [ROW])
    assert "stub is not written yet" in capsys.readouterr().out
