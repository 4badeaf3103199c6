"""Wrong answers that people give. Each must fail its check; the docstring is a word of the message that it must get."""

import numpy as np

# quantize_q8_0


def _stored(d, codes):
    return np.concatenate([np.array([d]).astype("<f2").view(np.uint8), codes.astype(np.int8).view(np.uint8)])


def _half_away(x):
    return np.trunc(x + np.copysign(0.5, x))


def _d(x):
    return np.abs(x).max() / np.float32(127)


def quantize_q8_0__to_even(x):
    """away from zero"""
    d = _d(x)
    return _stored(d, np.round(x / d))


def quantize_q8_0__floor_of_a_half_more(x):
    """away from zero"""
    d = _d(x)
    return _stored(d, np.floor(x / d + 0.5))


def quantize_q8_0__amax_stored(x):
    """amax / 127"""
    d = _d(x)
    return _stored(127 * d, _half_away(x / d))


def quantize_q8_0__divided_by_128(x):
    """amax / 127"""
    d = np.abs(x).max() / np.float32(128)
    return _stored(d, np.clip(_half_away(x / d), -128, 127))


def quantize_q8_0__largest_not_absolute(x):
    """np.abs"""
    d = x.max() / np.float32(127)
    return _stored(d, _half_away(x / d))


def quantize_q8_0__codes_from_the_stored_d(x):
    """before it was rounded"""
    d = np.float32(np.float16(_d(x)))
    return _stored(d, _half_away(x / d))


def quantize_q8_0__big_endian(x):
    """low byte"""
    d = _d(x)
    block = _stored(d, _half_away(x / d))
    return np.concatenate([block[1::-1], block[2:]])


def quantize_q8_0__zero_gets_scale_one(x):
    """d is 0"""
    d = _d(x) or np.float32(1)
    return _stored(d, _half_away(x / d))


def quantize_q8_0__small_is_zero(x):
    """exact zero"""
    d = _d(x)
    return _stored(d, _half_away(x / d)) if d > 1e-6 else np.zeros(34, np.uint8)


def quantize_q8_0__codes_only(x):
    """shape (32,)"""
    return _half_away(x / _d(x)).astype(np.int8).view(np.uint8)


# error_bound


def error_bound__half_a_step(amax):
    """multiplies that"""
    return amax / 127 / 2


def error_bound__half_the_stored_step(amax):
    """multiplies that"""
    return float(np.float16(amax / 127)) / 2


def error_bound__the_worst_there_is(amax):
    """half a step is all"""
    return (0.5 + 127 * 2**-11) * amax / 127


def error_bound__a_whole_step(amax):
    """half a step is all"""
    return amax / 127


def error_bound__rounding_counted_once(amax):
    """multiplies that"""
    d = amax / 127
    return d / 2 + abs(d - float(np.float16(d)))


def error_bound__relative_to_the_stored_d(amax):
    """decodes exactly"""
    d, stored = amax / 127, np.float64(np.float16(amax / 127))
    return d / 2 + 127 * d * abs(d - stored) / stored if amax else np.nan


# round_trip


def _parts(x):
    d = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    return d, d.astype(np.float16).astype(np.float32)


def round_trip__not_repaired(x):
    """0 / 0"""
    d, stored = _parts(x)
    return np.rint(x / d) * stored


def round_trip__all_or_nothing(x):
    """block by block"""
    d, stored = _parts(x)
    return np.rint(x / d) * stored if x.any() else np.zeros_like(x)


def round_trip__any_zero_makes_zeros(x):
    """block by block"""
    d, stored = _parts(x)
    return np.rint(x / d) * stored if d.all() else np.zeros_like(x)


def round_trip__a_little_added(x):
    """small blocks"""
    d, stored = _parts(x)
    return np.rint(x / (d + np.float32(1e-7))) * stored


def round_trip__asks_the_largest_value(x):
    """it is d"""
    d, stored = _parts(x)
    some = np.abs(x).max(axis=1, keepdims=True) > 0
    return np.where(some, np.rint(x / d) * stored, np.float32(0))


def round_trip__infinite_inverse(x):
    """itself"""
    d, stored = _parts(x)
    inverse = np.divide(np.float32(1), d, out=np.zeros_like(d), where=d > 0)
    return np.rint(x * inverse) * stored


# q4_0_scale


def q4_0_scale__without_sign(x):
    """negative d"""
    return np.float16(np.abs(x).max() / 8)


def q4_0_scale__seven_steps(x):
    """-8"""
    return np.float16(x[np.abs(x).argmax()] / -7)


def q4_0_scale__plus_eight(x):
    """-8"""
    return np.float16(x[np.abs(x).argmax()] / 8)


def q4_0_scale__largest_not_absolute(x):
    """-8"""
    return np.float16(x.max() / -8)


def q4_0_scale__smallest_value(x):
    """sign stays"""
    return np.float16(x.min() / -8)


def q4_0_scale__the_last_of_equals(x):
    """the first counts"""
    return np.float16(x[31 - np.abs(x[::-1]).argmax()] / -8)


def q4_0_scale__negative_wins_a_tie(x):
    """here 2"""
    return np.float16((x.min() if -x.min() >= x.max() else x.max()) / -8)


def q4_0_scale__not_rounded(x):
    """f16"""
    return x[np.abs(x).argmax()] / np.float32(-8)
