"""KernelKey names a dot kernel, and a compiled function specialises on it by calling `dot_row` or `dot_rows`.

ggml keeps a function pointer a type (`type_traits_cpu[].vec_dot`). Here the pair (format, isa) is a numba type instead:
a function that takes a KernelKey is compiled once for each, with that dot inlined, and cached under a stable name.
"""

from __future__ import annotations

from dataclasses import dataclass

from numba import types
from numba.extending import NativeValue, models, overload, register_model, typeof_impl, unbox

from minfer_lib.dot.format_kernels import ROWS_AT_ONCE
from minfer_lib.dot.registry import DOTS, KERNELS
from minfer_lib.errors import ArgumentError, UnsupportedError
from minfer_lib.simd.isa import isas


@dataclass(frozen=True)
class KernelKey:
    """The dot for weights of `format` on kernel set `isa`; pass it to a compiled function."""

    format: str
    isa: str


def kernel_for(format_: str, isa: str | None = None) -> KernelKey:
    """Return the key of this CPU's best kernel for `format_`, or of that of `isa`.

    Raises ArgumentError (a kernel set that this CPU has not got) and UnsupportedError, which names what is missing.
    """
    if isa is not None and isa not in isas():
        raise ArgumentError(f"this CPU runs the kernel sets {', '.join(isas())}, not {isa!r}.")
    for candidate in (isa,) if isa else isas():
        if (format_, candidate) in DOTS:
            return KernelKey(format_, candidate)
    if format_ in KERNELS:
        raise UnsupportedError(f"there is no {isa} kernel for {format_} weights.")
    built = ", ".join(sorted(KERNELS))
    raise UnsupportedError(f"a dot product for {format_} weights is not built yet; built are: {built}.")


def dot_row(kernel, w, w_at, a, a_at, n_blocks):
    """In compiled code: a row of weight blocks at byte w_at of w, times the activation row at byte a_at of a."""
    raise NotImplementedError


def dot_rows(kernel, w, w_at, row_bytes, first, last, a, a_at, n_blocks, out, t):
    """In compiled code: out[t, o] = row o of the matrix at byte w_at of w, times a's row, for o in [first, last).

    Each row's number has the same bits whichever rows are beside it.
    """
    raise NotImplementedError


class KernelKeyType(types.Type):
    """KernelKey as numba sees it: no value at run time, all of it in the type."""

    def __init__(self, format_: str, isa: str) -> None:
        self.format, self.isa = self.dot = (format_, isa)
        super().__init__(name=f"KernelKey({format_},{isa})")


register_model(KernelKeyType)(models.OpaqueModel)


@typeof_impl.register(KernelKey)
def _typeof_kernel(kernel, context):
    return KernelKeyType(kernel.format, kernel.isa)


@unbox(KernelKeyType)
def _unbox_kernel(type_, kernel, context):
    return NativeValue(context.context.get_dummy_value())


@overload(dot_row)
def _dot_row(kernel, w, w_at, a, a_at, n_blocks):
    if not isinstance(kernel, KernelKeyType):
        return None
    dot = DOTS[kernel.dot]
    if ROWS_AT_ONCE[kernel.isa] == 4:  # the same row four times
        return lambda kernel, w, w_at, a, a_at, n_blocks: dot(w, w_at, 0, a, a_at, n_blocks)[0]
    return lambda kernel, w, w_at, a, a_at, n_blocks: dot(w, w_at, a, a_at, n_blocks)


@overload(dot_rows)
def _dot_rows(kernel, w, w_at, row_bytes, first, last, a, a_at, n_blocks, out, t):
    if not isinstance(kernel, KernelKeyType):
        return None
    dot = DOTS[kernel.dot]

    def one_at_a_time(kernel, w, w_at, row_bytes, first, last, a, a_at, n_blocks, out, t):
        for o in range(first, last):
            out[t, o] = dot(w, w_at + o * row_bytes, a, a_at, n_blocks)

    def four_at_a_time(kernel, w, w_at, row_bytes, first, last, a, a_at, n_blocks, out, t):
        full = last - first >= 4  # else one row, four times
        for o in range(first, last, 4 if full else 1):
            o = min(o, last - 4) if full else o  # the last four may begin among rows that are done
            sums = dot(w, w_at + o * row_bytes, row_bytes if full else 0, a, a_at, n_blocks)
            out[t, o] = sums[0]
            if full:
                out[t, o + 1], out[t, o + 2], out[t, o + 3] = sums[1], sums[2], sums[3]

    return four_at_a_time if ROWS_AT_ONCE[kernel.isa] == 4 else one_at_a_time
