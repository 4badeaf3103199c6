"""Where the bits of the K-quants' integer scales and mins are: for each byte of a `scales` field, the pieces in it."""

from __future__ import annotations

from typing import NamedTuple


class ScaleBits(NamedTuple):
    """Bits low … low + n_bits - 1 of a byte, which are bits shift, shift + 1, … of a scale or min."""

    low: int
    n_bits: int
    number: str  # "scale" or "min"
    index: int  # which of them
    shift: int = 0


def nibbles(i: int) -> list[ScaleBits]:
    """Q2_K: byte i holds scale i and min i."""
    return [ScaleBits(0, 4, "scale", i), ScaleBits(4, 4, "min", i)]


def six_bits(i: int) -> list[ScaleBits]:
    """Q3_K. Byte i < 8: the low four bits of scales i and i + 8. The last four: the upper two bits of four scales."""
    if i < 8:
        return [ScaleBits(4 * h, 4, "scale", i + 8 * h) for h in range(2)]
    return [ScaleBits(2 * h, 2, "scale", i - 8 + 4 * h, 4) for h in range(4)]


def six_bit_pairs(i: int) -> list[ScaleBits]:
    """Q4_K and Q5_K: scales and mins of six bits; ggml: get_scale_min_k4."""
    j = i % 4
    if i < 8:  # a whole scale or min of the first half, and the upper two bits of one of the second
        what = "scale" if i < 4 else "min"
        return [ScaleBits(0, 6, what, j), ScaleBits(6, 2, what, j + 4, 4)]
    return [ScaleBits(0, 4, "scale", j + 4), ScaleBits(4, 4, "min", j + 4)]


def whole(i: int) -> list[ScaleBits]:
    """Q6_K: a byte is a scale."""
    return [ScaleBits(0, 8, "scale", i)]
