"""Any machine: cores with speeds of their own and one memory, sharing out a matrix product under any policy.

A small model, moved from event to event. A core reads weights at its own speed while the memory keeps up; where it does
not, slow cores still get what they ask for and the others share the rest evenly. Claiming a chunk takes a fixed time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.matmul.chunks import Plan
from minfer_lib.matmul.trace import CHUNK, PHASE, Trace


@dataclass(frozen=True)
class Machine:
    """speeds: GB/s of weights (bytes a nanosecond) that each core gets through alone; bandwidth: GB/s that memory gives
    all of them; claim: nanoseconds to take a chunk.
    """

    speeds: tuple[float, ...]
    bandwidth: float = inf
    claim: float = 0.0

    def __post_init__(self) -> None:
        if not self.speeds or min(self.speeds) <= 0 or self.bandwidth <= 0 or self.claim < 0:
            raise ArgumentError("a machine has a core or more, speeds and bandwidth above 0, and no negative claim.")

    def rates(self, reading: list[int]) -> dict[int, float]:
        """Core -> its GB/s while these cores read."""
        left, rates = self.bandwidth, {}
        for done, core in enumerate(sorted(reading, key=lambda core: self.speeds[core])):
            rates[core] = min(self.speeds[core], left / (len(reading) - done))
            left -= rates[core]
        return rates

    def shortest(self, n_bytes: float) -> float:
        """Nanoseconds for so many bytes if the cores shared them perfectly, at no cost."""
        return n_bytes / min(sum(self.speeds), self.bandwidth)

    def run(self, cut: Plan, row_bytes: int) -> Trace:
        """The product of `cut`, thread i on core i, as if it had been traced; without phase 1 and without an output.

        Raises ArgumentError unless the plan has as many threads as the machine has cores.
        """
        if cut.threads != len(self.speeds):
            raise ArgumentError(f"the plan is for {cut.threads} threads, the machine has {len(self.speeds)} cores.")
        run = _Run(self, cut, row_bytes)
        while run.busy:
            run.advance()
        chunks = np.array(run.log, CHUNK)
        order = np.lexsort((chunks["thread"], chunks["start"]))
        return Trace(cut, chunks[order], np.zeros(cut.threads, PHASE), run.counter, None)


class _Run:
    """One product under way: what each busy core still has to wait and to read."""

    def __init__(self, machine: Machine, cut: Plan, row_bytes: int) -> None:
        self.machine, self.cut, self.row_bytes = machine, cut, row_bytes
        self.now, self.counter = 0.0, cut.threads
        self.busy: dict[int, list[float]] = {}  # core -> chunk, start, nanoseconds to wait, bytes to read
        self.log: list[tuple[int, int, int, int]] = []
        for core in range(min(cut.threads, cut.chunks)):
            self._begin(core, core, 0.0)

    def _begin(self, core: int, chunk: int, wait: float) -> None:
        r0, r1, c0, c1 = self.cut.bounds(chunk)
        self.busy[core] = [chunk, self.now, wait, (r1 - r0) * (c1 - c0) * self.row_bytes]

    def advance(self) -> None:
        """To the next moment when a core has waited or read enough."""
        rates = self.machine.rates([core for core, (_, _, wait, _) in self.busy.items() if wait <= 0])
        step = min(left / rates[core] if core in rates else wait for core, (_, _, wait, left) in self.busy.items())
        self.now += step
        for core in sorted(self.busy):
            state = self.busy[core]
            if core not in rates:
                state[2] = state[2] - step if state[2] > step else 0.0
            elif state[3] - step * rates[core] > 1e-6 * self.row_bytes:
                state[3] -= step * rates[core]
            else:
                self._end(core)

    def _end(self, core: int) -> None:
        chunk, start, _, _ = self.busy.pop(core)
        self.log.append((chunk, core, round(start), round(self.now)))
        if self.cut.threads < self.cut.chunks:
            self.counter += 1
            if self.counter - 1 < self.cut.chunks:
                self._begin(core, self.counter - 1, self.machine.claim)
