"""Every format, element by element: the decoders against formulas in plain Python, one code at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import minfer_lib as mf
from minfer_lib.formats.decode import SLAB
from minfer_lib.formats.packing import pack, pack_scales_mins, unpack, unpack_scales_mins

LAYOUTS = [(16, 4), (32, 4), (64, 4), (32, 2), (32, 1), (8, 4), (4, 2), (1, 1)]  # run, bits


def low_bits(qs, e):
    """Two bits of element e, as Q2_K and Q3_K keep them."""
    half, k, position = e // 128, e % 128 // 32, e % 32
    return qs[32 * half + position] >> 2 * k & 3


def nibble_256(qs, e):
    byte = qs[32 * (e // 64) + e % 32]
    return byte >> 4 if e % 64 >= 32 else byte & 15


def nibble_32(qs, e):
    return qs[e % 16] >> 4 if e >= 16 else qs[e % 16] & 15


def scale_min(s, i):
    """Scale and min of sub-block i of Q4_K and Q5_K."""
    if i < 4:
        return s[i] & 63, s[i + 4] & 63
    return s[i + 4] & 15 | s[i - 4] >> 6 << 4, s[i + 4] >> 4 | s[i] >> 6 << 4


def scale_q3(s, i):
    low = s[i] & 15 if i < 8 else s[i - 8] >> 4
    return (low | (s[8 + i % 4] >> 2 * (i // 4) & 3) << 4) - 32


def code_q6(b, e):
    half, quarter, position = e // 128, e % 128 // 32, e % 32
    byte = b["ql"][64 * half + 32 * (quarter % 2) + position]
    low = byte >> 4 if quarter >= 2 else byte & 15
    return (low | (b["qh"][32 * half + position] >> 2 * quarter & 3) << 4) - 32


f32 = np.float32
KVALUES_IQ4NL = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def with_min(d, scale, code, dmin, low):
    return (f32(d) * f32(scale)) * f32(code) - f32(dmin) * f32(low)


def without(d, scale, code):
    return (f32(d) * f32(scale)) * f32(code)


# fields of one block as Python integers and floats, the element -> its value in float32
FORMULAS = {
    "Q4_0": lambda b, e: f32(nibble_32(b["qs"], e) - 8) * f32(b["d"]),
    "Q4_1": lambda b, e: f32(nibble_32(b["qs"], e)) * f32(b["d"]) + f32(b["m"]),
    "Q5_0": lambda b, e: f32((nibble_32(b["qs"], e) | (b["qh"] >> e & 1) << 4) - 16) * f32(b["d"]),
    "Q5_1": lambda b, e: f32(nibble_32(b["qs"], e) | (b["qh"] >> e & 1) << 4) * f32(b["d"]) + f32(b["m"]),
    "IQ4_NL": lambda b, e: f32(KVALUES_IQ4NL[nibble_32(b["qs"], e)]) * f32(b["d"]),
    "Q8_0": lambda b, e: f32(b["qs"][e]) * f32(b["d"]),
    "Q8_1": lambda b, e: f32(b["qs"][e]) * f32(b["d"]),
    "Q8_0_PAD40": lambda b, e: f32(b["qs"][e]) * f32(b["d"]),
    "Q8_K": lambda b, e: f32(b["qs"][e]) * f32(b["d"]),
    "Q8_K_GGML": lambda b, e: f32(b["qs"][e]) * f32(b["d"]),
    "Q2_K": lambda b, e: with_min(
        b["d"], b["scales"][e // 16] & 15, low_bits(b["qs"], e), b["dmin"], b["scales"][e // 16] >> 4
    ),
    "Q3_K": lambda b, e: without(
        b["d"],
        scale_q3(b["scales"], e // 16),
        low_bits(b["qs"], e) - (0 if b["hmask"][e % 32] >> e // 32 & 1 else 4),
    ),
    "Q4_K": lambda b, e: with_min(
        b["d"],
        scale_min(b["scales"], e // 32)[0],
        nibble_256(b["qs"], e),
        b["dmin"],
        scale_min(b["scales"], e // 32)[1],
    ),
    "Q5_K": lambda b, e: with_min(
        b["d"],
        scale_min(b["scales"], e // 32)[0],
        nibble_256(b["qs"], e) | (b["qh"][e % 32] >> e // 32 & 1) << 4,
        b["dmin"],
        scale_min(b["scales"], e // 32)[1],
    ),
    "Q6_K": lambda b, e: without(b["d"], b["scales"][e // 16], code_q6(b, e)),
}


def random_blocks(name, n, seed=3):
    """Any bytes, but tame scales."""
    row, rng = mf.FORMATS[name], np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (n, row.block_bytes), dtype=np.uint8).view(row.dtype)[:, 0]
    for field in row.fields:
        if field.dtype.kind == "f":
            blocks[field.name] = rng.uniform(-0.05, 0.05, n)
    return blocks


def test_every_format_has_a_formula():
    assert FORMULAS.keys() == {name for name, row in mf.FORMATS.items() if row.block_values > 1}


@pytest.mark.parametrize("name", FORMULAS)
def test_each_element_is_what_the_formula_says(name):
    blocks = random_blocks(name, 3)
    values = mf.dequantize(name, blocks.view(np.uint8)).reshape(3, -1)
    for block, row in zip(blocks, values, strict=True):
        fields = {field: block[field].tolist() for field in blocks.dtype.names}
        right = np.array([FORMULAS[name](fields, e) for e in range(row.size)], np.float32)
        assert np.array_equal(row.view(np.uint32), right.view(np.uint32))


@pytest.mark.parametrize("name", mf.FORMATS)
def test_long_rows_are_decoded_as_their_blocks_are(name):
    """More values than are decoded at a time, by an odd number of blocks: every one comes out, in its place."""
    row = mf.FORMATS[name]
    n = 2 * SLAB // row.block_values + 1
    blocks = random_blocks(name, n, seed=8) if row.block_values > 1 else np.random.default_rng(8).random(n, np.float32)
    raw = blocks.view(np.uint8)[: n * row.block_bytes]
    values = mf.dequantize(name, raw)
    assert values.size == n * row.block_values
    for i in (0, 1, n // 2 - 1, n // 2, n - 1):
        one = mf.dequantize(name, raw[i * row.block_bytes : (i + 1) * row.block_bytes])
        here = values[i * row.block_values : (i + 1) * row.block_values]
        assert np.array_equal(one.view(np.uint32), here.view(np.uint32))


@pytest.mark.parametrize(("run", "bits"), LAYOUTS)
@given(raw=arrays(np.uint8, (2, 64)))
def test_pack_undoes_unpack(run, bits, raw):
    codes = unpack(raw, run, bits)
    assert codes.max() < 1 << bits and np.array_equal(pack(codes, run, bits), raw)


@given(raw=arrays(np.uint8, (2, 12)))
def test_the_twelve_bytes_there_and_back(raw):
    scales, mins = unpack_scales_mins(raw)
    assert np.array_equal(pack_scales_mins(scales, mins), raw)


@given(st.lists(st.integers(0, 63), min_size=16, max_size=16))
def test_the_twelve_bytes_back_and_there(numbers):
    scales, mins = np.array(numbers, np.uint8).reshape(2, 1, 8)
    there = unpack_scales_mins(pack_scales_mins(scales, mins))
    assert np.array_equal(there[0], scales) and np.array_equal(there[1], mins)


@pytest.mark.parametrize("name", ["Q8_0", "Q8_K", "Q8_0_PAD40"])
def test_run_time_activations_decode_within_half_a_step(name):
    x = np.random.default_rng(6).standard_normal(512).astype(np.float32)
    values = mf.dequantize(name, mf.quantize_activations(name, x))
    assert np.abs(values - x).max() <= np.abs(x).max() * (0.5 / 127 + 2.0**-11)
