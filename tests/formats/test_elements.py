"""The map from bits to values, held against the decoder: flip a bit, and exactly the values it names change."""

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.formats.elements import field_of, layout, number
from minfer_lib.formats.packing import unpack, unpack_scales_mins

ALL = list(mf.FORMATS)
TRIES = 12  # random blocks a bit: a code that is 0 hides its scale, but not in all of them


def random_block(name: str, rng: np.random.Generator) -> np.ndarray:
    """Arbitrary bytes, but scales of ordinary size: none of them hides another."""
    row = mf.FORMATS[name]
    raw = rng.integers(0, 256, row.block_bytes, dtype=np.uint8)
    block = raw.view(row.dtype)
    for field in row.fields:
        if field.name in ("d", "dmin", "m") or row.block_values == 1:
            values = rng.uniform(0.5, 4, block[field.name].shape)
            block[field.name] = values if field.dtype.kind == "f" else (values * 4000).astype(field.dtype)
    return raw


@pytest.mark.parametrize("name", ALL)
def test_every_byte_is_cut_into_parts_that_fill_it(name):
    row = mf.FORMATS[name]
    assert len(layout(name)) == row.block_bytes
    for byte, parts in enumerate(layout(name)):
        bits = [bit for part in parts for bit in range(part.low, part.low + part.n_bits)]
        assert bits == list(range(8)), byte
        for part in parts:
            assert set(part.elements) | set(part.of) <= set(range(row.block_values))


@pytest.mark.parametrize("name", ALL)
def test_every_number_is_there_once_and_whole(name):
    """Its pieces do not overlap and leave no bit out; every value has one code of as many bits as the format says."""
    bits = {}
    for parts in layout(name):
        for part in parts:
            bits.setdefault((part.number, part.index), []).extend(range(part.shift, part.shift + part.n_bits))
    for key, found in bits.items():
        assert sorted(found) == list(range(len(found))), key
    codes = {key[1]: len(found) for key, found in bits.items() if key[0] in ("code", "value")}
    assert sorted(codes) == list(range(mf.FORMATS[name].block_values))
    if name[0] == "Q":
        assert set(codes.values()) == {int(name[1])}


@pytest.mark.parametrize("name", ALL)
def test_a_flipped_bit_changes_exactly_the_values_it_names(name):
    rng = np.random.default_rng(3)
    blocks = [random_block(name, rng) for _ in range(TRIES)]
    before = [mf.dequantize(name, raw) for raw in blocks]
    for byte, parts in enumerate(layout(name)):
        for part in parts:
            for bit in range(part.low, part.low + part.n_bits):
                changed = set()
                for raw, values in zip(blocks, before, strict=True):
                    flipped = raw.copy()
                    flipped[byte] ^= 1 << bit
                    after = mf.dequantize(name, flipped)
                    moved = set(np.flatnonzero(after.view(np.uint32) != values.view(np.uint32)).tolist())
                    assert moved <= set(part.elements), f"byte {byte}, bit {bit} moves more than it names"
                    changed |= moved
                assert changed == set(part.elements), f"byte {byte}, bit {bit}"


@pytest.mark.parametrize("name", [name for name in ALL if mf.FORMATS[name].block_values > 1])
def test_sums_are_sums_of_what_they_name(name):
    """Quantized activations carry sums of their codes: of exactly the elements that the map gives."""
    x = np.random.default_rng(5).normal(0, 1, 256).astype(np.float32)
    sums = {(p.number, p.index): p for parts in layout(name) for p in parts if p.of}
    if not sums:
        assert not {"bsums", "sum", "s"} & {f.name for f in mf.FORMATS[name].fields}
        return
    make = mf.quantize if name in ("Q8_1", "Q8_K_GGML") else mf.quantize_activations
    raw = make(name, x)[: mf.FORMATS[name].block_bytes]
    codes = raw.view(mf.FORMATS[name].dtype)["qs"][0].astype(int)
    d = float(raw.view(mf.FORMATS[name].dtype)["d"][0])
    for part in sums.values():
        expected = codes[list(part.of)].sum()
        if part.number == "s":  # an f16: d times the sum
            got = np.array([number(name, raw, part)], np.uint16).view(np.float16)[0]
            assert got == pytest.approx(d * expected, rel=1e-2)
        else:
            assert number(name, raw, part) == expected


@pytest.mark.parametrize("name", ["Q4_K", "Q5_K"])
def test_scales_and_mins_are_put_together_as_the_decoder_does(name):
    raw = random_block(name, np.random.default_rng(6))
    scales, mins = unpack_scales_mins(raw.view(mf.FORMATS[name].dtype)["scales"])
    for parts in layout(name):
        for part in parts:
            if part.number in ("scale", "min"):
                assert number(name, raw, part) == {"scale": scales, "min": mins}[part.number][0, part.index]


def test_codes_are_put_together_as_the_decoder_does():
    raw = random_block("Q6_K", np.random.default_rng(7))
    block = raw.view(mf.FORMATS["Q6_K"].dtype)
    codes = unpack(block["ql"], 64, 4)[0] | unpack(block["qh"], 32, 2)[0] << 4
    for parts in layout("Q6_K"):
        for part in parts:
            if part.number == "code":
                assert number("Q6_K", raw, part) == codes[part.index]
            elif part.number == "scale":
                assert number("Q6_K", raw, part) == block["scales"][0, part.index]


def test_the_fields_are_those_of_the_table():
    assert [field_of("Q4_0", byte).name for byte in (0, 1, 2, 17)] == ["d", "d", "qs", "qs"]
    assert field_of("Q6_K", 209).name == "d"
    with pytest.raises(StopIteration):
        field_of("Q6_K", 210)
