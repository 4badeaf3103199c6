"""IQ4_NL weights x Q8_0 activations.

IQ4_NL block, 18 bytes, laid out as Q4_0's: f16 d, 16 bytes of codes. Byte j holds code j low, code j + 16 high; value =
d * levels[code], by a table of 16 int8. A table of 16 bytes fits in a register, so one instruction looks up every code
that another register holds. What comes out are signed bytes as those of Q8_0, and they are multiplied as those are.
"""

import numpy as np

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.dot.four_rows import four_16s
from minfer_lib.dot.four_rows_32 import field_shuffles, four_rows_by_fours, scales_by_block
from minfer_lib.dot.prefetch_ahead import AHEAD
from minfer_lib.formats.table import FORMATS
from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import (
    as_i8, as_u8, as_u16, concat, dpbusd, fmadd, load, load_f16, lookup, madd, maddubs, prefetch, sdot, shuffle, sign,
    splat, to_f32,
)  # fmt: skip
from minfer_lib.simd.registers import f32x4, f32x8, i8x16, i8x32, i16x16, i32x4, u8x16
from minfer_lib.simd.sums import hsum4, hsum8, twice

_LEVELS = np.array(FORMATS["IQ4_NL"].levels, np.int8)
_BYTES = _LEVELS.view(np.uint8)
_UNSIGNED = _BYTES ^ 128  # levels + 128


@inlined
def dot_iq4_nl_scalar(w, w_at, a, a_at, n_blocks):
    """Multiply two rows of n_blocks blocks -> float32. Follows ggml_vec_dot_iq4_nl_q8_0_generic (quants.c).

    w, a: uint8 arrays, the weights from byte w_at on and the activations from byte a_at on.
    """
    total = np.float32(0)
    for b in range(n_blocks):
        wb = w_at + 18 * b
        ab = a_at + 34 * b
        isum = np.int32(0)  # exact: at most 32 * 127 * 128
        for j in range(16):
            code = w[wb + 2 + j]
            low, high = np.int32(_LEVELS[code & 15]), np.int32(_LEVELS[code >> 4])
            isum = np.int32(isum + low * np.int32(np.int8(a[ab + 2 + j])))
            isum = np.int32(isum + high * np.int32(np.int8(a[ab + 18 + j])))
        total += np.float32(isum) * load_f16(w, wb) * load_f16(a, ab)
    return total


@inlined
def _codes(w, wb):
    """i8x32: the levels of the block at byte wb."""
    packed = load(u8x16, w, wb + 2)
    codes = concat(packed, as_u8(as_u16(packed) >> 4)) & 15
    return as_i8(shuffle(twice(load(u8x16, _BYTES, 0)), codes))


@inlined
def dot_iq4_nl_avx2(w, w_at, a, a_at, n_blocks):
    """Multiply two rows, 32 products at a time, in the order of dot_q4_0_avx2; arguments as dot_iq4_nl_scalar's.

    Follows ggml_vec_dot_iq4_nl_q8_0 (arch/x86/quants.c). maddubs takes unsigned weights: each activation gets its
    weight's sign.
    """
    acc = splat(f32x8, 0)
    for b in range(n_blocks):
        wb = w_at + 18 * b
        ab = a_at + 34 * b
        prefetch(w, wb + AHEAD)
        d = load_f16(w, wb) * load_f16(a, ab)
        qw = _codes(w, wb)
        qa = load(i8x32, a, ab + 2)
        magnitudes = as_u8(sign(qw, qw))
        signed = sign(qa, qw)
        pairs = maddubs(magnitudes, signed)  # exact: at most 2 * 127 * 127, below 2**15
        fours = madd(pairs, splat(i16x16, 1))
        acc = fmadd(splat(f32x8, d), to_f32(fours), acc)
    return hsum8(acc)


_SHUFFLES = field_shuffles(18, 0)


@inlined
def _scales(w, wb, row_bytes):
    """See `four_rows_32.py`."""
    return scales_by_block(w, wb, row_bytes, _SHUFFLES)


@inlined
def _products(start, w, wb, step, low, high):
    """See `four_rows_32.py`. dpbusd takes unsigned weights, so the table holds the levels + 128."""
    packed, levels = four_16s(w, wb + 2, step), twice(twice(load(u8x16, _UNSIGNED, 0)))
    products = dpbusd(start, shuffle(levels, packed & 15), low)
    return dpbusd(products, shuffle(levels, as_u8(as_u16(packed) >> 4) & 15), high)


dot4_iq4_nl_avx512vnni = four_rows_by_fours("IQ4_NL", _products, _scales, offset=128)


@inlined
def dot_iq4_nl_neon(w, w_at, a, a_at, n_blocks):
    """Multiply two rows, 16 products at a time, in the order of dot_q4_0_neon; arguments as dot_iq4_nl_scalar's."""
    acc, levels = splat(f32x4, 0), load(u8x16, _BYTES, 0)
    for b in range(n_blocks):
        wb = w_at + 18 * b
        ab = a_at + 34 * b
        prefetch(w, wb + AHEAD)
        d = load_f16(w, wb) * load_f16(a, ab)
        packed = load(u8x16, w, wb + 2)
        low = as_i8(lookup(levels, packed & 15))
        high = as_i8(lookup(levels, packed >> 4))
        fours = sdot(splat(i32x4, 0), low, load(i8x16, a, ab + 2))
        fours = sdot(fours, high, load(i8x16, a, ab + 18))
        acc = fmadd(splat(f32x4, d), to_f32(fours), acc)
    return hsum4(acc)


KERNELS = FormatKernels(
    "IQ4_NL",
    scalar=dot_iq4_nl_scalar,
    avx2=dot_iq4_nl_avx2,
    neon=dot_iq4_nl_neon,
    avx512vnni=dot4_iq4_nl_avx512vnni,
    codes=_codes,
)
