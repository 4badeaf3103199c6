"""What a caller passes as numbers, as the float32 array that the library works on."""

from __future__ import annotations

import numpy as np

from minfer_lib.errors import ArgumentError


def float_array(x: object, what: str, ndim: int) -> np.ndarray:
    """C-contiguous float32 of `ndim` dimensions; ArgumentError for text, complex numbers or another shape.

    A float64 beyond float32 becomes infinite, without a warning: whoever needs finite values refuses it.
    """
    array = np.asarray(x)
    if array.dtype.kind not in "fiu" or array.ndim != ndim:
        raise ArgumentError(
            f"{what} is an array of real numbers with {ndim} dimension{'s' if ndim > 1 else ''}; "
            f"got {array.dtype}{array.shape}."
        )
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, np.float32)
