"""The table of dot kernels, and the calls that a compiled function specialises on: `dot_row` and `dot_rows`.

ggml keeps a function pointer a type (`type_traits_cpu[].vec_dot`). Here the pair (format, isa) is a numba type instead:
a function that takes a Kernel is compiled once for each, with that dot inlined, and cached under a stable name.
"""

from __future__ import annotations

from dataclasses import dataclass

from numba import types
from numba.extending import NativeValue, models, overload, register_model, typeof_impl, unbox

from minfer_lib.dot import floats, q2_k, q3_k, q4_0, q4_1, q4_k, q5_0, q5_1, q5_k, q6_k, q8_0
from minfer_lib.errors import ArgumentError, UnsupportedError
from minfer_lib.simd.isa import isas

ONE_ROW = {  # (weight format, kernel set) -> dot(w, w_at, a, a_at, n_blocks) -> float32
    ("F32", "avx2"): floats.dot_f32_avx2,
    ("F32", "scalar"): floats.dot_f32_scalar,
    ("F16", "avx2"): floats.dot_f16_avx2,
    ("F16", "scalar"): floats.dot_f16_scalar,
    ("BF16", "avx2"): floats.dot_bf16_avx2,
    ("BF16", "scalar"): floats.dot_bf16_scalar,
    ("Q4_0", "avx2"): q4_0.dot_q4_0_avx2,
    ("Q4_0", "neon"): q4_0.dot_q4_0_neon,
    ("Q4_0", "scalar"): q4_0.dot_q4_0_scalar,
    ("Q4_1", "avx2"): q4_1.dot_q4_1_avx2,
    ("Q4_1", "neon"): q4_1.dot_q4_1_neon,
    ("Q4_1", "scalar"): q4_1.dot_q4_1_scalar,
    ("Q5_0", "avx2"): q5_0.dot_q5_0_avx2,
    ("Q5_0", "neon"): q5_0.dot_q5_0_neon,
    ("Q5_0", "scalar"): q5_0.dot_q5_0_scalar,
    ("Q5_1", "avx2"): q5_1.dot_q5_1_avx2,
    ("Q5_1", "neon"): q5_1.dot_q5_1_neon,
    ("Q5_1", "scalar"): q5_1.dot_q5_1_scalar,
    ("Q8_0", "avx2"): q8_0.dot_q8_0_avx2,
    ("Q8_0", "neon"): q8_0.dot_q8_0_neon,
    ("Q8_0", "scalar"): q8_0.dot_q8_0_scalar,
    ("Q2_K", "avx2"): q2_k.dot_q2_k_avx2,
    ("Q2_K", "neon"): q2_k.dot_q2_k_neon,
    ("Q2_K", "scalar"): q2_k.dot_q2_k_scalar,
    ("Q3_K", "avx2"): q3_k.dot_q3_k_avx2,
    ("Q3_K", "neon"): q3_k.dot_q3_k_neon,
    ("Q3_K", "scalar"): q3_k.dot_q3_k_scalar,
    ("Q4_K", "avx2"): q4_k.dot_q4_k_avx2,
    ("Q4_K", "neon"): q4_k.dot_q4_k_neon,
    ("Q4_K", "scalar"): q4_k.dot_q4_k_scalar,
    ("Q5_K", "avx2"): q5_k.dot_q5_k_avx2,
    ("Q5_K", "neon"): q5_k.dot_q5_k_neon,
    ("Q5_K", "scalar"): q5_k.dot_q5_k_scalar,
    ("Q6_K", "avx2"): q6_k.dot_q6_k_avx2,
    ("Q6_K", "neon"): q6_k.dot_q6_k_neon,
    ("Q6_K", "scalar"): q6_k.dot_q6_k_scalar,
}
FOUR_ROWS = {  # … -> dot4(w, w_at, row_bytes, a, a_at, n_blocks) -> four float32, of rows row_bytes apart
    ("Q4_0", "avx512vnni"): q4_0.dot4_q4_0_avx512vnni,
    ("Q4_1", "avx512vnni"): q4_1.dot4_q4_1_avx512vnni,
    ("Q5_0", "avx512vnni"): q5_0.dot4_q5_0_avx512vnni,
    ("Q5_1", "avx512vnni"): q5_1.dot4_q5_1_avx512vnni,
    ("Q8_0", "avx512vnni"): q8_0.dot4_q8_0_avx512vnni,
    ("Q2_K", "avx512vnni"): q2_k.dot4_q2_k_avx512vnni,
    ("Q3_K", "avx512vnni"): q3_k.dot4_q3_k_avx512vnni,
    ("Q4_K", "avx512vnni"): q4_k.dot4_q4_k_avx512vnni,
    ("Q5_K", "avx512vnni"): q5_k.dot4_q5_k_avx512vnni,
    ("Q6_K", "avx512vnni"): q6_k.dot4_q6_k_avx512vnni,
}
DOTS = ONE_ROW | FOUR_ROWS


@dataclass(frozen=True)
class Kernel:
    """The dot for weights of `format` on kernel set `isa`; pass it to a compiled function."""

    format: str
    isa: str


def kernel_for(format_: str, isa: str | None = None) -> Kernel:
    """The best kernel of this CPU for `format_`, or the one of `isa`. UnsupportedError names what is missing."""
    if isa is not None and isa not in isas():
        raise ArgumentError(f"this CPU runs the kernel sets {', '.join(isas())}, not {isa!r}.")
    for candidate in (isa,) if isa else isas():
        if (format_, candidate) in DOTS:
            return Kernel(format_, candidate)
    built = sorted({name for name, _ in DOTS})
    if format_ in built:
        raise UnsupportedError(f"there is no {isa} kernel for {format_} weights.")
    raise UnsupportedError(f"a dot product for {format_} weights is not built yet; built are: {', '.join(built)}.")


def dot_row(kernel, w, w_at, a, a_at, n_blocks):
    """In compiled code: a row of weight blocks at byte w_at of w, times the activation row at byte a_at of a."""
    raise NotImplementedError


def dot_rows(kernel, w, w_at, row_bytes, first, last, a, a_at, n_blocks, out, t):
    """In compiled code: out[t, o] = row o of the matrix at byte w_at of w, times a's row, for o in [first, last).

    Each row's number has the same bits whichever rows are beside it.
    """
    raise NotImplementedError


class KernelType(types.Type):
    """Kernel as numba sees it: no value at run time, all of it in the type."""

    def __init__(self, format_: str, isa: str) -> None:
        self.format, self.isa = self.dot = (format_, isa)
        super().__init__(name=f"Kernel({format_},{isa})")


register_model(KernelType)(models.OpaqueModel)


@typeof_impl.register(Kernel)
def _typeof_kernel(kernel, context):
    return KernelType(kernel.format, kernel.isa)


@unbox(KernelType)
def _unbox_kernel(type_, kernel, context):
    return NativeValue(context.context.get_dummy_value())


@overload(dot_row)
def _dot_row(kernel, w, w_at, a, a_at, n_blocks):
    if not isinstance(kernel, KernelType):
        return None
    dot = DOTS[kernel.dot]
    if kernel.dot in FOUR_ROWS:  # the same row four times
        return lambda kernel, w, w_at, a, a_at, n_blocks: dot(w, w_at, 0, a, a_at, n_blocks)[0]
    return lambda kernel, w, w_at, a, a_at, n_blocks: dot(w, w_at, a, a_at, n_blocks)


@overload(dot_rows)
def _dot_rows(kernel, w, w_at, row_bytes, first, last, a, a_at, n_blocks, out, t):
    if not isinstance(kernel, KernelType):
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

    return four_at_a_time if kernel.dot in FOUR_ROWS else one_at_a_time
