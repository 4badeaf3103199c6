"""How an exercise is checked: the learner's function on inputs that wrong answers fail, with messages that teach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


class CheckFailedError(AssertionError):
    """The learner's function gave a wrong answer; the message says for which input, and what usually causes that."""


@dataclass(frozen=True)
class Case:
    """One call: what it tries, its arguments, what it must return (tolerance: largest allowed difference).

    `expected` may be a kind of exception: then the call must raise it.
    """

    what: str
    arguments: tuple
    expected: Any
    cause: str  # what usually makes a wrong answer here
    tolerance: float = 0.0


def run(function: Callable, cases: Sequence[Case]) -> None:
    """Call `function` on every case; CheckFailedError at the first wrong answer. A stub is told that it is one."""
    for case in cases:
        try:
            got = function(*map(_copied, case.arguments))
        except NotImplementedError:
            print(f"{function.__name__} is not written yet. Fill it in, then run both cells again.")
            return
        except Exception as error:
            if _must_raise(case) and isinstance(error, case.expected):
                continue
            error.add_note(f"This happened inside your {function.__name__}, for: {case.what}.")
            raise
        if _must_raise(case) or not _equal(got, case.expected, case.tolerance):
            raise CheckFailedError(_message(function.__name__, case, got))
    right = f"all {len(cases)} cases" if len(cases) > 1 else "its one case"
    print(f"✓ {function.__name__}: right in {right}")


def _copied(argument: Any) -> Any:
    """An array of the call's own, so that a function that writes into it spoils no later case."""
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def _must_raise(case: Case) -> bool:
    return isinstance(case.expected, type) and issubclass(case.expected, Exception)


def _numbers(value: Any) -> np.ndarray | None:
    """float64 of any shape; None for what is no number, no array and no nest of them."""
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError):
        return None


def _equal(got: Any, expected: Any, tolerance: float) -> bool:
    """Same shape, and every value within the tolerance; NaN equals NaN. A word equals that word."""
    if isinstance(expected, str):
        return isinstance(got, str) and got == expected
    got, expected = _numbers(got), _numbers(expected)
    return got is not None and got.shape == expected.shape and bool(_close(got, expected, tolerance).all())


def _close(got: np.ndarray, expected: np.ndarray, tolerance: float) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # infinity less infinity
        near = np.abs(got - expected) <= tolerance
    return near | (got == expected) | (np.isnan(got) & np.isnan(expected))


def _message(name: str, case: Case, got: Any) -> str:
    expected = f"a {case.expected.__name__}" if _must_raise(case) else _short(case.expected)
    return (
        f"{name} is wrong for: {case.what}\n"
        f"  expected {expected}\n"
        f"  got      {_short(got)}{'' if _must_raise(case) else _other_shape(got, case.expected)}\n"
        f"{'' if _must_raise(case) else _where(got, case)}"
        f"  Often the cause: {case.cause}"
    )


def _other_shape(got: Any, expected: Any) -> str:
    array = _numbers(got)
    if got is None or array is None or array.shape == np.shape(expected):
        return ""
    return f" of shape {array.shape}, not {np.shape(expected)}"


def _where(got: Any, case: Case) -> str:
    """The first place where two arrays of the same shape differ."""
    got, expected = _numbers(got), _numbers(case.expected)
    if got is None or expected is None or got.shape != expected.shape or not got.shape:
        return ""
    wrong = np.argwhere(~_close(got, expected, case.tolerance))
    place = tuple(int(i) for i in wrong[0])
    shown = ", ".join(map(str, place))
    return f"  first difference at [{shown}]: expected {expected[place]:g}, got {got[place]:g}; {len(wrong)} differ\n"


def _short(value: Any) -> str:
    """On one line if it can be, without the middle of what is long."""
    if isinstance(value, (np.ndarray, list, tuple)) and (array := _numbers(value)) is not None and array.ndim:
        return np.array2string(np.asarray(value), threshold=16, edgeitems=3, precision=5).replace("\n", "\n" + " " * 11)
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "…"
