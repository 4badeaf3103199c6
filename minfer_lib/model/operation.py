"""What an operation of the model is, and how several go together.

An operation works on numbered *units*: rows of a matrix, heads, or tokens. Its compiled job computes any range of them,
so whoever runs the list decides who computes what. Operations of one *phase* have the same units, and unit i of one
needs only unit i of the one before: a worker takes its units through all of them before it waits for anybody.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

from minfer_lib.native.address import call_native, native_address

if TYPE_CHECKING:
    from minfer_lib.model.config import Config
    from minfer_lib.model.memory import Memory


class Operation(ABC):
    """One line of the list: its name, its operands, and what it leaves to be seen.

    job(operands, run, n, first, last, worker) computes units [first, last), for n tokens. `operands` is the address of
    the record that `bind` made, `run` that of the RUN record (`model/run.py`); worker: the number of who computes.
    """

    kind: ClassVar[str] = "rest"  # what its time counts as: "matmul", "attention" or "rest"
    unit: ClassVar[str]  # "row", "head" or "token"
    job: ClassVar[Dispatcher]

    def __init__(self, name: str, stages: dict[str, str] | None = None) -> None:
        self.name = name
        self.stages = stages or {}  # what can be looked at after it: the stage's name -> the buffer that holds it

    @abstractmethod
    def units(self, config: Config) -> int:
        """How many units it has: of each token, or in all where the unit is a row."""

    def tokens_together(self, config: Config) -> int:
        """Of how many tokens a unit is; tokens that are left over have units of their own."""
        return 1

    def prepare(self, memory: Memory) -> None:  # noqa: B027, most ask for nothing
        """Ask for what it needs in memory; called for all operations before any is bound."""

    @abstractmethod
    def bind(self, memory: Memory, layer: int) -> np.ndarray:
        """The record of its operands, by which compiled code finds them."""

    @property
    def address(self) -> int:
        """Native address of its job; compiled if need be."""
        return native_address(self.job, *[types.int64] * 6)

    def __repr__(self) -> str:
        operands = ", ".join(f"{k}={v}" for k, v in vars(self).items() if isinstance(v, str) and k != "name")
        left = ", ".join(dict.fromkeys(self.stages.values()))
        return f"{self.name:20} {type(self).__name__}({operands}){f' -> {left}' if left else ''}"


class Phase(tuple[Operation, ...]):
    """Operations that a worker does one after the other on the same units, without waiting between them.

    at_once: at most so many units go through all of them before the next ones; None: all that a worker has.
    """

    at_once: int | None

    def __new__(cls, *operations: Operation, at_once: int | None = None) -> Phase:
        phase = super().__new__(cls, operations)
        phase.at_once = at_once
        return phase


@intrinsic
def call_operation(typingctx, address, operands, run, n, first, last, worker):
    """Call an operation's job at native address `address`."""
    return types.void(*[types.int64] * 7), call_native
