"""Scales and mins of the K-quants: read from their packed bytes, and put where the codes are.

Each group of 16 or 32 codes has an integer scale. So a super-block is one integer sum of scale * code * activation, and
one of min * activation, where the sums of 16 activations each are read from the Q8_K block. Both are exact, whatever
the order; only then do floats come in, one plain float32 operation after the other. So all kernel sets give the same
bits, those of the scalar kernel.
"""

import numpy as np

from minfer_lib.dot.four_rows import both
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import as_i16, as_u8, concat, high_half, load, load_u16, load_u32, low_half, shuffle, splat
from minfer_lib.simd.registers import u8x32, u16x16, u32x2
from minfer_lib.simd.sums import twice

Q8_K_BYTES, BSUMS = 306, 274  # bytes of a block of activations, and where its sums of 16 codes are


@inlined
def bsum(a, ab, g):
    """int32: the sum of activations 16 g to 16 g + 15 of the Q8_K block at byte ab."""
    return np.int32(np.int16(load_u16(a, ab + BSUMS + 2 * g)))


# Q4_K and Q5_K: 8 scales and 8 mins of 6 bits in 12 bytes. ggml: get_scale_min_k4.


@inlined
def scale_min(w, at, s):
    """(scale, min) of sub-block s, int32 each, from the 12 bytes from byte `at` on."""
    if s < 4:
        return np.int32(w[at + s] & 63), np.int32(w[at + s + 4] & 63)
    high, low = w[at + s + 4] >> 4, w[at + s + 4] & 15
    return np.int32(low | (w[at + s - 4] >> 6) << 4), np.int32(high | (w[at + s] >> 6) << 4)


def by(*bits):
    """Bytes to load a u32 register from: how far each lane is shifted."""
    return np.array(bits, np.uint32).view(np.uint8)


_BY_0_4 = by(0, 4)


@inlined
def scales_mins(w, at):
    """u8x16: scales 0 to 3, mins 0 to 3, scales 4 to 7, mins 4 to 7, from the 12 bytes from byte `at` on.

    Four at a time in 32 bits: bytes 0 to 3 hold scales 0 to 3 and, above them, the upper two bits of scales 4 to 7;
    bytes 4 to 7 the same of the mins; bytes 8 to 11 the lower four bits of scales 4 to 7, and of mins 4 to 7.
    """
    sixes = load(u32x2, w, at)
    lower = splat(u32x2, load_u32(w, at + 8)) >> load(u32x2, _BY_0_4, 0)
    return as_u8(concat(sixes & 0x3F3F3F3F, lower & 0x0F0F0F0F | (sixes >> 2) & 0x30303030))


# AVX2 and AVX-512: each scale where its codes are, as int16 lanes that `madd` multiplies with the pairs of products.

_AT = [s + (s & 4) for s in range(8)]  # where scales_mins puts scale s; min s is four bytes on
_ZERO = 128  # for `shuffle`
_SCALE_OF_32 = np.array([(_AT[s], _ZERO) for s in range(8) for _ in range(16)], np.uint8).reshape(-1)
_MIN_OF_16 = np.array([(_AT[g // 2] + 4, _ZERO) for g in range(16)], np.uint8).reshape(-1)
_SCALE_OF_EACH_16 = np.array([(_AT[g // 2], _ZERO) for g in range(16)], np.uint8).reshape(-1)
_SCALE_OF_16 = np.array([(2 * g, 2 * g + 1) for g in range(8) for _ in range(8)], np.uint8).reshape(-1)


@inlined
def scale_of_32(packed, s):
    """packed: u8x32, scales_mins twice -> i16x16: scale s in all lanes."""
    return as_i16(shuffle(packed, load(u8x32, _SCALE_OF_32, 32 * s)))


@inlined
def mins_of_16(packed):
    """packed: u8x32, scales_mins twice -> i16x16: for each 16 codes the min."""
    return as_i16(shuffle(packed, load(u8x32, _MIN_OF_16, 0)))


@inlined
def eight_scales(scales, h):
    """scales: i16x16, one for each 16 codes -> i16x8: those of half h of the super-block."""
    return high_half(scales) if h else low_half(scales)


@inlined
def scales_of_16(eight, k):
    """eight: i16x16, eight_scales twice -> i16x16: scale 2 k in lanes 0 to 7, scale 2 k + 1 in lanes 8 to 15."""
    return as_i16(shuffle(as_u8(eight), load(u8x32, _SCALE_OF_16, 32 * k)))


@inlined
def scale_of_each_16(packed):
    """packed: u8x32, scales_mins twice -> i16x16: for each 16 codes the scale."""
    return as_i16(shuffle(packed, load(u8x32, _SCALE_OF_EACH_16, 0)))


# AVX-512, for `four_rows_k.py`


@inlined
def shifts(low, high):
    """u16x32 for << and >>: `low` for the first half of the lanes, `high` for the second."""
    return concat(splat(u16x16, low), splat(u16x16, high))


@inlined
def spread_32(packed):
    """packed: scales_mins -> four i16x32: for each code register the scales of its sub-blocks, k and k + 4."""
    four_ = twice(twice(packed))
    return (
        as_i16(shuffle(four_, both(u8x32, _SCALE_OF_32, 0, 128))),
        as_i16(shuffle(four_, both(u8x32, _SCALE_OF_32, 32, 160))),
        as_i16(shuffle(four_, both(u8x32, _SCALE_OF_32, 64, 192))),
        as_i16(shuffle(four_, both(u8x32, _SCALE_OF_32, 96, 224))),
    )


@inlined
def spread_16(scales):
    """scales: i16x16, one for each 16 codes -> four i16x32, as spread_32."""
    halves_ = as_u8(concat(twice(low_half(scales)), twice(high_half(scales))))
    return (
        as_i16(shuffle(halves_, twice(load(u8x32, _SCALE_OF_16, 0)))),
        as_i16(shuffle(halves_, twice(load(u8x32, _SCALE_OF_16, 32)))),
        as_i16(shuffle(halves_, twice(load(u8x32, _SCALE_OF_16, 64)))),
        as_i16(shuffle(halves_, twice(load(u8x32, _SCALE_OF_16, 96)))),
    )
