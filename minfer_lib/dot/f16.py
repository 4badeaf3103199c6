"""F16 weights x float32 activations, in the order of dot_f32_scalar and dot_f32_avx2."""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.prefetch_ahead import AHEAD
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import f16_to_f32, fmadd, load, load_f16, load_f32, prefetch, splat
from minfer_lib.simd.registers import f32x8, u16x8
from minfer_lib.simd.sums import hsum8


@inlined
def dot_f16_scalar(w, w_at, a, a_at, n):
    """As dot_f32_scalar, with f16 weights."""
    total = np.float32(0)
    for i in range(n):
        total += load_f16(w, w_at + 2 * i) * load_f32(a, a_at + 4 * i)
    return total


@inlined
def dot_f16_avx2(w, w_at, a, a_at, n):
    """As dot_f16_scalar, 32 values at a time."""
    x0 = x1 = x2 = x3 = splat(f32x8, 0)
    for i in range(0, n - 31, 32):
        wb, ab = w_at + 2 * i, a_at + 4 * i
        prefetch(w, wb + AHEAD)
        x0 = fmadd(f16_to_f32(load(u16x8, w, wb)), load(f32x8, a, ab), x0)
        x1 = fmadd(f16_to_f32(load(u16x8, w, wb + 16)), load(f32x8, a, ab + 32), x1)
        x2 = fmadd(f16_to_f32(load(u16x8, w, wb + 32)), load(f32x8, a, ab + 64), x2)
        x3 = fmadd(f16_to_f32(load(u16x8, w, wb + 48)), load(f32x8, a, ab + 96), x3)
    total = hsum8((x0 + x1) + (x2 + x3))
    for i in range(n - n % 32, n):
        total += load_f16(w, w_at + 2 * i) * load_f32(a, a_at + 4 * i)
    return total


KERNELS = FormatKernels("F16", scalar=dot_f16_scalar, avx2=dot_f16_avx2)
