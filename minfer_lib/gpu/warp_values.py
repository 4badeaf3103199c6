"""Numbers of 32 lanes, with numba's types: an integer operation has 64 bits, float32 stays float32 among its own.

A value is a NumPy scalar where all lanes have the same, else an array of 32. A literal is an int64 or a float64.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minfer_lib.errors import UnsupportedError
from minfer_lib.gpu.warp_memory import LANES

_BINARY: dict[type, Callable] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.Div: operator.truediv,
}  # fmt: skip
_SHIFTS = (ast.LShift, ast.RShift)
_COMPARE: dict[type, Callable] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_UNARY: dict[type, Callable] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}


def lift(value: Any) -> Any:
    """Python's numbers as numba types them; anything else as it is."""
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return np.int64(value)
    return np.float64(value) if isinstance(value, float) else value


def lanes(value: Any) -> np.ndarray:
    """[32] of a scalar or of lanes."""
    return np.broadcast_to(value, LANES)


def binary(node: ast.operator, a: Any, b: Any) -> Any:
    """a, b: scalars or lanes. numba: `integer_binop_cases` and the rules of NumPy for floats."""
    if type(node) not in _BINARY:
        raise UnsupportedError(f"warps are not simulated with the operator {type(node).__name__}.")
    if _integer(a) and _integer(b) and not isinstance(node, ast.Div):
        unsigned = a.dtype.kind == "u" and (isinstance(node, _SHIFTS) or b.dtype.kind == "u")
        wide = np.uint64 if unsigned else np.int64
        a, b = a.astype(wide), b.astype(wide)
    return _BINARY[type(node)](a, b)


def compare(node: ast.cmpop, a: Any, b: Any) -> Any:
    if type(node) not in _COMPARE:
        raise UnsupportedError(f"warps are not simulated with the comparison {type(node).__name__}.")
    return _COMPARE[type(node)](a, b)


def unary(node: ast.unaryop, a: Any) -> Any:
    if isinstance(node, ast.Not):
        return np.logical_not(a)
    if _integer(a):
        a = a.astype(np.uint64 if a.dtype.kind == "u" else np.int64)
    return _UNARY[type(node)](a)


def merge(active: np.ndarray, new: Any, old: Any) -> Any:
    """`new` in the active lanes, `old` in the others; None: those lanes have nothing yet, shown as zero."""
    if isinstance(new, tuple):
        old = old if isinstance(old, tuple) and len(old) == len(new) else (None,) * len(new)
        return tuple(merge(active, n, o) for n, o in zip(new, old, strict=True))
    if not isinstance(new, (np.generic, np.ndarray)) or active.all():
        return new
    old = np.zeros(LANES, new.dtype) if old is None else old
    return np.where(active, new, old)


def _integer(value: Any) -> bool:
    return value.dtype.kind in "iub"
