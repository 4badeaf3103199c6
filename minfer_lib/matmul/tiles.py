"""Many tokens at once: 16 rows of weights are unpacked once, then multiplied with 16 tokens at a time.

    codes     16 rows of weights, unpacked               `tile_layout.py`
    panels    the activations, 16 tokens each            `panels.py`
    sums      int32[16 rows, 16 tokens] of a block       `tile_sums.py`: one AMX instruction, or vpdpbusd
    total     float32[16 rows, 16 tokens]                block after block, the sums are folded into it

The sums are exact, and a block is folded as the AVX-512 dots fold it. So a token has the same bits alone and among
others, with AMX and without, at any number of threads.
"""

from __future__ import annotations

from numba.extending import overload

from minfer_lib.dot.kernel_key import KernelKey
from minfer_lib.dot.prefetch_ahead import prefetch_lines
from minfer_lib.dot.registry import KERNELS
from minfer_lib.formats.table import FORMATS
from minfer_lib.matmul.panels import BLOCK_32, BLOCK_256, D_32, D_256, PAIRS, SUMS, TOKENS
from minfer_lib.matmul.tile_layout import MINS, ROWS, SUPER, TILE_32, TILE_64, UNSIGNED, unpacker
from minfer_lib.matmul.tile_sums import (
    SHAPES_32,
    SHAPES_256,
    four_sums_32_amx,
    sums_32_amx,
    sums_32_avx512vnni,
    sums_256_amx,
    sums_256_avx512vnni,
)
from minfer_lib.native.address import bytes_at, floats_at
from minfer_lib.native.jit import inlined, kernel
from minfer_lib.simd.amx import tile_release, tile_shapes
from minfer_lib.simd.isa import has_amx, isas
from minfer_lib.simd.ops import as_i16, dpwssd, fmadd, load, load_u32, prefetch, splat, store, to_f32, zip_high, zip_low
from minfer_lib.simd.registers import f32x16, i16x32, i32x16, u32x16

TILES_FROM = 6  # rows one by one are faster for up to 3 tokens (Q4_0, AMX), and still for 8 (Q4_K, AVX-512): measured

# The scratch memory of a worker, in bytes: sums, total, and a second one to turn it; then two floats a row and block,
# and the codes.
_SUMS, _TOTAL, _TURNED, _SCALES = 0, 8 * TILE_64, 9 * TILE_64, 10 * TILE_64


def tiles_for(format_: str) -> KernelKey | None:
    """How this CPU multiplies weights of `format_` with many tokens; None: as with one, row by row."""
    if KERNELS[format_].codes is None or "avx512vnni" not in isas():
        return None
    return KernelKey(format_, "amx" if has_amx() else "avx512vnni")


def scratch_bytes(format_: str, n_blocks: int) -> int:
    """Of scratch memory that a worker needs for rows of n_blocks blocks."""
    return _SCALES + n_blocks * (2 * 4 * ROWS + (TILE_32 if FORMATS[format_].block_values == 32 else SUPER))


@kernel
def mm_tiles(tiles, w, w_at, row_bytes, first, last, panels, n_tokens, n_blocks, scratch, scales, out, n_out):
    """Rows [first, last) of the matrix at byte w_at of w, times every token. The sizes are those of mm_rows.

    panels, scratch: uint8[:]; scales: f32[n_blocks, 2, 16]; out: the bytes of f32[n_tokens, n_out], token-major.
    """
    sums, total, turned = scratch[_SUMS:_TOTAL], scratch[_TOTAL:_TURNED], scratch[_TURNED:_SCALES]
    codes = scratch[_SCALES + 4 * scales.size :]
    turns = max(1, -(-n_tokens // TOKENS))
    panel_bytes = panels.size // turns
    begin(tiles)
    for o in range(first, last, ROWS):
        rows = min(ROWS, last - o)
        for row in range(rows):
            unpack_row(tiles, w, w_at + (o + row) * row_bytes, n_blocks, row, codes, scales)
        following, share = w_at + (o + ROWS) * row_bytes, ROWS * row_bytes // turns
        for t in range(0, n_tokens, TOKENS):
            prefetch_lines(w, following + t // TOKENS * share, share)  # the rows that come next, a piece each turn
            for token in range(t, min(t + TOKENS, n_tokens)):
                prefetch(out, 4 * (token * n_out + o))  # written when the tile is done
            panel = panels[t // TOKENS * panel_bytes : (t // TOKENS + 1) * panel_bytes]
            for row in range(rows):
                store(total, 64 * row, splat(f32x16, 0))
            multiply_tile(tiles, codes, scales, panel, n_blocks, rows, sums, total)
            turn(total, turned)
            for token in range(min(TOKENS, n_tokens - t)):
                at = 4 * ((t + token) * n_out + o)
                if rows == ROWS:
                    store(out, at, load(f32x16, total, 64 * token))
                else:
                    out[at : at + 4 * rows] = total[64 * token : 64 * token + 4 * rows]
    end(tiles)


@kernel
def tiles_at(tiles, w, row_bytes, first, last, panels, scratch, n_tokens, n_blocks, out, n_out):
    """mm_tiles by addresses. Called as rows_at is, with panels for its rows and a worker's scratch for their size."""
    weights = bytes_at(w, last * row_bytes)
    sizes = block_sizes(tiles)
    panels_ = bytes_at(panels, -(-n_tokens // TOKENS) * n_blocks * sizes[0])
    scales = floats_at(scratch + _SCALES, 2 * n_blocks, ROWS).reshape(n_blocks, 2, ROWS)
    memory = bytes_at(scratch, _SCALES + n_blocks * (2 * 4 * ROWS + sizes[1]))
    outs = bytes_at(out, 4 * n_tokens * n_out)
    mm_tiles(tiles, weights, 0, row_bytes, first, last, panels_, n_tokens, n_blocks, memory, scales, outs, n_out)


@inlined
def fold_four(scales, panel, b, rows, with_min, sums, at, total):
    """total += blocks b to b + 3 of `rows` rows, one after the other; their sums are from byte `at` on."""
    p_at = BLOCK_32 * b
    d0, d1 = load(f32x16, panel, p_at + D_32), load(f32x16, panel, p_at + BLOCK_32 + D_32)
    d2, d3 = load(f32x16, panel, p_at + 2 * BLOCK_32 + D_32), load(f32x16, panel, p_at + 3 * BLOCK_32 + D_32)
    s0, s1 = load(f32x16, panel, p_at + SUMS), load(f32x16, panel, p_at + BLOCK_32 + SUMS)
    s2, s3 = load(f32x16, panel, p_at + 2 * BLOCK_32 + SUMS), load(f32x16, panel, p_at + 3 * BLOCK_32 + SUMS)
    for row in range(rows):
        acc, place = load(f32x16, total, 64 * row), at + 64 * row
        acc = _fold(acc, d0, s0, scales, b, row, with_min, sums, place)
        acc = _fold(acc, d1, s1, scales, b + 1, row, with_min, sums, place + TILE_64)
        acc = _fold(acc, d2, s2, scales, b + 2, row, with_min, sums, place + 2 * TILE_64)
        acc = _fold(acc, d3, s3, scales, b + 3, row, with_min, sums, place + 3 * TILE_64)
        store(total, 64 * row, acc)


@inlined
def fold_32(scales, panel, b, rows, with_min, sums, total):
    """total += block b of `rows` rows."""
    d_a, s_a = load(f32x16, panel, BLOCK_32 * b + D_32), load(f32x16, panel, BLOCK_32 * b + SUMS)
    for row in range(rows):
        acc = load(f32x16, total, 64 * row)
        store(total, 64 * row, _fold(acc, d_a, s_a, scales, b, row, with_min, sums, 64 * row))


@inlined
def _fold(acc, d_a, s_a, scales, b, row, with_min, sums, at):
    """acc + (d_w * d_a) * sum, + m * (d_a * sum of a), each one fused multiply-add."""
    acc = fmadd(d_a * scales[b, 0, row], to_f32(load(i32x16, sums, at)), acc)
    return fmadd(splat(f32x16, scales[b, 1, row]), s_a, acc) if with_min else acc


@inlined
def fold_256(codes, scales, panel, b, rows, with_min, sums, total):
    """total += super-block b of `rows` rows, in the order of dot_q4_k_scalar: the min term, the value term."""
    d_a = load(f32x16, panel, BLOCK_256 * b + D_256)
    for row in range(rows):
        acc = load(f32x16, total, 64 * row)
        if with_min:
            acc = acc - d_a * scales[b, 1, row] * to_f32(_mins(codes, panel, b, row))
        high, low = load(i32x16, sums, 64 * row), load(i32x16, sums, TILE_64 + 64 * row)
        acc = acc + d_a * scales[b, 0, row] * to_f32((high << 6) + low)
        store(total, 64 * row, acc)


@inlined
def _mins(codes, panel, b, row):
    """i32x16, a lane a token: the sum of min * (sum of its 16 activations)."""
    mins = splat(i32x16, 0)
    for g in range(8):  # two at a time
        two = load_u32(codes, SUPER * b + MINS + 32 * row + 4 * g)
        mins = dpwssd(mins, as_i16(splat(u32x16, two)), load(i16x32, panel, BLOCK_256 * b + PAIRS + 64 * g))
    return mins


@inlined
def _tile_32_amx(codes, scales, panel, n_blocks, rows, with_min, sums, total):
    fours = n_blocks // 4 * 4
    for b in range(0, fours, 4):  # the sums of four blocks are under way while those of the four before are folded
        four_sums_32_amx(codes, panel, b, sums, b % 8 * TILE_64)
        if b > 0:
            fold_four(scales, panel, b - 4, rows, with_min, sums, (b - 4) % 8 * TILE_64, total)
    if fours > 0:
        fold_four(scales, panel, fours - 4, rows, with_min, sums, (fours - 4) % 8 * TILE_64, total)
    for b in range(fours, n_blocks):
        sums_32_amx(codes, panel, b, sums)
        fold_32(scales, panel, b, rows, with_min, sums, total)


@inlined
def _tile_32_avx512vnni(codes, scales, panel, n_blocks, rows, with_min, sums, total):
    for b in range(n_blocks):
        sums_32_avx512vnni(codes, panel, b, sums)
        fold_32(scales, panel, b, rows, with_min, sums, total)


@inlined
def _tile_256_amx(codes, scales, panel, n_blocks, rows, with_min, sums, total):
    for b in range(n_blocks):
        sums_256_amx(codes, panel, b, sums)
        fold_256(codes, scales, panel, b, rows, with_min, sums, total)


@inlined
def _tile_256_avx512vnni(codes, scales, panel, n_blocks, rows, with_min, sums, total):
    for b in range(n_blocks):
        sums_256_avx512vnni(codes, panel, b, sums)
        fold_256(codes, scales, panel, b, rows, with_min, sums, total)


MULTIPLY = {  # (values of a block, kernel set) -> total += codes x panel
    (32, "amx"): _tile_32_amx,
    (32, "avx512vnni"): _tile_32_avx512vnni,
    (256, "amx"): _tile_256_amx,
    (256, "avx512vnni"): _tile_256_avx512vnni,
}


@inlined
def turn(total, other):
    """float32[16, 16] in place, rows to columns: four times rows i and i + 8, zipped, become rows 2 i and 2 i + 1."""
    _zip_rows(total, other)
    _zip_rows(other, total)
    _zip_rows(total, other)
    _zip_rows(other, total)


@inlined
def _zip_rows(rows, out):
    for i in range(8):
        a, b = load(f32x16, rows, 64 * i), load(f32x16, rows, 64 * (i + 8))
        store(out, 128 * i, zip_low(a, b))
        store(out, 128 * i + 64, zip_high(a, b))


# What depends on the KernelKey: its format and its kernel set.


def begin(tiles):
    """In compiled code: make the tile registers ready."""
    raise NotImplementedError


def end(tiles):
    """In compiled code: give them back."""
    raise NotImplementedError


def block_sizes(tiles):
    """In compiled code: bytes of a block in a panel, and of the codes of 16 rows."""
    raise NotImplementedError


def unpack_row(tiles, w, w_at, n_blocks, row, codes, scales):
    """In compiled code: the row at byte w_at of w as row `row` of codes and scales."""
    raise NotImplementedError


def multiply_tile(tiles, codes, scales, panel, n_blocks, rows, sums, total):
    """In compiled code: total += codes x panel, all blocks of `rows` rows."""
    raise NotImplementedError


@overload(begin)
def _begin(tiles):
    shapes = SHAPES_32 if FORMATS[tiles.format].block_values == 32 else SHAPES_256
    return (lambda tiles: tile_shapes(shapes, 0)) if tiles.isa == "amx" else lambda tiles: None


@overload(end)
def _end(tiles):
    return (lambda tiles: tile_release()) if tiles.isa == "amx" else lambda tiles: None


@overload(block_sizes)
def _block_sizes(tiles):
    sizes = (BLOCK_32, TILE_32) if FORMATS[tiles.format].block_values == 32 else (BLOCK_256, SUPER)
    return lambda tiles: sizes


@overload(unpack_row)
def _unpack_row(tiles, w, w_at, n_blocks, row, codes, scales):
    unpack, flip = unpacker(tiles.format), 0 if tiles.isa == "amx" else UNSIGNED
    return lambda tiles, w, w_at, n_blocks, row, codes, scales: unpack(w, w_at, n_blocks, row, flip, codes, scales)


@overload(multiply_tile)
def _multiply_tile(tiles, codes, scales, panel, n_blocks, rows, sums, total):
    multiply, with_min = MULTIPLY[FORMATS[tiles.format].block_values, tiles.isa], FORMATS[tiles.format].has_min

    def implementation(tiles, codes, scales, panel, n_blocks, rows, sums, total):
        multiply(codes, scales, panel, n_blocks, rows, with_min, sums, total)

    return implementation
