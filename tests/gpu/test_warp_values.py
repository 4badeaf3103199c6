"""The numbers of simulated warps have the types and the arithmetic of numba."""

import ast
import operator
from itertools import product

import numpy as np
import pytest
from numba.core.registry import cpu_target
from numba.np.numpy_support import from_dtype

from minfer_lib.gpu.warp_sim import simulate
from minfer_lib.gpu.warp_values import binary

INTEGERS = [np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Div: operator.truediv,
}  # fmt: skip


@pytest.mark.parametrize("node", OPERATORS)
def test_types_are_those_of_numba(node):
    cpu_target.typing_context.refresh()
    bitwise = node in (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
    floats = [] if bitwise else [np.dtype(np.float32), np.dtype(np.float64)]
    for a, b in product([*INTEGERS, *floats], repeat=2):
        if {a, b} == {np.dtype(np.uint16), np.dtype(np.float32)}:  # float64 in numba, float32 in NumPy; kernels cast
            continue
        types = from_dtype(a), from_dtype(b)
        signature = cpu_target.typing_context.resolve_function_type(OPERATORS[node], types, {})
        result = binary(node(), np.ones(32, a), np.ones(32, b))
        assert from_dtype(result.dtype) == signature.return_type, f"{a} {node.__name__} {b}"


def test_int32_wraps_and_float32_rounds():
    def arithmetic(out, floats, third):
        big = np.int32(2147483647)
        out[0] = np.int32(big + 1)
        out[1] = np.int32(np.uint32(4294967295))
        floats[0] = third + third * third

    out, floats, third = np.zeros(2, np.int32), np.zeros(1, np.float32), np.float32(1 / 3)
    simulate(arithmetic, 1, 1, (out, floats, third))
    assert out.tolist() == [-2147483648, -1] and floats[0] == third + third * third
