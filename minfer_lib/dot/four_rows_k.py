"""The AVX-512 dot of the K-quants: four rows at a time, written once.

    super_block(w, wb)    the super-block at byte wb -> (codes, four u8x64; their scales, four i16x32; i16x16)

Register k of the codes, 0 to 3, has the 32 bytes of codes 32 k to 32 k + 31 of the first half of a super-block, and
then those of the second half. In that order most formats need the fewest instructions to unpack, and the activations
are put into it once for four rows. The last of what `super_block` returns has a number for each 16 codes,
which is multiplied with the sum of their activations: the min, or, where all codes are too large by 2 ** shift, the
scale.

Each row has the bits of the format's scalar kernel.
"""

from numba.core.dispatcher import Dispatcher

from minfer_lib.dot.four_rows import both, composed_dot4, four_floats, four_halfs
from minfer_lib.dot.k_scales import BSUMS, Q8_K_BYTES
from minfer_lib.dot.prefetch_ahead import four_rows_ahead, prefetch_lines
from minfer_lib.formats.table import FORMATS
from minfer_lib.native.jit import composed, inlined
from minfer_lib.simd.ops import concat, dpwssd, load, load_f16, madd, maddubs, splat, to_f32
from minfer_lib.simd.registers import f32x4, i8x32, i16x16, i32x8
from minfer_lib.simd.sums import four_sums, halves


def four_rows_with_mins(format_: str, super_block: Dispatcher) -> Dispatcher:
    """Return dot4(w, w_at, row_bytes, a, a_at, n_blocks) -> four float32, of rows that are row_bytes apart."""
    size, d_at, dmin_at = FORMATS[format_].block_bytes, FORMATS[format_].offset("d"), FORMATS[format_].offset("dmin")

    @composed
    def row(w, wb, ahead, qa, sums):  # (i32x16, i32x8), whose lanes add up to the sums of the value and the min term
        prefetch_lines(w, ahead, size)
        codes, scales, mins = super_block(w, wb)
        return _weigh(codes, qa, scales), madd(mins, sums)

    def dot4(w, w_at, row_bytes, a, a_at, n_blocks):
        start, total = four_rows_ahead(w_at, row_bytes), splat(f32x4, 0)
        for b in range(n_blocks):
            wb, ab, ahead = w_at + size * b, a_at + Q8_K_BYTES * b, start + 4 * size * b
            qa, sums = _activations(a, ab), load(i16x16, a, ab + BSUMS)
            v0, m0 = row(w, wb, ahead, qa, sums)
            v1, m1 = row(w, wb + row_bytes, ahead + size, qa, sums)
            v2, m2 = row(w, wb + 2 * row_bytes, ahead + 2 * size, qa, sums)
            v3, m3 = row(w, wb + 3 * row_bytes, ahead + 3 * size, qa, sums)
            d_a = load_f16(a, ab)
            total = total - four_halfs(w, wb + dmin_at, row_bytes) * d_a * to_f32(four_sums(m0, m1, m2, m3))
            total = total + four_halfs(w, wb + d_at, row_bytes) * d_a * to_f32(halves(four_sums(v0, v1, v2, v3)))
        return four_floats(total)

    return composed_dot4(dot4, format_)


def four_rows_symmetric(format_: str, super_block: Dispatcher, shift: int) -> Dispatcher:
    """As four_rows_with_mins, without dmin; shift: see above."""
    size, d_at = FORMATS[format_].block_bytes, FORMATS[format_].offset("d")

    @composed
    def row(w, wb, ahead, qa, sums):  # i32x16, whose lanes add up to the sum of the value term
        prefetch_lines(w, ahead, size)
        codes, scales, of_16 = super_block(w, wb)
        return _weigh(codes, qa, scales) - concat(madd(of_16, sums) << shift, splat(i32x8, 0))

    def dot4(w, w_at, row_bytes, a, a_at, n_blocks):
        start, total = four_rows_ahead(w_at, row_bytes), splat(f32x4, 0)
        for b in range(n_blocks):
            wb, ab, ahead = w_at + size * b, a_at + Q8_K_BYTES * b, start + 4 * size * b
            qa, sums = _activations(a, ab), load(i16x16, a, ab + BSUMS)
            v0 = row(w, wb, ahead, qa, sums)
            v1 = row(w, wb + row_bytes, ahead + size, qa, sums)
            v2 = row(w, wb + 2 * row_bytes, ahead + 2 * size, qa, sums)
            v3 = row(w, wb + 3 * row_bytes, ahead + 3 * size, qa, sums)
            d = four_halfs(w, wb + d_at, row_bytes) * load_f16(a, ab)
            total = total + d * to_f32(halves(four_sums(v0, v1, v2, v3)))
        return four_floats(total)

    return composed_dot4(dot4, format_)


@inlined
def _weigh(codes, qa, scales):
    """Four u8x64, four i8x64, four i16x32 -> i32x16 whose lanes add up to the sum of scale * code * activation."""
    sums = madd(scales[0], maddubs(codes[0], qa[0]))
    sums = dpwssd(sums, scales[1], maddubs(codes[1], qa[1]))
    sums = dpwssd(sums, scales[2], maddubs(codes[2], qa[2]))
    return dpwssd(sums, scales[3], maddubs(codes[3], qa[3]))


@inlined
def _activations(a, ab):
    """Four i8x64: the activations of the Q8_K block at byte ab."""
    at, other = ab + 2, ab + 130
    return (
        both(i8x32, a, at, other),
        both(i8x32, a, at + 32, other + 32),
        both(i8x32, a, at + 64, other + 64),
        both(i8x32, a, at + 96, other + 96),
    )
