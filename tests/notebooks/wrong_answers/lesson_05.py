"""Wrong answers that people give. Each must fail its check; the docstring is a word of the message that it must get."""

import numpy as np

from minfer_lib.formats.packing import unpack_scales_mins


def _f16(raw):
    return float(raw.view("<f2")[0])


def _parts(w):
    scales, mins = unpack_scales_mins(w[None, 4:16])
    return scales[0].astype(int), mins[0].astype(int)


def _sums(a):
    return a[274:306].view("<i2").astype(int)


# min_term


def min_term__one_sum_a_group(w, a):
    """A group of 32 takes two"""
    return _f16(w[2:4]) * _f16(a[:2]) * int(_parts(w)[1] @ _sums(a)[:8])


def min_term__scaled_by_d(w, a):
    """the min is scaled by dmin"""
    return _f16(w[:2]) * _f16(a[:2]) * int(_parts(w)[1] @ _sums(a).reshape(8, 2).sum(axis=1))


def min_term__without_the_activations_scale(w, a):
    """the activations' scale d_a"""
    return _f16(w[2:4]) * int(_parts(w)[1] @ _sums(a).reshape(8, 2).sum(axis=1))


def min_term__scales_for_mins(w, a):
    """eight groups of 32 ones: 256"""
    return _f16(w[2:4]) * _f16(a[:2]) * int(_parts(w)[0] @ _sums(a).reshape(8, 2).sum(axis=1))


def min_term__halves_for_pairs(w, a):
    """in their pairs"""
    return _f16(w[2:4]) * _f16(a[:2]) * int(_parts(w)[1] @ _sums(a).reshape(2, 8).sum(axis=0))


def min_term__unsigned(w, a):
    """the sums are signed"""
    sums = a[274:306].view("<u2").astype(int)
    return _f16(w[2:4]) * _f16(a[:2]) * int(_parts(w)[1] @ sums.reshape(8, 2).sum(axis=1))


def min_term__in_sixteen_bits(w, a):
    """does not fit in 16 bits"""
    sums = _sums(a).reshape(8, 2).sum(axis=1).astype(np.int16)
    return _f16(w[2:4]) * _f16(a[:2]) * int((_parts(w)[1].astype(np.int16) * sums).sum(dtype=np.int64))


# group_sums


def _codes(a):
    return a.reshape(-1, 306)[:, 2:258].astype(np.int8).astype(int)


def group_sums__as_stored(a):
    """sixteen sums of sixteen ones"""
    return a.reshape(-1, 306)[:, 274:].copy().view("<i2").astype(int)


def group_sums__strided(a):
    """codes 16 g to 16 g + 15"""
    return _codes(a).reshape(-1, 16, 16).sum(axis=1)


def group_sums__unsigned(a):
    """codes are signed"""
    return a.reshape(-1, 306)[:, 2:258].astype(int).reshape(-1, 16, 16).sum(axis=2)


def group_sums__from_byte_0(a):
    """sixteen sums of sixteen ones"""
    return a.reshape(-1, 306)[:, :256].astype(np.int8).astype(int).reshape(-1, 16, 16).sum(axis=2)


def group_sums__in_a_byte(a):
    """does not fit in a byte"""
    return _codes(a).astype(np.int8).reshape(-1, 16, 16).sum(axis=2, dtype=np.int8)


def group_sums__one_block_only(a):
    """306 bytes a block"""
    return _codes(a[:306]).reshape(-1, 16, 16).sum(axis=2)


# dot_q4_k


def _fold(w, a, codes_of, fold):
    total = 0.0
    for x, y in zip(w.reshape(-1, 144), a.reshape(-1, 306), strict=True):
        scales, mins = _parts(x)
        codes, acts = codes_of(x[16:]).astype(int), y[2:258].view(np.int8).astype(int).reshape(8, 32)
        sums = _sums(y).reshape(8, 2).sum(axis=1)
        isum, mterm = int(scales @ (codes * acts).sum(axis=1)), int(mins @ sums)
        total += fold(_f16(x[:2]), _f16(x[2:4]), _f16(y[:2]), isum, mterm)
    return total


def _right_codes(qs):
    qs = qs.reshape(4, 32)
    return np.stack([qs & 15, qs >> 4], axis=1).reshape(8, 32)


def _right_fold(d, dmin, d_a, isum, mterm):
    return d_a * (d * isum - dmin * mterm)


def dot_q4_k__neighbours_share_a_byte(w, a):
    """not neighbours"""
    return _fold(w, a, lambda qs: np.stack([qs & 15, qs >> 4], axis=1).reshape(8, 32), _right_fold)


def dot_q4_k__all_low_halves_first(w, a):
    """the order of the codes"""
    return _fold(w, a, lambda qs: np.concatenate([qs & 15, qs >> 4]).reshape(8, 32), _right_fold)


def dot_q4_k__min_added(w, a):
    """the min term is subtracted"""
    return _fold(w, a, _right_codes, lambda d, dmin, d_a, isum, mterm: d_a * (d * isum + dmin * mterm))


def dot_q4_k__no_min_term(w, a):
    """the min term is subtracted"""
    return _fold(w, a, _right_codes, lambda d, dmin, d_a, isum, mterm: d_a * d * isum)


def dot_q4_k__min_scaled_by_d(w, a):
    """scaled by dmin"""
    return _fold(w, a, _right_codes, lambda d, dmin, d_a, isum, mterm: d_a * d * (isum - mterm))


def dot_q4_k__sums_never_reset(w, a):
    """start them at zero again"""
    total, isum = 0.0, 0
    for x, y in zip(w.reshape(-1, 144), a.reshape(-1, 306), strict=True):
        scales, mins = _parts(x)
        acts = y[2:258].view(np.int8).astype(int).reshape(8, 32)
        isum += int(scales @ (_right_codes(x[16:]).astype(int) * acts).sum(axis=1))
        mterm = int(mins @ _sums(y).reshape(8, 2).sum(axis=1))
        total += _right_fold(_f16(x[:2]), _f16(x[2:4]), _f16(y[:2]), isum, mterm)
    return total


def dot_q4_k__pairs_only(w, a):
    """every block counts"""
    n = max(1, len(w) // 144 // 2 * 2)
    return _fold(w[: 144 * n], a[: 306 * n], _right_codes, _right_fold)


# crossed


def crossed__in_its_place(b, i):
    """no code: -1"""
    return 256 * b + i


def crossed__scales_are_codes(b, i):
    """no code: -1"""
    return 306 * b + i


def crossed__shifted_by_one_scale(b, i):
    """shifts the codes by two more bytes"""
    if i < 32:
        return 256 * b + i
    return -1 if i < 34 else 256 * b + i - 2


def crossed__counted_in_the_block(b, i):
    """306 is nine times 34"""
    block, byte = divmod(2 + i, 34)
    return 32 * block + byte - 2 + 256 * b if byte >= 2 else -1


def crossed__without_the_kernels_own_scale(b, i):
    """both blocks begin with a scale"""
    block, byte = divmod(306 * b + i, 34)
    return 32 * block + byte - 2 if byte >= 2 else -1
