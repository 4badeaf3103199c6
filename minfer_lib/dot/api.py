"""mf.dot: two rows of blocks -> one number."""

from __future__ import annotations

import numpy as np

from minfer_lib.dot.kernel_key import KernelKey, dot_row, kernel_for
from minfer_lib.errors import ArgumentError
from minfer_lib.formats.pairing import check_pairing, check_rows
from minfer_lib.native.jit import kernel


@kernel
def _one_row(dot, w, a, n_blocks):
    return dot_row(dot, w, 0, a, 0, n_blocks)


def _raw_row(row: np.ndarray, what: str, floats: bool) -> np.ndarray:
    """A read-only contiguous uint8[:] of `row`; where `floats` are meant, float32[:] is taken as its bytes."""
    row = np.ascontiguousarray(row)
    if row.ndim != 1 or row.dtype not in ((np.uint8, np.float32) if floats else (np.uint8,)):
        raise ArgumentError(f"the {what} row is uint8[bytes]; got {row.dtype}{row.shape}.")
    row = row.view(np.uint8)
    row.flags.writeable = False
    return row


def dot(name: str, w_row: np.ndarray, a_row: np.ndarray, isa: str | None = None) -> float:
    """A row of weight blocks of format `name` times its activation row (float32 for F32, F16, BF16).

    Any weight bytes are right; activation codes lie in [-127, 127], as every quantizer here writes them.
    Raises PairingError (activations of another format), ArgumentError (lengths, dtypes, isa), UnsupportedError.
    """
    if getattr(a_row, "dtype", None) == np.float32:  # the one format that its dtype gives away
        check_pairing(name, None)
    w, a = _raw_row(w_row, "weight", name == "F32"), _raw_row(a_row, "activation", True)
    n_blocks = check_rows(name, w.size, a.size)
    chosen: KernelKey = kernel_for(name, isa)
    return float(_one_row(chosen, w, a, n_blocks))
