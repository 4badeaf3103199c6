"""BF16 weights x float32 activations, in the order of dot_f32_scalar and dot_f32_avx2."""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.prefetch_ahead import AHEAD
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import as_f32, fmadd, load, load_bf16, load_f32, prefetch, splat, widen
from minfer_lib.simd.registers import f32x8, u16x8
from minfer_lib.simd.sums import hsum8


@inlined
def dot_bf16_scalar(w, w_at, a, a_at, n):
    """As dot_f32_scalar, with bf16 weights."""
    total = np.float32(0)
    for i in range(n):
        total += load_bf16(w, w_at + 2 * i) * load_f32(a, a_at + 4 * i)
    return total


@inlined
def dot_bf16_avx2(w, w_at, a, a_at, n):
    """As dot_bf16_scalar, 32 values at a time: a bf16 is the upper half of a float32."""
    x0 = x1 = x2 = x3 = splat(f32x8, 0)
    for i in range(0, n - 31, 32):
        wb, ab = w_at + 2 * i, a_at + 4 * i
        prefetch(w, wb + AHEAD)
        x0 = fmadd(as_f32(widen(load(u16x8, w, wb)) << 16), load(f32x8, a, ab), x0)
        x1 = fmadd(as_f32(widen(load(u16x8, w, wb + 16)) << 16), load(f32x8, a, ab + 32), x1)
        x2 = fmadd(as_f32(widen(load(u16x8, w, wb + 32)) << 16), load(f32x8, a, ab + 64), x2)
        x3 = fmadd(as_f32(widen(load(u16x8, w, wb + 48)) << 16), load(f32x8, a, ab + 96), x3)
    total = hsum8((x0 + x1) + (x2 + x3))
    for i in range(n - n % 32, n):
        total += load_bf16(w, w_at + 2 * i) * load_f32(a, a_at + 4 * i)
    return total


KERNELS = FormatKernels("BF16", scalar=dot_bf16_scalar, avx2=dot_bf16_avx2)
