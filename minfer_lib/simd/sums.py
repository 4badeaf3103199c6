"""Sums of lanes: what takes several instructions, compiled into its callers. And `twice`, the opposite of `halves`."""

from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import add_pair, add_pairs, concat, first, fourths, high_half, low_half


@inlined
def hsum4(v):
    """f32x4 -> float32: (0 + 2) + (1 + 3), where numbers stand for lanes."""
    return add_pair(low_half(v) + high_half(v))


@inlined
def hsum8(v):
    """f32x8 -> float32: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). Seed 1 §3.2, hsum_float_8."""
    return hsum4(low_half(v) + high_half(v))


@inlined
def halves(v):
    """The first half of the lanes + the second half."""
    return low_half(v) + high_half(v)


@inlined
def sum4(v):
    """i32x4 -> int32: all lanes."""
    pairs = add_pairs(v, v)
    return first(add_pairs(pairs, pairs))


@inlined
def sum_fours(v):
    """i32x16 -> i32x4: lanes 0 to 3 added up, 4 to 7, 8 to 11, 12 to 15."""
    return fourths(_sum_four(v))


@inlined
def _sum_four(v):
    """Within each 128 bits: the sum of the four lanes, in all of them."""
    pairs = add_pairs(v, v)
    return add_pairs(pairs, pairs)


@inlined
def four_sums(x0, x1, x2, x3):
    """Four rows, i32x8 -> i32x4 with a row's sum in each lane; i32x16 -> i32x8, which `halves` adds up."""
    return halves(add_pairs(add_pairs(x0, x1), add_pairs(x2, x3)))


@inlined
def twice(v):
    """A register of twice the size with v in both halves."""
    return concat(v, v)
