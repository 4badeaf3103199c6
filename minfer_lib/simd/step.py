"""Run a kernel's own Python source on emulated registers, and record each operation.

    trace = step(dot_q4_0_avx2, w, 0, a, 0, n_blocks)
    trace.result                     # the bits that the compiled kernel gives
    for s in trace.steps:
        print(s.line, s.text, s.instruction, s.output)

The kernel's code object runs with its globals bound anew: an instruction of `ops.py` becomes its NumPy meaning, another
kernel becomes its own source, bound anew in the same way. So every kernel set steps on every machine.
"""

from __future__ import annotations

import dis
import linecache
import operator
import sys
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

import numpy as np
from numba import typeof
from numba.core.dispatcher import Dispatcher

from minfer_lib.simd.amx import Tile
from minfer_lib.simd.instruction import INSTRUCTIONS, Instruction
from minfer_lib.simd.registers import Register


@dataclass(frozen=True)
class Operand:
    """What goes into a step or comes out of it."""

    type: str  # "i8x32", "float32", "array(uint8, 1d, C)" …
    value: Any  # the lanes as an array, lane 0 first; a tile's rows; a scalar; or the array in memory
    step: int | None = None  # the step that made it; None: it came from outside
    name: str | None = None  # the variable that it was put into at once, if any


@dataclass(frozen=True)
class KernelStep:
    """One operation."""

    number: int
    name: str  # as in ops.py: "maddubs", or the operator's: "and"
    instruction: str  # "vpmaddubsw"; "" where nothing is executed
    inputs: tuple[Operand, ...]
    output: Operand | None
    lost: np.ndarray | None  # bool a lane: the exact result did not fit into it; None: all fitted
    saturated: bool  # a lane was clipped to its range
    overflowed: bool  # a lane wrapped around
    kernel: str  # the name of the kernel whose source stands here
    filename: str
    line: int
    columns: tuple[int, int]  # the expression within the line; where it ends on a later line, to the line's end
    text: str  # the line


@dataclass
class KernelTrace:
    """What `step` returns: the kernel's result and all its operations, in order."""

    kernel: str
    isa: str
    steps: list[KernelStep] = field(default_factory=list)
    result: Any = None

    @property
    def flagged(self) -> list[KernelStep]:
        """The steps in which a lane saturated or overflowed."""
        return [s for s in self.steps if s.saturated or s.overflowed]


class Lanes:
    """An emulated register. Its operators are those that compiled registers have."""

    __array_ufunc__ = None  # so that NumPy's scalars do not take it for an array
    __slots__ = ("operand", "register", "run")

    def __init__(self, register: Register, operand: Operand, run: Callable) -> None:
        self.register, self.operand, self.run = register, operand, run

    def __repr__(self) -> str:
        return f"{self.register}{self.operand.value.tolist()}"


def _lanes_operator(symbol):
    return lambda self, other: self.run(symbol, (self, other), sys._getframe(1))


for _symbol in INSTRUCTIONS:
    if getattr(operator, getattr(_symbol, "__name__", ""), None) is _symbol:
        setattr(Lanes, f"__{_symbol.__name__.strip('_')}__", _lanes_operator(_symbol))


def step(kernel: Dispatcher, *args, isa: str | None = None) -> KernelTrace:
    """Run `kernel` (made by @kernel or numba.njit) with these arguments on emulated registers.

    isa: whose mnemonics are shown; None: the kernel's name ends in it ("…_neon"), else avx2.
    Raises TypeError where compiling would, too: an operation does not exist for the types of its operands.
    """
    name = kernel.py_func.__name__
    trace = KernelTrace(name, isa or ("neon" if name.endswith("_neon") else name.rpartition("_")[2]))
    run = _Recorder(trace)
    with np.errstate(all="ignore"):
        trace.result = run.plain(rebind(kernel.py_func, run.bind)(*args))
    return trace


def rebind(function: FunctionType, bind: Callable[[Any], Any]) -> FunctionType:
    """The same code with bind(value) for every global, and every variable of an enclosing function, that it names."""
    names = _names(function.__code__)
    bound = {n: bind(v) for n, v in function.__globals__.items() if n in names}
    cells = tuple(CellType(bind(cell.cell_contents)) for cell in function.__closure__ or ())
    scope = {**function.__globals__, **bound}
    return FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)


def _names(code: CodeType) -> set[str]:
    inner = [_names(const) for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*inner)


class _Recorder:
    """Runs operations and writes them into a trace."""

    def __init__(self, trace: KernelTrace) -> None:
        self.trace = trace
        self.bound: dict[int, Any] = {}  # kernels already bound anew

    def bind(self, value: Any) -> Any:
        """What stands for a kernel's global: an emulated instruction, a kernel bound anew, or the value itself."""
        if isinstance(value, Dispatcher):
            if id(value) not in self.bound:
                self.bound[id(value)] = rebind(value.py_func, self.bind)
            return self.bound[id(value)]
        if getattr(value, "__hash__", None) and value in INSTRUCTIONS and value not in vars(operator).values():
            return lambda *operands: self(value, operands, sys._getframe(1))
        return value

    def __call__(self, symbol: Any, values: tuple, frame: FrameType) -> Any:
        instruction: Instruction = INSTRUCTIONS[symbol]
        types_ = tuple(v.register if isinstance(v, Lanes) else _type_of(v) for v in values)
        signature = instruction.typing(*types_)
        if signature is None:
            raise TypeError(f"there is no {instruction.name}({', '.join(map(str, types_))}).")
        inputs = tuple(map(_operand, values, types_))  # before a tile gets what it holds next
        exact = instruction.meaning(*map(self.plain, values))
        result, lost = _fit(exact, signature.return_type, instruction.beyond)
        place = _place(frame)
        number = len(self.trace.steps)
        output = None if result is None else Operand(str(signature.return_type), result, number, place.target)
        registers = [t for t in (signature.return_type, *types_) if isinstance(t, Register)]
        self.trace.steps.append(
            KernelStep(
                number,
                instruction.name,
                instruction.mnemonic(self.trace.isa, registers[0] if registers else None),
                inputs,
                output,
                lost,
                saturated=lost is not None and instruction.beyond == "saturates",
                overflowed=lost is not None and instruction.beyond == "wraps",
                kernel=frame.f_code.co_name,
                filename=frame.f_code.co_filename,
                line=place.line,
                columns=place.columns,
                text=linecache.getline(frame.f_code.co_filename, place.line).rstrip("\n"),
            )
        )
        return Lanes(signature.return_type, output, self) if isinstance(signature.return_type, Register) else result

    def plain(self, value: Any) -> Any:
        """Lanes as NumPy arrays, also in a tuple; anything else as it is."""
        if isinstance(value, tuple):
            return tuple(map(self.plain, value))
        return value.operand.value if isinstance(value, Lanes) else value


def _operand(value: Any, type_: Any) -> Operand:
    if isinstance(value, Lanes):
        return value.operand
    return Operand(str(type_), value.bytes if isinstance(value, Tile) else value)


def _type_of(value: Any):
    return typeof(value) if isinstance(value, (np.ndarray, Register, Tile)) else _scalar_type(type(value))


@cache
def _scalar_type(python_type: type):
    return typeof(python_type(0))


def _fit(exact: Any, type_: Any, beyond: str) -> tuple[Any, np.ndarray | None]:
    """(the exact result as it fits into a register or scalar of `type_`, which lanes did not hold it)"""
    if exact is None:
        return None, None
    if not isinstance(type_, Register):
        return exact, None
    lost = None
    if exact.dtype != type_.dtype and not type_.is_float:
        limits = np.iinfo(type_.dtype)
        outside = (exact < limits.min) | (exact > limits.max)
        lost = outside if outside.any() and beyond != "drops" else None
        if beyond == "saturates":
            exact = exact.clip(limits.min, limits.max)
    result = exact.astype(type_.dtype)
    result.flags.writeable = False
    return result, lost


@dataclass(frozen=True)
class _Place:
    """Where in the source an instruction of Python's byte code stands, and the variable that its value goes into."""

    line: int
    columns: tuple[int, int]
    target: str | None


def _place(frame: FrameType) -> _Place:
    offsets, places = _places(frame.f_code)
    return places[bisect_right(offsets, frame.f_lasti) - 1]


@cache
def _places(code: CodeType) -> tuple[list[int], list[_Place]]:
    """Offsets of all instructions, and the place of each."""
    places, listing = [], list(dis.get_instructions(code))
    for this, after in zip(listing, [*listing[1:], None], strict=True):
        p = this.positions
        end = p.end_col_offset if p.end_lineno == p.lineno else None
        target = after.argval if after is not None and after.opname == "STORE_FAST" else None
        places.append(_Place(p.lineno or code.co_firstlineno, (p.col_offset or 0, end or sys.maxsize), target))
    return [this.offset for this in listing], places
