"""F32 weights x float32 activations; F16 and BF16 are summed in the same order.

Scalar: plain products, summed left to right in float32. AVX2: 32 values at a time by fused multiply-adds into four
registers x0 to x3, value i into lane i % 8 of register i % 32 // 8; at the end hsum8 of (x0 + x1) + (x2 + x3), and
values that do not fill 32 are added one by one.
"""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.prefetch_ahead import AHEAD
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import fmadd, load, load_f32, prefetch, splat
from minfer_lib.simd.registers import f32x8
from minfer_lib.simd.sums import hsum8


@inlined
def dot_f32_scalar(w, w_at, a, a_at, n):
    """w, a: uint8 arrays holding n values from byte w_at, a_at on (a: float32) -> float32."""
    total = np.float32(0)
    for i in range(n):
        total += load_f32(w, w_at + 4 * i) * load_f32(a, a_at + 4 * i)
    return total


@inlined
def dot_f32_avx2(w, w_at, a, a_at, n):
    """As dot_f32_scalar, 32 values at a time."""
    x0 = x1 = x2 = x3 = splat(f32x8, 0)
    for i in range(0, n - 31, 32):
        wb, ab = w_at + 4 * i, a_at + 4 * i
        prefetch(w, wb + AHEAD)
        prefetch(w, wb + AHEAD + 64)
        x0 = fmadd(load(f32x8, w, wb), load(f32x8, a, ab), x0)
        x1 = fmadd(load(f32x8, w, wb + 32), load(f32x8, a, ab + 32), x1)
        x2 = fmadd(load(f32x8, w, wb + 64), load(f32x8, a, ab + 64), x2)
        x3 = fmadd(load(f32x8, w, wb + 96), load(f32x8, a, ab + 96), x3)
    total = hsum8((x0 + x1) + (x2 + x3))
    for i in range(n - n % 32, n):
        total += load_f32(w, w_at + 4 * i) * load_f32(a, a_at + 4 * i)
    return total


KERNELS = FormatKernels("F32", scalar=dot_f32_scalar, avx2=dot_f32_avx2)
