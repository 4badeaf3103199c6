"""Matrix products, and the residual add that follows some."""

from __future__ import annotations

import numpy as np
from numba import carray

from minfer_lib.matmul.product import PRODUCT, Matrix, call_compute
from minfer_lib.model.config import Config
from minfer_lib.model.memory import Memory
from minfer_lib.model.operation import Operation
from minfer_lib.native.address import floats_at, int64_record, pointer, record_of
from minfer_lib.native.jit import kernel

_MATMUL = int64_record("products", "n_products")
_PRODUCT_BYTES = PRODUCT.itemsize


@kernel
def _matmul(operands, run, n, first, last, worker):
    """Rows [first, last) of the matrices, which are numbered one under the other, times n tokens."""
    o = carray(pointer(operands), 1, _MATMUL)[0]
    above = 0  # rows of the matrices before
    for i in range(o.n_products):
        address = o.products + i * _PRODUCT_BYTES
        product = carray(pointer(address), 1, PRODUCT)[0]
        begin, end = max(first - above, 0), min(last - above, product.n_out)
        if begin < end:
            call_compute(product.compute, address, begin, end, 0, n, worker)
        above += product.n_out


class MatMul(Operation):
    """Buffer a times one matrix or several, each into the buffer that it is given for: MatMul(…, a="h", q=…, k=…)."""

    kind, unit, job = "matmul", "row", _matmul

    def __init__(self, name: str, a: str, **matrices: Matrix) -> None:
        stages = {name if out == "out" else out: out for out in matrices}  # two operations of a layer share "out"
        super().__init__(name, stages)
        self.a, self.matrices = a, matrices

    def units(self, config: Config) -> int:
        return sum(matrix.n_out for matrix in self.matrices.values())

    def prepare(self, memory: Memory) -> None:
        for matrix in self.matrices.values():
            memory.prepare(self.a, matrix)

    def bind(self, memory: Memory, layer: int) -> np.ndarray:
        outs = [(m, out if out in memory.floats else None) for out, m in self.matrices.items()]
        self.products = np.concatenate([memory.product(m, self.a, out) for m, out in outs])
        return record_of(_MATMUL, products=self.products.ctypes.data, n_products=len(self.products))


_ADD = int64_record("to", "y", "width")


@kernel
def _add(operands, run, n, first, last, worker):
    """to += y in columns [first, last) of n tokens: the rows of a matrix are the columns of its product."""
    o = carray(pointer(operands), 1, _ADD)[0]
    to, y = floats_at(o.to, n, o.width), floats_at(o.y, n, o.width)
    for t in range(n):
        for i in range(first, last):
            to[t, i] += y[t, i]


class Add(Operation):
    """Buffer `to` += buffer y, as soon as the rows of the matrix that makes y are there."""

    unit, job = "row", _add

    def __init__(self, name: str, to: str, y: str, stage: str) -> None:
        super().__init__(name, {stage: to})
        self.to, self.y = to, y

    def units(self, config: Config) -> int:
        return config.width

    def bind(self, memory: Memory, layer: int) -> np.ndarray:
        return record_of(_ADD, to=memory.address(self.to), y=memory.address(self.y), width=memory.config.width)
