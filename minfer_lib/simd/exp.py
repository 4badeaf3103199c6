"""e^x in registers: one definition for every kernel set, so that softmax and SwiGLU have the same bits everywhere."""

from __future__ import annotations

import numpy as np

from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import as_f32, as_i32, fmadd, maximum, minimum, splat
from minfer_lib.simd.registers import f32x8

_LOWEST, _HIGHEST = np.float32(-87), np.float32(88)  # beyond, 2^n is no normal float32
_ROUNDER = np.float32(1.5 * 2**23)  # at this size the last bit of a float32 counts ones: adding it rounds
_LOG2_E = np.float32(1 / np.log(2))
_LN_2 = np.float32(np.log(2))
_LN_2_REST = np.float32(np.log(2) - np.float64(_LN_2))


@inlined
def exp8(x):
    """f32x8 -> e^x of each lane, within 2e-7 of it; x below -87 counts as -87, above 88 as 88, and NaN stays NaN.

    e^x = 2^n e^r, where n is the integer nearest to x / ln 2 and r = x - n ln 2, at most 0.35; e^r is Taylor's
    polynomial to r^7 / 7!, whose rest is below 6e-9, and n is added to the exponent's bits.
    """
    x = minimum(splat(f32x8, _HIGHEST), maximum(splat(f32x8, _LOWEST), x))
    rounded = fmadd(x, splat(f32x8, _LOG2_E), splat(f32x8, _ROUNDER))  # its lowest bits are n
    n = rounded - _ROUNDER
    r = fmadd(n, splat(f32x8, -_LN_2_REST), fmadd(n, splat(f32x8, -_LN_2), x))
    e = splat(f32x8, np.float32(1 / 5040))
    e = fmadd(e, r, splat(f32x8, np.float32(1 / 720)))
    e = fmadd(e, r, splat(f32x8, np.float32(1 / 120)))
    e = fmadd(e, r, splat(f32x8, np.float32(1 / 24)))
    e = fmadd(e, r, splat(f32x8, np.float32(1 / 6)))
    e = fmadd(e, r, splat(f32x8, np.float32(1 / 2)))
    e = fmadd(e, r, splat(f32x8, np.float32(1)))
    e = fmadd(e, r, splat(f32x8, np.float32(1)))
    return e * as_f32((as_i32(rounded) << 23) + 0x3F800000)  # the bits of 1, so of 2^0
