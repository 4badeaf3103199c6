"""mm_rows: one worker's rows of a matrix product, and the product itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import typeof, types

from minfer_lib.dot.kernel_key import KernelKey, dot_rows, kernel_for
from minfer_lib.dot.prefetch_ahead import AHEAD, prefetch_lines
from minfer_lib.errors import ArgumentError
from minfer_lib.formats.arrays import float_array
from minfer_lib.formats.pairing import weight_format
from minfer_lib.formats.table import FORMATS
from minfer_lib.matmul.chunks import even_split
from minfer_lib.matmul.panels import fill_panels, panels_bytes
from minfer_lib.matmul.tiles import TILES_FROM, scratch_bytes, tiles_at, tiles_for
from minfer_lib.native.address import (
    aligned_bytes,
    aligned_floats,
    bytes_at,
    call_rows,
    floats_at,
    native_address,
    words_at,
)
from minfer_lib.native.jit import kernel
from minfer_lib.native.pool import MOST_PARTS, cpu_threads, job_address, pool
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


@kernel
def rows_at(dot, w, row_bytes, first, last, a, a_row_bytes, n_tokens, n_blocks, out, n_out):
    """mm_rows by addresses: w of the matrix, a and out of all tokens. What `call_rows` calls."""
    weights = bytes_at(w, last * row_bytes)
    start = first * row_bytes  # the dots ask for what is AHEAD bytes on; what comes before that, for all of it at once
    prefetch_lines(weights, start, min(AHEAD, weights.size - start))
    activations = bytes_at(a, n_tokens * a_row_bytes).reshape(n_tokens, a_row_bytes)
    mm_rows(dot, weights, 0, row_bytes, first, last, activations, n_blocks, floats_at(out, n_tokens, n_out))


@dataclass(frozen=True)
class Matrix:
    """[n_out, n_in] weights as they lie in a read-only uint8 array, from byte `at` on."""

    dot: KernelKey
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

    @property
    def n_blocks(self) -> int:
        return self.n_in // FORMATS[self.dot.format].block_values

    @property
    def address(self) -> int:
        return self.w.ctypes.data + self.at

    @property
    def rows_function(self) -> int:
        """Native address of rows_at for this format; compiled if need be."""
        return native_address(rows_at, typeof(self.dot), *[types.int64] * 10)

    @property
    def tiles_function(self) -> int:
        """Native address of tiles_at for this format; compiled if need be. 0: its rows are multiplied one by one."""
        tiles = tiles_for(self.dot.format)
        return native_address(tiles_at, typeof(tiles), *[types.int64] * 10) if tiles else 0

    @property
    def scratch_bytes(self) -> int:
        """Of scratch memory that each worker needs for tiles."""
        return scratch_bytes(self.dot.format, self.n_blocks)


@kernel
def _product(argument, part, parts):
    """Job: this part's rows of the product that the words at `argument` describe, as `multiply` writes them."""
    words = words_at(argument, 10)
    function, w, row_bytes, n_out = words[0], words[1], words[2], words[3]
    a, a_row_bytes, n_tokens, n_blocks, out = words[4], words[5], words[6], words[7], words[8]
    own = part * words[9]
    first, last = even_split(part, parts, n_out)
    call_rows(function, w, row_bytes, first, last, a, a_row_bytes + own, n_tokens, n_blocks, out, n_out)


def multiply(matrix: Matrix, a: np.ndarray, threads: int) -> np.ndarray:
    """a: uint8[n_tokens, a_row_bytes] in the matrix's activation format -> f32[n_tokens, n_out]."""
    n_tokens, a_row_bytes = a.shape
    out = aligned_floats(n_tokens, matrix.n_out)
    function, given, size, step = matrix.rows_function, a, a_row_bytes, 0
    if n_tokens >= TILES_FROM and matrix.tiles_function:
        block_values = FORMATS[matrix.activation].block_values
        given = aligned_bytes(panels_bytes(block_values, n_tokens, matrix.n_blocks))
        fill_panels(block_values, a.ctypes.data, a_row_bytes, 0, n_tokens, matrix.n_blocks, given.ctypes.data)
        scratch = aligned_bytes(threads * matrix.scratch_bytes)
        function, size, step = matrix.tiles_function, scratch.ctypes.data, matrix.scratch_bytes
    words = np.array(
        [function, matrix.address, matrix.row_bytes, matrix.n_out, given.ctypes.data, size, n_tokens, matrix.n_blocks]
        + [out.ctypes.data, step],
        np.int64,
    )
    pool().run(job_address(_product), words.ctypes.data, threads)
    return out


def matmul(name: str, w: np.ndarray, x: np.ndarray, threads: int | None = None) -> np.ndarray:
    """Weights of format `name`, w: uint8[n_out, row_bytes], times x: f32[n_tokens, n_in] -> f32[n_tokens, n_out].

    threads: any number >= 1; None: one a core. The bits do not depend on it.
    Raises ArgumentError (shapes, dtypes; NaN or infinity where x is quantized), UnsupportedError (no kernel).
    """
    matrix, x = operands(name, w, x)
    return multiply(matrix, activation_rows(matrix.activation, x), check_threads(threads))


def operands(name: str, w: np.ndarray, x: np.ndarray) -> tuple[Matrix, np.ndarray]:
    """What matmul multiplies: w as a Matrix, x as float32[n_tokens, n_in]. Raises what matmul raises about them."""
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
    return Matrix(kernel_for(name), flat, 0, w.shape[0], n_in), x


def check_threads(threads: int | None) -> int:
    """The number of threads to use; ArgumentError unless None or a whole number >= 1."""
    if threads is None:
        return cpu_threads()
    if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= MOST_PARTS:
        raise ArgumentError(f"threads is a whole number from 1 to {MOST_PARTS}, not {threads!r}.")
    return threads
