"""What the engine must reach, what it aims at, and whether a run of the comparison did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from minfer_lib.bench.peer.compare import (
    CEILING,
    DECODE,
    FIRST_EVER,
    FIRST_TOKEN,
    NO_AMX,
    OVER_FILE,
    PROMPT,
    Comparison,
)

# ik_llama.cpp's prefill over llama.cpp's, by the file's preset, with AMX; ratios are judged on these files alone
IK_LLAMA = {"Q4_1": 4.2, "Q4_0": 1.55, "Q8_0": 1.95, "Q4_K_M": 2.2}


@dataclass(frozen=True)
class Goal:
    """A bound that must hold and a better one to aim at; `ratio`: of the ratio, which is to be large, else of our own
    number, which is to be small.
    """

    must: float
    aim: float
    ratio: bool = True


@dataclass(frozen=True)
class Verdict:
    """One line of the table."""

    what: str
    model: str
    threads: int
    measured: float
    lowest: float
    highest: float  # of the rounds
    unit: str
    must: float
    aim: float
    reached: str  # "aim", "must" or "not"


def goal_of(row: Comparison) -> Goal | None:
    """None where nothing is asked of this row."""
    alone: Mapping[str, Goal] = {
        FIRST_TOKEN: Goal(1.5, 0.7, ratio=False),
        FIRST_EVER: Goal(60, 25, ratio=False),
        OVER_FILE: Goal(400, 250, ratio=False),
    }
    if row.what in alone or row.preset not in IK_LLAMA:
        return alone.get(row.what)
    return {
        DECODE: Goal(1.6, 2.5) if row.threads == 1 else Goal(2.0, 3.0),
        CEILING: Goal(0.55, 0.8),
        PROMPT.format(256): Goal(IK_LLAMA[row.preset], 3 * IK_LLAMA[row.preset]),
        NO_AMX.format(256): Goal(1.0, IK_LLAMA[row.preset]),
    }.get(row.what)


def judge(rows: Sequence[Comparison]) -> list[Verdict]:
    """A verdict on each row that has a goal."""
    return [_verdict(row, goal) for row in rows if (goal := goal_of(row))]


def _verdict(row: Comparison, goal: Goal) -> Verdict:
    values = [a / b for a, b in zip(row.ours, row.theirs, strict=True)] if goal.ratio else row.ours
    measured = median(values)
    sign = 1 if goal.ratio else -1
    reached = next(
        (name for name, bound in (("aim", goal.aim), ("must", goal.must)) if sign * measured >= sign * bound), "not"
    )
    beside = "" if not goal.ratio else " / ceiling" if row.what == CEILING else " / llama.cpp"
    unit = "×" if goal.ratio else row.unit
    bounds = min(values), max(values)
    return Verdict(
        row.what + beside, row.preset or row.model, row.threads, measured, *bounds, unit, goal.must, goal.aim, reached
    )
