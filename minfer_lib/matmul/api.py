"""mf.matmul: quantized weights times float32 activations, on all workers."""

from __future__ import annotations

import numpy as np
from numba import carray

from minfer_lib.dot.kernel_key import kernel_for
from minfer_lib.errors import ArgumentError
from minfer_lib.formats.arrays import float_array
from minfer_lib.formats.pairing import weight_format
from minfer_lib.formats.table import FORMATS
from minfer_lib.matmul.chunks import even_split
from minfer_lib.matmul.panels import fill_panels
from minfer_lib.matmul.product import PRODUCT, Matrix, call_compute
from minfer_lib.matmul.tiles import TILES_FROM
from minfer_lib.native.address import aligned_bytes, aligned_floats, int64_record, pointer, record_of
from minfer_lib.native.cpus import cpu_threads
from minfer_lib.native.jit import kernel
from minfer_lib.native.pool import MOST_WORKERS, job_address, pool
from minfer_lib.quantize.activations import activation_rows

_CALL = int64_record("product", "n_tokens")  # the address of a PRODUCT, and of how many tokens


@kernel
def _share(argument, worker, workers):
    """Job: this worker's rows of the product that the _CALL at `argument` names."""
    call = carray(pointer(argument), 1, _CALL)[0]
    product = carray(pointer(call.product), 1, PRODUCT)[0]
    first, last = even_split(worker, workers, product.n_out)
    call_compute(product.compute, call.product, first, last, 0, call.n_tokens, worker)


def multiply(matrix: Matrix, a: np.ndarray, threads: int) -> np.ndarray:
    """a: uint8[n_tokens, a_row_bytes] in the matrix's activation format -> f32[n_tokens, n_out]."""
    n_tokens, a_row_bytes = a.shape
    out = aligned_floats(n_tokens, matrix.n_out)
    tiled = n_tokens >= TILES_FROM and matrix.has_tiles
    panels = aligned_bytes(matrix.panels_bytes(n_tokens) if tiled else 0)
    scratch = aligned_bytes(threads * matrix.scratch_bytes if tiled else 0)
    if tiled:
        block_values = FORMATS[matrix.activation].block_values
        fill_panels(block_values, a.ctypes.data, a_row_bytes, 0, n_tokens, matrix.n_blocks, panels.ctypes.data)
    product = matrix.product(
        a.ctypes.data,
        a_row_bytes,
        out.ctypes.data,
        panels.ctypes.data if tiled else 0,
        scratch.ctypes.data,
        matrix.scratch_bytes,
    )
    call = record_of(_CALL, product=product.ctypes.data, n_tokens=n_tokens)
    pool().run(job_address(_share), call.ctypes.data, threads)
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
    if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= MOST_WORKERS:
        raise ArgumentError(f"threads is a whole number from 1 to {MOST_WORKERS}, not {threads!r}.")
    return threads
