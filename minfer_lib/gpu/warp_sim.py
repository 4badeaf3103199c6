"""Run a CUDA kernel's own Python source on emulated warps: 32 lanes in lock step, every statement recorded.

    memory = Memory()
    trace = simulate(kernel, grid=od, block=256, arguments=(weights, blocks, out, n_units), memory=memory)
    for s in trace.steps:
        print(s.warp, s.line, s.text, s.active, s.changed)

All lanes of a warp are at one statement. Where lanes take different ways, the ways are gone one after the other, each
under its mask. Warps of a block meet at barriers. Numbers have numba's types; `ops.py` says what each operation means.
What would hang or corrupt a GPU is a MinferError here: a barrier that not all reach, a shuffle out of a lane that is
not there, an access out of bounds or not aligned, a loop without an end.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from minfer_lib.errors import ArgumentError, MinferError, UnsupportedError
from minfer_lib.gpu import ops
from minfer_lib.gpu.warp_expressions import Expressions, Frame
from minfer_lib.gpu.warp_memory import LANES, Access, Memory, Placed
from minfer_lib.gpu.warp_values import binary, lanes, lift, merge

LIMIT = 100_000  # steps, of about a kilobyte


@dataclass(frozen=True)
class Step:
    """One statement, done by one warp."""

    number: int
    block: int
    warp: int
    active: np.ndarray  # bool[32]: the lanes that did it
    changed: dict[str, np.ndarray]  # variable, or the condition of an if or while -> [32]
    accesses: tuple[Access, ...]
    sources: np.ndarray | None  # int[32], where it shuffles: the lane whose value each lane received
    kernel: str  # the name of the function whose source stands here
    filename: str
    line: int
    columns: tuple[int, int]
    text: str


@dataclass
class Trace:
    """What `simulate` returns: all steps in the order in which they were done."""

    kernel: str
    threads: int  # a block
    steps: list[Step] = field(default_factory=list)
    lines: set[tuple[str, int]] = field(default_factory=set)  # (file, line) of what some lane did: no way never taken

    def of(self, warp: int, block: int = 0) -> list[Step]:
        """The steps of one warp."""
        return [s for s in self.steps if (s.warp, s.block) == (warp, block)]


def simulate(
    kernel: Callable, grid: int, threads: int, arguments: tuple, blocks: Iterable[int] | None = None,
    shared_bytes: int = 0, limit: int = LIMIT,
) -> Trace:  # fmt: skip
    """kernel[grid, threads](*arguments), one block after the other. Arrays are changed in place, as on the GPU.

    kernel: the Python function. blocks: only these of the grid; None: all. shared_bytes: of `ops.shared_bytes()`.
    limit: how many steps are too many.
    Raises ArgumentError (a launch that no GPU takes), UnsupportedError (Python that is not simulated), MinferError.
    """
    if not 0 < threads <= 1024 or grid < 1:
        raise ArgumentError(f"{grid} blocks of {threads} threads: a launch has a block, and a block 1 to 1024 threads.")
    run = _Run(Trace(kernel.__name__, threads), grid, shared_bytes, limit)
    names = inspect.signature(kernel).parameters
    arguments = tuple(
        run.memory.place(a, n) if isinstance(a, np.ndarray) else lift(a) for n, a in zip(names, arguments, strict=True)
    )
    with np.errstate(all="ignore"):
        for block in range(grid) if blocks is None else blocks:
            run.block_of_warps(kernel, arguments, block)
    return run.trace


@dataclass
class _Run:
    trace: Trace
    grid: int
    shared_bytes: int
    limit: int
    memory: Memory = field(default_factory=Memory)

    def block_of_warps(self, function: FunctionType, arguments: tuple, place: int) -> None:
        """Each warp goes on to its next barrier, then all go on from there."""
        shared: dict[tuple[int, int], Placed] = {}
        n_warps = -(-self.trace.threads // LANES)
        running = [_Warp(self, place, index, shared).start(function, arguments) for index in range(n_warps)]
        while running:
            barriers = [next(warp, None) for warp in running]
            if None in barriers and any(barriers):
                line = next(filter(None, barriers))
                raise MinferError(
                    f"block {place}: warps {[i for i, at in enumerate(barriers) if at]} wait at the barrier of line "
                    f"{line}, and warps {[i for i, at in enumerate(barriers) if at is None]} have ended. On a GPU this "
                    f"may hang: every thread of a block must reach each barrier."
                )
            if len(set(barriers)) > 1:
                raise MinferError(
                    f"block {place}: its warps wait at different barriers, lines {sorted(set(barriers))}."
                )
            running = running if barriers[0] else []


class _Warp(Expressions):
    """32 lanes that walk through a kernel's syntax tree together."""

    def __init__(self, run: _Run, place: int, index: int, shared: dict[tuple[int, int], Placed]) -> None:
        super().__init__(run.memory, run.grid, place, index, shared, run.shared_bytes)
        self.run, self.exists = run, self.thread < run.trace.threads

    def start(self, function: FunctionType, arguments: tuple) -> Iterator[int]:
        """Yields the line of each barrier that it reaches."""
        return self.call(function, arguments, self.exists)

    def call(self, function: FunctionType, arguments: tuple, active: np.ndarray) -> Iterator[int]:
        frame = Frame(function, active)
        frame.variables = dict(zip(inspect.signature(function).parameters, arguments, strict=True))
        yield from self.body(frame, _tree(function).body, active)
        return frame.result

    # Statements

    def body(self, frame: Frame, statements: list[ast.stmt], active: np.ndarray) -> Iterator[int]:
        for statement in statements:
            now = active & frame.alive
            if not now.any():
                return
            method = getattr(self, f"do_{type(statement).__name__.lower()}", None)
            if method is None:
                raise UnsupportedError(
                    f"line {statement.lineno}: warps are not simulated with {type(statement).__name__}: "
                    f"{ast.unparse(statement).splitlines()[0]}"
                )
            yield from method(frame, statement, now) or ()

    def do_assign(self, frame: Frame, node: ast.Assign, active: np.ndarray) -> None:
        value = self.value(frame, node.value, active)
        changed = [change for target in node.targets for change in self.bind(frame, target, value, active)]
        self.record(frame, node, active, dict(changed))

    def do_augassign(self, frame: Frame, node: ast.AugAssign, active: np.ndarray) -> None:
        loaded = ast.copy_location(ast.parse(ast.unparse(node.target), mode="eval").body, node)
        value = binary(node.op, self.value(frame, loaded, active), self.value(frame, node.value, active))
        self.record(frame, node, active, dict(self.bind(frame, node.target, value, active)))

    def do_expr(self, frame: Frame, node: ast.Expr, active: np.ndarray) -> Iterator[int]:
        if isinstance(node.value, ast.Constant):  # a docstring
            return
        if isinstance(node.value, ast.Call) and self.value(frame, node.value.func, active) is ops.barrier:
            missing = self.exists & frame.alive & ~active
            if missing.any():
                raise MinferError(
                    f"line {node.lineno}: a barrier that lanes {np.flatnonzero(missing).tolist()} of warp {self.index} "
                    f"do not reach, because a condition keeps them out. On a GPU this may hang."
                )
            self.record(frame, node, active, {})
            yield node.lineno
        else:
            self.value(frame, node.value, active)
            self.record(frame, node, active, {})

    def do_if(self, frame: Frame, node: ast.If, active: np.ndarray) -> Iterator[int]:
        condition = self.value(frame, node.test, active)
        if condition.ndim:  # else all lanes know it before, often because it is a constant
            self.record(frame, node, active, {ast.unparse(node.test): condition})
        taken = active & lanes(condition).astype(bool)
        if taken.any():
            self.mark(frame, node.lineno, node.body[0].lineno - 1)
            yield from self.body(frame, node.body, taken)
        if node.orelse and (active & ~taken).any():
            self.mark(frame, node.body[-1].end_lineno + 1, node.orelse[0].lineno - 1)  # its "else:"
            yield from self.body(frame, node.orelse, active & ~taken)

    def do_while(self, frame: Frame, node: ast.While, active: np.ndarray) -> Iterator[int]:
        while active.any():
            condition = lanes(self.value(frame, node.test, active)).astype(bool)
            self.record(frame, node, active, {ast.unparse(node.test): condition})
            active = active & condition
            yield from self.body(frame, node.body, active)
            active = active & frame.alive

    def do_for(self, frame: Frame, node: ast.For, active: np.ndarray) -> Iterator[int]:
        for value in self.value(frame, node.iter, active):
            now = active & frame.alive
            if now.any():
                self.record(frame, node, now, dict(self.bind(frame, node.target, lift(value), now)))
                yield from self.body(frame, node.body, now)

    def do_return(self, frame: Frame, node: ast.Return, active: np.ndarray) -> None:
        value = None if node.value is None else self.value(frame, node.value, active)
        frame.result = merge(active, value, frame.result)
        frame.alive &= ~active
        self.record(frame, node, active, dict(_shown("returned", value)))

    def do_pass(self, frame: Frame, node: ast.Pass, active: np.ndarray) -> None:
        return

    # Names

    def bind(self, frame: Frame, target: ast.expr, value: Any, active: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Put a value into a variable, some variables, or memory, in the active lanes; (name, [32]) for each."""
        if isinstance(target, ast.Tuple):
            for part, of_it in zip(target.elts, value, strict=True):
                yield from self.bind(frame, part, of_it, active)
        elif isinstance(target, ast.Subscript):
            placed = self.value(frame, target.value, active)
            index = lanes(self.value(frame, target.slice, active))
            stored = lanes(value).astype(placed.array.dtype)
            self._access("store", placed, index, placed.array.itemsize, active, target)
            placed.array[index[active]] = stored[active]
            yield ast.unparse(target), stored
        else:
            merged = merge(active, value, frame.variables.get(target.id))
            frame.variables[target.id] = merged
            yield from _shown(target.id, merged)

    def record(self, frame: Frame, node: ast.stmt, active: np.ndarray, changed: dict[str, np.ndarray]) -> None:
        steps, function = self.run.trace.steps, frame.function
        if len(steps) >= self.run.limit:
            raise MinferError(
                f"line {node.lineno} of {function.__name__}: {len(steps):,} steps and no end. A loop may never end; "
                f"else simulate fewer blocks, or raise the limit."
            )
        filename = function.__code__.co_filename
        text = linecache.getline(filename, node.lineno).rstrip("\n")
        self.mark(frame, node.lineno, node.body[0].lineno - 1 if hasattr(node, "body") else node.end_lineno)
        end = node.end_col_offset if node.end_lineno == node.lineno else len(text)
        steps.append(
            Step(len(steps), self.place, self.index, active, changed, tuple(self.accesses), self.sources,
                 function.__name__, filename, node.lineno, (node.col_offset, end), text)
        )  # fmt: skip
        self.accesses, self.sources = [], None

    def mark(self, frame: Frame, first: int, last: int) -> None:
        filename = frame.function.__code__.co_filename
        self.run.trace.lines.update((filename, line) for line in range(first, last + 1))


def _shown(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Numbers only; a tuple's parts one by one."""
    if isinstance(value, tuple):
        for i, part in enumerate(value):
            yield from _shown(f"{name}[{i}]", part)
    elif isinstance(value, (np.generic, np.ndarray)):
        yield name, lanes(value)


@cache
def _tree(function: FunctionType) -> ast.FunctionDef:
    """The function's syntax tree, with the lines and columns of its file."""
    source, first = inspect.getsourcelines(function)
    indent = len(source[0]) - len(source[0].lstrip())
    tree = ast.parse(textwrap.dedent("".join(source)))
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno, node.end_lineno = node.lineno + first - 1, node.end_lineno + first - 1
            node.col_offset, node.end_col_offset = node.col_offset + indent, node.end_col_offset + indent
    return tree.body[0]
