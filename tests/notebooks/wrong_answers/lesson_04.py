"""Wrong answers that people give. Each must fail its check; the docstring is a word of the message that it must get."""

import numpy as np
from numba import njit

from minfer_lib.simd.ops import (
    add_pair,
    as_i8,
    as_i16,
    as_u8,
    as_u16,
    concat,
    dpbusd,
    first,
    fmadd,
    high_half,
    lane,
    load,
    load_f16,
    low_half,
    madd,
    maddubs,
    sign,
    splat,
    to_f32,
    widen,
)
from minfer_lib.simd.registers import f32x8, i8x32, i16x16, i32x8, u8x16, u8x32

# dot_q8_0


@njit
def _sum8(v):
    four = low_half(v) + high_half(v)
    return add_pair(low_half(four) + high_half(four))


@njit
def _fold(acc, w, a, b, u, s):
    d = load_f16(w, 34 * b) * load_f16(a, 34 * b)
    return fmadd(splat(f32x8, d), to_f32(madd(maddubs(u, s), splat(i16x16, 1))), acc)


def dot_q8_0__weights_read_as_unsigned(w, a, n_blocks):
    """−1 becomes 255"""
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        acc = _fold(acc, w, a, b, load(u8x32, w, 34 * b + 2), load(i8x32, a, 34 * b + 2))
    return _sum8(acc)


def dot_q8_0__signs_lost(w, a, n_blocks):
    """give it to the activations"""
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        qw = load(i8x32, w, 34 * b + 2)
        acc = _fold(acc, w, a, b, as_u8(sign(qw, qw)), load(i8x32, a, 34 * b + 2))
    return _sum8(acc)


def dot_q8_0__both_magnitudes(w, a, n_blocks):
    """keep their own sign"""
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        qw, qa = load(i8x32, w, 34 * b + 2), load(i8x32, a, 34 * b + 2)
        acc = _fold(acc, w, a, b, as_u8(sign(qw, qw)), sign(sign(qa, qa), qw))
    return _sum8(acc)


def dot_q8_0__signs_of_the_activations(w, a, n_blocks):
    """the sides"""
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        qw, qa = load(i8x32, w, 34 * b + 2), load(i8x32, a, 34 * b + 2)
        acc = _fold(acc, w, a, b, as_u8(sign(qa, qa)), sign(qw, qa))
    return _sum8(acc)


def dot_q8_0__codes_from_the_first_byte(w, a, n_blocks):
    """begin at byte 2"""
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        qw, qa = load(i8x32, w, 34 * b), load(i8x32, a, 34 * b)
        acc = _fold(acc, w, a, b, as_u8(sign(qw, qw)), sign(qa, qw))
    return _sum8(acc)


def dot_q8_0__one_scale_for_all(w, a, n_blocks):
    """its own d_w"""
    total = splat(i32x8, 0)
    for b in range(n_blocks):
        qw, qa = load(i8x32, w, 34 * b + 2), load(i8x32, a, 34 * b + 2)
        total = total + madd(maddubs(as_u8(sign(qw, qw)), sign(qa, qw)), splat(i16x16, 1))
    return _sum8(to_f32(total) * (load_f16(w, 0) * load_f16(a, 0)))


def dot_q8_0__pairs_of_blocks(w, a, n_blocks):
    """any length"""
    acc = splat(f32x8, 0)
    for b in range(n_blocks if n_blocks < 2 else n_blocks // 2 * 2):
        qw, qa = load(i8x32, w, 34 * b + 2), load(i8x32, a, 34 * b + 2)
        acc = _fold(acc, w, a, b, as_u8(sign(qw, qw)), sign(qa, qw))
    return _sum8(acc)


# hsum


def hsum__left_to_right(v):
    """another order"""
    total = first(v)
    for k in range(1, 8):
        total = total + lane(v, k)
    return total


def hsum__neighbours_first(v):
    """another order"""
    low, high = low_half(v), high_half(v)
    return (add_pair(low_half(low)) + add_pair(high_half(low))) + (add_pair(low_half(high)) + add_pair(high_half(high)))


def hsum__half_the_lanes(v):
    """every lane counts once"""
    low = low_half(v)
    return add_pair(low_half(low) + high_half(low))


def hsum__two_lanes_left(v):
    """of shape"""
    four = low_half(v) + high_half(v)
    return low_half(four) + high_half(four)


def hsum__one_half_twice(v):
    """every lane counts once"""
    four = low_half(v) + low_half(v)
    return add_pair(low_half(four) + high_half(four))


# dot_without_signs


@njit
def _codes(w, b):
    packed = load(u8x16, w, 18 * b + 2)
    return concat(packed, as_u8(as_u16(packed) >> 4)) & 15


@njit
def _fours(u, s):
    return madd(maddubs(u, s), splat(i16x16, 1))


@njit
def _scaled(acc, w, a, b, fours):
    return fmadd(splat(f32x8, load_f16(w, 18 * b) * load_f16(a, 34 * b)), to_f32(fours), acc)


def dot_without_signs__with_them(w, a, n_blocks):
    """the trick to do without"""
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        qw, qa = as_i8(_codes(w, b)) - 8, load(i8x32, a, 34 * b + 2)
        acc = _scaled(acc, w, a, b, _fours(as_u8(sign(qw, qw)), sign(qa, qw)))
    return _sum8(acc)


def dot_without_signs__nothing_taken_off(w, a, n_blocks):
    """stand for 0"""
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        acc = _scaled(acc, w, a, b, _fours(_codes(w, b), load(i8x32, a, 34 * b + 2)))
    return _sum8(acc)


def dot_without_signs__a_constant(w, a, n_blocks):
    """not a constant"""
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        acc = _scaled(acc, w, a, b, _fours(_codes(w, b), load(i8x32, a, 34 * b + 2)) - 32)
    return _sum8(acc)


def dot_without_signs__centred_but_unsigned(w, a, n_blocks):
    """256"""
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        acc = _scaled(acc, w, a, b, _fours(_codes(w, b) - 8, load(i8x32, a, 34 * b + 2)))
    return _sum8(acc)


def dot_without_signs__sum_of_the_codes(w, a, n_blocks):
    """the sum of the activations"""
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        codes, qa = _codes(w, b), load(i8x32, a, 34 * b + 2)
        acc = _scaled(acc, w, a, b, _fours(codes, qa) - _fours(codes, splat(i8x32, 8)))
    return _sum8(acc)


def dot_without_signs__first_block_for_all(w, a, n_blocks):
    """belongs to its block"""
    acc, eights = splat(f32x8, 0), splat(u8x32, 8)
    for b in range(n_blocks):
        qa = load(i8x32, a, 34 * b + 2)
        acc = _scaled(acc, w, a, b, _fours(_codes(w, b), qa) - _fours(eights, load(i8x32, a, 2)))
    return _sum8(acc)


def dot_without_signs__in_floats(w, a, n_blocks):
    """the last bits"""
    acc, sums = splat(f32x8, 0), splat(f32x8, 0)
    for b in range(n_blocks):
        qa = load(i8x32, a, 34 * b + 2)
        acc = _scaled(acc, w, a, b, _fours(_codes(w, b), qa))
        sums = _scaled(sums, w, a, b, _fours(splat(u8x32, 8), qa))
    return _sum8(acc) - _sum8(sums)


# byte_dot


def byte_dot__saturates(w, a):
    """saturates"""
    return madd(maddubs(load(u8x32, w, 0), load(i8x32, a, 0)), splat(i16x16, 1))


def byte_dot__another_instruction(w, a):
    """AVX2 does not have it"""
    return dpbusd(splat(i32x8, 0), load(u8x32, w, 0), load(i8x32, a, 0))


def byte_dot__clipped(w, a):
    """do not clip"""
    return madd(maddubs(load(u8x32, w, 0) & 127, load(i8x32, a, 0)), splat(i16x16, 1))


def byte_dot__signed(w, a):
    """200 stays 200"""
    qw, qa = load(i8x32, w, 0), load(i8x32, a, 0)
    return madd(maddubs(as_u8(sign(qw, qw)), sign(qa, qw)), splat(i16x16, 1))


def byte_dot__even_bytes_only(w, a):
    """lane by lane"""
    even = as_u8(as_u16(load(u8x32, w, 0)) & 255)
    return madd(maddubs(even, load(i8x32, a, 0)), splat(i16x16, 1))


def byte_dot__halves_added(w, a):
    """products 4k to 4k + 3"""
    qw, qa = load(u8x32, w, 0), load(i8x32, a, 0)
    low = madd(as_i16(widen(low_half(qw))), widen(low_half(qa)))
    return low + madd(as_i16(widen(high_half(qw))), widen(high_half(qa)))


def byte_dot__a_number(w, a):
    """of shape"""
    return int((w.astype(np.int64) * a.view(np.int8)).sum())


# pack_fours


def pack_fours__transposed(a):
    """n / 4 rows"""
    return a.T


def pack_fours__values_interleaved(a):
    """no token is mixed"""
    return a.T.reshape(-1, 4 * len(a))


def pack_fours__memory_cut_anew(a):
    """one four of every token"""
    return a.reshape(-1, 4 * len(a))


def pack_fours__for_sixteen_values(a):
    """whatever the numbers"""
    return np.stack([a[:, :4], a[:, -4:]]).reshape(2, -1)[: a.shape[1] // 4]


def pack_fours__fours_backwards(a):
    """4 to 7"""
    return a.reshape(len(a), -1, 4).transpose(1, 0, 2)[::-1].reshape(-1, 4 * len(a))


def pack_fours__unsigned(a):
    """keep their sign"""
    return a.view(np.uint8).reshape(len(a), -1, 4).transpose(1, 0, 2).reshape(-1, 4 * len(a))
