"""What the kernels of several formats share: how far to prefetch, horizontal sums, and two rows in one register."""

from minfer_lib.jit import inlined
from minfer_lib.simd.ops import (
    add_pair,
    as_u8,
    as_u16,
    concat,
    f16_to_f32,
    high_half,
    load,
    load_u16,
    load_u32,
    low_half,
    splat,
)
from minfer_lib.simd.registers import u8x16, u16x8, u32x4

# Bytes from the block that is computed to the one that is asked for: more than the memory delivers while one request is
# under way. 8 to 16 KB were best where it was measured, 2 KB too late; `minfer bench --kernels` measures again.
AHEAD = 8192


@inlined
def hsum4(v):
    """f32x4 -> float32: (0 + 2) + (1 + 3), where numbers stand for lanes."""
    return add_pair(low_half(v) + high_half(v))


@inlined
def hsum8(v):
    """f32x8 -> float32: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). Seed 1 §3.2, hsum_float_8."""
    return hsum4(low_half(v) + high_half(v))


# AVX-512: a register of 512 bits holds a block of two rows, one in each half.


@inlined
def two_f16(w, first, second):
    """f32x16: the f16 at byte `first` in lanes 0 to 7, the one at `second` in lanes 8 to 15."""
    return f16_to_f32(concat(splat(u16x8, load_u16(w, first)), splat(u16x8, load_u16(w, second))))


@inlined
def two_pairs(w, first, second):
    """f32x16: the two f16 from byte `first` on, by turns, in lanes 0 to 7, and the two from `second` on in 8 to 15."""
    return f16_to_f32(as_u16(concat(splat(u32x4, load_u32(w, first)), splat(u32x4, load_u32(w, second)))))


@inlined
def two_nibbles(w, first, second):
    """u8x64: 16 bytes from byte `first`, their low halves and then their high halves; the same of those at `second`."""
    one, other = load(u8x16, w, first), load(u8x16, w, second)
    packed = concat(concat(one, one), concat(other, other))
    shift = concat(splat(u16x8, 0), splat(u16x8, 4))
    return as_u8(as_u16(packed) >> concat(shift, shift)) & 15


@inlined
def four_sums(x, y):
    """f32x16 each, two rows in one register -> the sums of the four rows, each in hsum8's order."""
    return hsum8(low_half(x)), hsum8(high_half(x)), hsum8(low_half(y)), hsum8(high_half(y))
