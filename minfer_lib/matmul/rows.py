"""mm_rows: one worker's rows of a matrix product, and the product itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minfer_lib.dot.kernels import Kernel, dot_rows, kernel_for
from minfer_lib.errors import ArgumentError
from minfer_lib.formats.arrays import float_array
from minfer_lib.formats.pairing import weight_format
from minfer_lib.formats.table import FORMATS
from minfer_lib.jit import kernel
from minfer_lib.matmul.chunks import even_split
from minfer_lib.matmul.pool import cpu_threads, par_for
from minfer_lib.quantize.activations import activation_rows

ROWS_IN_CACHE = 16  # with several tokens: so many rows are read from the cache by all of them


@kernel
def mm_rows(dot, w, w_at, row_bytes, first, last, a, n_blocks, out):
    """Rows [first, last) of the matrix at byte w_at of w, times every token. Seed 1 §3.2, mm_rows.

    w: uint8[:]; a: uint8[n_tokens, a_row_bytes]; out: f32[n_tokens, n_out], token-major.
    Each row is written by one worker and summed in one order: the same bits at any number of threads.
    """
    n_tokens, a_row_bytes = a.shape
    a_flat = a.reshape(a.size)
    step = max(1, last - first) if n_tokens == 1 else ROWS_IN_CACHE  # a worker may have no rows at all
    for o in range(first, last, step):
        for t in range(n_tokens):
            dot_rows(dot, w, w_at, row_bytes, o, min(o + step, last), a_flat, t * a_row_bytes, n_blocks, out, t)


@dataclass(frozen=True)
class Matrix:
    """[n_out, n_in] weights as they lie in a read-only uint8 array, from byte `at` on."""

    dot: Kernel
    w: np.ndarray
    at: int
    n_out: int
    n_in: int

    @property
    def activation(self) -> str | None:
        return FORMATS[self.dot.format].activation

    @property
    def row_bytes(self) -> int:
        return FORMATS[self.dot.format].row_bytes(self.n_in)


def multiply(matrix: Matrix, a: np.ndarray, threads: int) -> np.ndarray:
    """a: uint8[n_tokens, a_row_bytes] in the matrix's activation format -> f32[n_tokens, n_out]."""
    out = np.empty((a.shape[0], matrix.n_out), np.float32)
    n_blocks = matrix.n_in // FORMATS[matrix.dot.format].block_values

    def rows_of(part: int) -> None:
        first, last = even_split(part, threads, matrix.n_out)
        mm_rows(matrix.dot, matrix.w, matrix.at, matrix.row_bytes, first, last, a, n_blocks, out)

    par_for(threads, rows_of)
    return out


def matmul(name: str, w: np.ndarray, x: np.ndarray, threads: int | None = None) -> np.ndarray:
    """Weights of format `name`, w: uint8[n_out, row_bytes], times x: f32[n_tokens, n_in] -> f32[n_tokens, n_out].

    threads: any number >= 1; None: one a core. The bits do not depend on it.
    Raises ArgumentError (shapes, dtypes; NaN or infinity where x is quantized), UnsupportedError (no kernel).
    """
    row = weight_format(name)
    w, x = np.ascontiguousarray(w), float_array(x, "x", ndim=2)
    if w.dtype != np.uint8 or w.ndim != 2:
        raise ArgumentError(f"w is uint8[n_out, row_bytes]; got {w.dtype}{w.shape}.")
    n_in = x.shape[1]
    if n_in % row.block_values or w.shape[1] != row.row_bytes(n_in):
        raise ArgumentError(
            f"x has rows of {n_in} values; a {name} row of them is {row.block_bytes} bytes each {row.block_values} "
            f"values, but w has rows of {w.shape[1]} bytes."
        )
    flat = w.reshape(-1)
    flat.flags.writeable = False  # as the engine's map is: one compiled kernel serves both
    matrix = Matrix(kernel_for(name), flat, 0, w.shape[0], n_in)
    return multiply(matrix, activation_rows(matrix.activation, x), check_threads(threads))


def check_threads(threads: int | None) -> int:
    """The number of threads to use; ArgumentError unless None or a whole number >= 1."""
    if threads is None:
        return cpu_threads()
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise ArgumentError(f"threads is a whole number >= 1, not {threads!r}.")
    return threads
