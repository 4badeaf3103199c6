"""What an expression of a kernel gives in 32 lanes: numbers, memory, shuffles, and calls.

A value is a number (see warp_values), a tuple of values, the place of an array, or a Python object such as a function.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from functools import reduce
from types import FunctionType
from typing import Any

import numpy as np

from minfer_lib.errors import MinferError, UnsupportedError
from minfer_lib.gpu import ops
from minfer_lib.gpu.warp_memory import LANES, Access, Memory, Placed
from minfer_lib.gpu.warp_values import binary, compare, lanes, lift, merge, unary


class Frame:
    """A function under way: its variables, the lanes that have not returned, and what those that have returned gave."""

    def __init__(self, function: FunctionType, active: np.ndarray) -> None:
        self.function, self.alive, self.result = function, active.copy(), None
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self.outer = {**vars(builtins), **function.__globals__, **{n: c.cell_contents for n, c in cells}}
        self.variables: dict[str, Any] = {}

    def find(self, name: str) -> Any:
        if name in self.variables:
            return self.variables[name]
        if name in self.outer:
            return lift(self.outer[name])
        raise MinferError(f"{self.function.__name__} uses {name} before anything was put into it.")


class Expressions:
    """One warp's: where it is, and what it has accessed since the last statement. A subclass says what a call does."""

    def __init__(
        self, memory: Memory, grid: int, place: int, index: int, shared: dict, shared_bytes: int
    ) -> None:  # fmt: skip
        self.memory, self.grid, self.place, self.index, self.shared_bytes = memory, grid, place, index, shared_bytes
        self.shared: dict[tuple[int, int], Placed] = shared  # the block's
        self.thread = np.arange(index * LANES, (index + 1) * LANES, dtype=np.int64)
        self.accesses: list[Access] = []
        self.sources: np.ndarray | None = None  # of a shuffle

    def call(self, function: FunctionType, arguments: tuple, active: np.ndarray) -> Iterator[int]:
        """Run a function's statements; what the iterator returns is its result."""
        raise NotImplementedError

    def value(self, frame: Frame, node: ast.expr, active: np.ndarray) -> Any:
        """A scalar or lanes, a tuple of them, an array's place, or a Python object."""
        method = getattr(self, f"of_{type(node).__name__.lower()}", None)
        if method is None:
            raise UnsupportedError(
                f"line {node.lineno}: warps are not simulated with {type(node).__name__}: {ast.unparse(node)}"
            )
        return method(frame, node, active)

    def of_constant(self, frame: Frame, node: ast.Constant, active: np.ndarray) -> Any:
        return lift(node.value)

    def of_name(self, frame: Frame, node: ast.Name, active: np.ndarray) -> Any:
        return frame.find(node.id)

    def of_tuple(self, frame: Frame, node: ast.Tuple, active: np.ndarray) -> tuple:
        return tuple(self.value(frame, part, active) for part in node.elts)

    def of_binop(self, frame: Frame, node: ast.BinOp, active: np.ndarray) -> Any:
        return binary(node.op, self.value(frame, node.left, active), self.value(frame, node.right, active))

    def of_unaryop(self, frame: Frame, node: ast.UnaryOp, active: np.ndarray) -> Any:
        return unary(node.op, self.value(frame, node.operand, active))

    def of_compare(self, frame: Frame, node: ast.Compare, active: np.ndarray) -> Any:
        values = [self.value(frame, part, active) for part in (node.left, *node.comparators)]
        results = [compare(op, a, b) for op, a, b in zip(node.ops, values, values[1:], strict=False)]
        return np.logical_and.reduce(np.broadcast_arrays(*results)) if len(results) > 1 else results[0]

    def of_boolop(self, frame: Frame, node: ast.BoolOp, active: np.ndarray) -> Any:
        """The right side is computed only in lanes whose result it decides."""
        result = self.value(frame, node.values[0], active)
        for part in node.values[1:]:
            decides = result if isinstance(node.op, ast.And) else np.logical_not(result)
            now = active & lanes(decides).astype(bool)
            if now.any():
                result = merge(lanes(decides).astype(bool), self.value(frame, part, now), result)
        return result

    def of_ifexp(self, frame: Frame, node: ast.IfExp, active: np.ndarray) -> Any:
        condition = lanes(self.value(frame, node.test, active)).astype(bool)
        yes, no = active & condition, active & ~condition
        if not (yes.any() and no.any()):
            return self.value(frame, node.body if yes.any() else node.orelse, active)
        return merge(condition, self.value(frame, node.body, yes), self.value(frame, node.orelse, no))

    def of_subscript(self, frame: Frame, node: ast.Subscript, active: np.ndarray) -> Any:
        whole, index = self.value(frame, node.value, active), self.value(frame, node.slice, active)
        if isinstance(whole, tuple):
            return lift(whole[int(self._uniform(index, active, node))])
        if not isinstance(whole, Placed):
            raise UnsupportedError(f"line {node.lineno}: {ast.unparse(node)} is neither memory nor a tuple.")
        self._access("load", whole, lanes(index), whole.array.itemsize, active, node)
        return whole.array[np.where(active, index, 0)]

    def of_attribute(self, frame: Frame, node: ast.Attribute, active: np.ndarray) -> Any:
        return lift(getattr(self.value(frame, node.value, active), node.attr))

    def of_call(self, frame: Frame, node: ast.Call, active: np.ndarray) -> Any:
        function = self.value(frame, node.func, active)
        arguments = [self.value(frame, argument, active) for argument in node.args]
        if (bound := self._bound().get(function)) is not None:
            return bound(node, active, *arguments)
        if function is range:
            return list(range(*(int(self._uniform(a, active, node)) for a in arguments)))
        if function in (min, max):
            return reduce(np.minimum if function is min else np.maximum, arguments)
        if (dtype := _number_type(function)) is not None:
            return arguments[0].astype(dtype)
        inner = getattr(function, "py_func", function)
        if not isinstance(inner, FunctionType):
            raise UnsupportedError(f"line {node.lineno}: warps are not simulated with {ast.unparse(node.func)}.")
        if inner.__module__ == ops.__name__:
            return self._lane_by_lane(inner, arguments, node, active)
        return _result(self.call(inner, tuple(arguments), active), node)

    def _bound(self) -> dict[Callable, Callable]:
        """The operations that depend on where a thread stands, or on the other lanes."""
        return {
            ops.block_index: lambda node, active: np.int64(self.place),
            ops.n_blocks: lambda node, active: np.int64(self.grid),
            ops.thread_index: lambda node, active: self.thread,
            ops.shared_f32: lambda node, active, n: self._of_block(node, np.full(int(n), np.nan, np.float32)),
            ops.shared_bytes: lambda node, active: self._of_block(node, np.zeros(self.shared_bytes, np.uint8)),
            ops.shared_arrival: lambda node, active: self._of_block(node, np.zeros(1, np.uint64)),
            ops.start_copy: self._start_copy,
            ops.wait_copy: self._wait_copy,
            ops.next_may_start: lambda node, active: None,  # kernels are simulated one after the other
            ops.previous_done: lambda node, active: None,
            ops.shuffle_down: self._shuffle_down,
            ops.warp_max: self._warp_max,
            ops.warp_sum: self._warp_sum,
        }

    def _lane_by_lane(self, op: Callable, arguments: list, node: ast.Call, active: np.ndarray) -> Any:
        """The operation's own body, in each active lane; the others get zero."""
        if op in MEMORY:
            kind, n_bytes = MEMORY[op]
            self._access(kind, arguments[0], lanes(arguments[1]), n_bytes, active, node)
        columns = [[a.array] * LANES if isinstance(a, Placed) else lanes(a) for a in arguments]
        return _gathered([op(*operands) if on else None for on, *operands in zip(active, *columns, strict=True)])

    def _uniform(self, value: Any, active: np.ndarray, node: ast.expr) -> Any:
        """The scalar that all active lanes have."""
        different = np.unique(lanes(value)[active])
        if len(different) > 1:
            raise UnsupportedError(
                f"line {node.lineno}: {ast.unparse(node)} needs one number for all lanes, and they have "
                f"{different[:4].tolist()} … Loop with while, choose with if."
            )
        return different[0]

    def _of_block(self, node: ast.Call, array: np.ndarray) -> Placed:
        """The block's own memory, the same for all its warps: what the first of them made at this place."""
        at = node.lineno, node.col_offset
        if at not in self.shared:
            self.shared[at] = self.memory.place(array, f"shared memory of block {self.place}", True)
        return self.shared[at]

    def _start_copy(
        self, node: ast.Call, active: np.ndarray, stage: Placed, source: Placed, at: Any, n: Any, arrival: Placed
    ) -> None:
        """The whole copy, at once. `arrival` holds how many bytes have come."""
        if active.sum() != 1:
            raise MinferError(f"{self._where(node)} is for one thread; {active.sum()} lanes are active.")
        at, n = int(self._uniform(at, active, node)), int(self._uniform(n, active, node))
        if at % 16 or n % 16 or not 0 <= at <= at + n <= source.array.size or n > stage.array.size:
            raise MinferError(
                f"{self._where(node)} copies {n:,} bytes from byte {at:,} of {source.name}, which has "
                f"{source.array.size:,}, into {stage.array.size:,}. Both must be multiples of 16, and lie inside."
            )
        stage.array[:n], arrival.array[0] = source.array[at : at + n], n
        first = np.full(LANES, source.base + at, np.uint64)
        self.accesses.append(Access("copy", source.name, first, n, active))

    def _wait_copy(self, node: ast.Call, active: np.ndarray, arrival: Placed) -> None:
        if not arrival.array[0]:
            raise MinferError(f"{self._where(node)} waits for a copy that no thread has started: put a barrier before.")

    def _shuffle_down(self, node: ast.Call, active: np.ndarray, value: Any, by: Any) -> np.ndarray:
        """Each lane receives the value of a later one; its own where there is none."""
        self._together(node, active)
        lane = np.arange(LANES)
        wanted = lane + lanes(by).astype(np.int64)
        self.sources = np.where(wanted < LANES, wanted, lane)
        return lanes(value)[self.sources]

    def _warp_max(self, node: ast.Call, active: np.ndarray, word: Any) -> np.ndarray:
        self._together(node, active)
        return lanes(lanes(word).max())

    def _warp_sum(self, node: ast.Call, active: np.ndarray, value: Any) -> np.ndarray:
        self._together(node, active)
        return lanes(lanes(value).astype(np.int64).sum().astype(np.int32))

    def _together(self, node: ast.Call, active: np.ndarray) -> None:
        if not active.all():
            raise MinferError(
                f"{self._where(node)} needs all 32 lanes, but lanes {np.flatnonzero(~active).tolist()} are not there. "
                f"Give them a zero instead of a way around it."
            )

    def _access(
        self, kind: str, placed: Placed, index: np.ndarray, n_bytes: int, active: np.ndarray, node: ast.expr
    ) -> None:  # fmt: skip
        """Note an access to n_bytes from element `index` of an array on; MinferError where a GPU would not allow it."""
        placed.check(index, n_bytes, active, self._where(node))
        kind = f"shared {kind}" if placed.shared else kind
        self.accesses.append(Access(kind, placed.name, placed.address(index), n_bytes, active))

    def _where(self, node: ast.expr) -> str:
        return f"line {node.lineno} ({ast.unparse(node)}), warp {self.index} of block {self.place}:"


MEMORY = {  # operation(array, index, …) -> what it does, and to how many bytes
    ops.load2: ("load", 2), ops.load4: ("load", 4), ops.load8: ("load", 8), ops.load16: ("load", 16),
    ops.stream4: ("load", 4), ops.stream8: ("load", 8), ops.stream16: ("load", 16), ops.store4: ("store", 4),
    ops.coherent4: ("load", 4), ops.coherent8: ("load", 8), ops.coherent16: ("load", 16),
    ops.staged2: ("load", 2), ops.staged4: ("load", 4), ops.staged8: ("load", 8), ops.staged16: ("load", 16),
}  # fmt: skip
_NUMBERS = {"bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float32", "float64"}


def _number_type(function: Any) -> np.dtype | None:
    """int32, as a type of numba or of NumPy -> its dtype; None for what is no type of numbers."""
    name = getattr(function, "name", getattr(function, "__name__", ""))
    return np.dtype(name) if isinstance(name, str) and name in _NUMBERS else None


def _gathered(results: list) -> Any:
    """What 32 lanes computed, None where they did not, as lanes; a tuple of lanes where each computed a tuple."""
    one = next((result for result in results if result is not None), None)
    if one is None:
        return None
    if isinstance(one, tuple):
        nothing = (None,) * len(one)
        return tuple(_gathered(list(part)) for part in zip(*(r or nothing for r in results), strict=True))
    return np.array([one.dtype.type(0) if r is None else r for r in results], one.dtype)


def _result(call: Iterator[int], node: ast.Call) -> Any:
    """Of a device function, which the warp runs as one statement."""
    try:
        next(call)
    except StopIteration as end:
        return end.value
    raise UnsupportedError(f"line {node.lineno}: a barrier inside {ast.unparse(node.func)}; put it into the kernel.")
