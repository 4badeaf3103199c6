"""AVX-512: four rows at a time, row_bytes apart. A register of 512 bits holds 16 bytes of each."""

from collections.abc import Callable

import numpy as np
from numba.core.dispatcher import Dispatcher

from minfer_lib.native.jit import composed, inlined
from minfer_lib.simd.ops import byte_mask, concat, f16_to_f32, four, lane, load, load_u16
from minfer_lib.simd.registers import u8x16


def composed_dot4(dot4: Callable, format_: str) -> Dispatcher:
    """Compile what a family made for `format_`, under the name that the kernels have which a format writes itself."""
    dot4.__name__ = f"dot4_{format_.lower()}_avx512vnni"
    return composed(dot4)


@inlined
def four_16s(w, at, row_bytes):
    """u8x64: 16 bytes from byte `at` on, and the same of the next three rows."""
    first, second = load(u8x16, w, at), load(u8x16, w, at + row_bytes)
    third, fourth = load(u8x16, w, at + 2 * row_bytes), load(u8x16, w, at + 3 * row_bytes)
    return concat(concat(first, second), concat(third, fourth))


@inlined
def four_bits(w, at, row_bytes):
    """u8x64: 16 bits from byte `at` on, and the same of the next three rows; 255 where a bit is set, else 0."""
    low = np.uint64(load_u16(w, at)) | np.uint64(load_u16(w, at + row_bytes)) << np.uint64(16)
    high = np.uint64(load_u16(w, at + 2 * row_bytes)) | np.uint64(load_u16(w, at + 3 * row_bytes)) << np.uint64(16)
    return byte_mask(low | high << np.uint64(32))


@inlined
def four_halfs(w, at, row_bytes):
    """f32x4: the f16 at byte `at` of four rows."""
    h0, h1 = load_u16(w, at), load_u16(w, at + row_bytes)
    h2, h3 = load_u16(w, at + 2 * row_bytes), load_u16(w, at + 3 * row_bytes)
    return f16_to_f32(four(h0, h1, h2, h3))


@inlined
def four_floats(v):
    """The lanes of f32x4, as a tuple."""
    return lane(v, 0), lane(v, 1), lane(v, 2), lane(v, 3)


@inlined
def both(register, raw, at, other):
    """The register at byte `at`, then the one at byte `other`."""
    return concat(load(register, raw, at), load(register, raw, other))
