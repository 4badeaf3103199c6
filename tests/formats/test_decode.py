"""Blocks to values: equal to ggml's to the bit, for blocks that a quantizer wrote and for any others."""

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minfer_lib as mf

ROWS = ("normal", "outliers", "positive", "zeros", "ties", "spike", "tiny", "large", "constant", "bytes")
IN_GOLDEN = [name for name, row in mf.FORMATS.items() if row.activation]
IN_GGUF = [name for name in mf.FORMATS if name not in ("Q8_1", "Q8_K", "Q8_K_GGML", "Q8_0_PAD40")]


def same_bits(a, b):
    """Equal float32s, +0 and -0 told apart, any NaN equal to any other."""
    both_nan = np.isnan(a) & np.isnan(b)
    return a.shape == b.shape and a.dtype == b.dtype and np.all((a.view(np.uint32) == b.view(np.uint32)) | both_nan)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", IN_GOLDEN)
def test_values_are_ggmls(golden, name, row):
    key = f"{row}/{name.lower().replace('_k', '_K')}"
    assert same_bits(mf.dequantize(name, golden[f"{key}/bytes"]), golden[f"{key}/values"])


@pytest.mark.parametrize("name", IN_GGUF)
def test_any_bytes_decode_as_the_gguf_package_decodes_them(name):
    """Infinite and NaN scales included; a damaged file must not make noise either (warnings are errors here)."""
    row = mf.FORMATS[name]
    raw = np.random.default_rng(7).integers(0, 256, (500, row.block_bytes), dtype=np.uint8)
    with np.errstate(all="ignore"):
        right = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[name]).astype(np.float32).reshape(-1)
    assert np.allclose(mf.dequantize(name, raw), right, rtol=1e-6, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q8_0"])
def test_each_code_stands_where_the_format_says(name):
    """One code raised from zero moves one value: the whole order of a block, code by code."""
    row = mf.FORMATS[name]
    at = next(f.offset for f in row.fields if f.name == "qs")
    for element in range(32):
        raw = np.zeros(row.block_bytes, np.uint8)
        raw[:2] = np.frombuffer(np.float16(1).tobytes(), np.uint8)
        if name == "Q8_0":
            raw[at + element] = 1
        else:
            raw[at + element % 16] = 1 if element < 16 else 16
        values = mf.dequantize(name, raw)
        assert np.flatnonzero(values != values.min()).tolist() == [element]


def test_half_floats_exactly():
    bits = np.arange(65536, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        assert same_bits(mf.dequantize("F16", bits.view(np.uint8)), bits.view(np.float16).astype(np.float32))
    assert same_bits(mf.dequantize("BF16", bits.view(np.uint8)), (bits.astype(np.uint32) << 16).view(np.float32))


@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
def test_float32_is_copied(values):
    x = np.array(values, np.float32)
    out = mf.dequantize("F32", x.view(np.uint8))
    assert same_bits(out, x) and not np.shares_memory(out, x)


def test_any_shape_and_stride(golden):
    raw, right = golden["normal/q4_0/bytes"], golden["normal/q4_0/values"]
    assert np.array_equal(mf.dequantize("Q4_0", raw.reshape(4, -1)), right)
    spread = np.zeros((raw.size, 2), np.uint8)
    spread[:, 0] = raw
    assert np.array_equal(mf.dequantize("Q4_0", spread[:, 0]), right)
    raw = raw.copy()
    raw.flags.writeable = False
    assert np.array_equal(mf.dequantize("Q4_0", raw), right)
    assert mf.dequantize("Q4_0", np.zeros(0, np.uint8)).shape == (0,)


def test_a_row_of_two_different_blocks(golden):
    """The second block has its own scale."""
    raw = golden["normal/q8_0/bytes"]
    pair = np.concatenate([raw[:34], raw[-34:]])
    assert np.array_equal(
        mf.dequantize("Q8_0", pair), np.concatenate([mf.dequantize("Q8_0", b) for b in (raw[:34], raw[-34:])])
    )


def test_refusals():
    for raw in (np.zeros(17, np.uint8), np.zeros(18, np.int8), np.zeros(18, np.float32), np.zeros((18, 1), ">u2")):
        with pytest.raises(mf.ArgumentError, match="Q4_0"):
            mf.dequantize("Q4_0", raw)
    with pytest.raises(mf.ArgumentError, match="'Q4_X' is not a format"):
        mf.dequantize("Q4_X", np.zeros(18, np.uint8))
