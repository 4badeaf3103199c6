"""How many of the workers that were asked for take part: fewer while other programs use their cores.

A worker that shares its core with another program is put aside in the midst of a piece again and again, and each time
the others wait for it. Then the rest is faster without it. So the caller looks at how much of a pass it waited: after
two bad passes close together one worker stays away, for a while that doubles each time its return goes wrong.
"""

from __future__ import annotations

WAITED = 0.45  # of a pass: waits of an idle machine stay below it, those for a worker that was put aside do not
SHORTEST, LONGEST = 16, 512  # passes that a worker stays away
TRIAL = 16  # passes after its return in which it is on trial


class Crew:
    """The number of workers for the next job, learnt from the last ones."""

    def __init__(self) -> None:
        self._away = 0  # so many fewer than asked for
        self._hold = 0  # passes until one of them returns
        self._length = SHORTEST
        self._trial = 0  # passes in which the return is still on trial
        self._bad = 0.0  # bad passes; each counts half as much after every further pass

    def size(self, workers: int) -> int:
        """How many take part where so many were asked for."""
        return max(1, workers - self._away)

    def judge(self, workers: int, waited: float) -> None:
        """Learn from a pass for which so many were asked: the share of its time that the caller waited."""
        if self._hold > 0:
            self._hold -= 1
            if self._hold == 0:
                self._return()
            return
        self._bad = self._bad / 2 + (waited > WAITED)
        if self._bad > 1.2 and self._away < workers - 1:
            self._length = min(2 * self._length, LONGEST) if self._trial else SHORTEST
            self._away, self._hold, self._bad = self._away + 1, self._length, 0.0
        elif self._trial:
            self._trial -= 1
            if not self._trial and self._away:
                self._return()

    def _return(self) -> None:
        self._away, self._trial, self._bad = self._away - 1, TRIAL, 0.0
