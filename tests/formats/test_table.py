"""The table of formats, against ggml's sizes as the `gguf` package lists them and against the documented fields."""

import gguf
import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.formats.table import BY_TYPE_ID, format_of_type

IN_FILES = [name for name, row in mf.FORMATS.items() if row.type_id is not None]

FIELDS = {  # name: (field, offset, dtype, count) …
    "Q4_0": [("d", 0, "<f2", 1), ("qs", 2, "u1", 16)],
    "Q4_1": [("d", 0, "<f2", 1), ("m", 2, "<f2", 1), ("qs", 4, "u1", 16)],
    "Q5_0": [("d", 0, "<f2", 1), ("qh", 2, "<u4", 1), ("qs", 6, "u1", 16)],
    "Q5_1": [("d", 0, "<f2", 1), ("m", 2, "<f2", 1), ("qh", 4, "<u4", 1), ("qs", 8, "u1", 16)],
    "IQ4_NL": [("d", 0, "<f2", 1), ("qs", 2, "u1", 16)],
    "Q8_0": [("d", 0, "<f2", 1), ("qs", 2, "i1", 32)],
    "Q8_1": [("d", 0, "<f2", 1), ("s", 2, "<f2", 1), ("qs", 4, "i1", 32)],
    "Q2_K": [("scales", 0, "u1", 16), ("qs", 16, "u1", 64), ("d", 80, "<f2", 1), ("dmin", 82, "<f2", 1)],
    "Q3_K": [("hmask", 0, "u1", 32), ("qs", 32, "u1", 64), ("scales", 96, "u1", 12), ("d", 108, "<f2", 1)],
    "Q4_K": [("d", 0, "<f2", 1), ("dmin", 2, "<f2", 1), ("scales", 4, "u1", 12), ("qs", 16, "u1", 128)],
    "Q5_K": [
        ("d", 0, "<f2", 1), ("dmin", 2, "<f2", 1), ("scales", 4, "u1", 12), ("qh", 16, "u1", 32), ("qs", 48, "u1", 128),
    ],
    "Q6_K": [("ql", 0, "u1", 128), ("qh", 128, "u1", 64), ("scales", 192, "i1", 16), ("d", 208, "<f2", 1)],
    "Q8_K": [("d", 0, "<f2", 1), ("qs", 2, "i1", 256), ("zero", 258, "u1", 16), ("bsums", 274, "<i2", 16)],
    "Q8_K_GGML": [("d", 0, "<f4", 1), ("qs", 4, "i1", 256), ("bsums", 260, "<i2", 16)],
    "Q8_0_PAD40": [("d", 0, "<f2", 1), ("zero", 2, "u1", 2), ("qs", 4, "i1", 32), ("sum", 36, "<i4", 1)],
}  # fmt: skip


@pytest.mark.parametrize("name", IN_FILES)
def test_sizes_are_ggmls(name):
    row = mf.FORMATS[name]
    kind = gguf.GGMLQuantizationType(row.type_id)
    assert kind.name == ("Q8_K" if name == "Q8_K_GGML" else name)
    right = (32, 36) if name == "Q8_1" else gguf.GGML_QUANT_SIZES[kind]  # the package has 40: two float32 scales
    assert (row.block_values, row.block_bytes) == right


@pytest.mark.parametrize("name", FIELDS)
def test_fields(name):
    row = mf.FORMATS[name]
    assert [f[:4] for f in row.fields] == [(n, at, np.dtype(dtype), count) for n, at, dtype, count in FIELDS[name]]


@pytest.mark.parametrize("name", mf.FORMATS)
def test_record_dtype_reads_each_field_at_its_offset(name):
    row = mf.FORMATS[name]
    assert row.name == name and row.dtype.itemsize == row.block_bytes
    raw = np.random.default_rng(0).integers(0, 256, (3, row.block_bytes), dtype=np.uint8)
    blocks = raw.reshape(-1).view(row.dtype)
    for field in row.fields:
        part = raw[:, field.offset : field.offset + field.count * field.dtype.itemsize]
        assert blocks[field.name].tobytes() == part.tobytes(), field.name
    assert sum(f.count * f.dtype.itemsize for f in row.fields) == row.block_bytes


def test_activation_partners():
    by_partner = {}
    for name, row in mf.FORMATS.items():
        by_partner.setdefault(row.activation, set()).add(name)
    assert by_partner["Q8_0"] == {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL"}
    assert by_partner["Q8_K"] == {"Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"}
    assert by_partner[None] == {"F32", "F16", "BF16", "Q8_1", "Q8_K", "Q8_K_GGML", "Q8_0_PAD40"}


def test_sizes_of_rows():
    assert mf.FORMATS["Q4_0"].bits_per_weight == 4.5
    assert mf.FORMATS["Q6_K"].bits_per_weight == 6.5625
    assert mf.FORMATS["Q4_0"].row_bytes(896) == 504
    assert mf.FORMATS["Q8_K"].row_bytes(512) == 612
    assert mf.FORMATS["BF16"].row_bytes(5) == 10


def test_every_type_of_ggml_is_known_by_name():
    for kind in gguf.GGMLQuantizationType:
        if kind.value in BY_TYPE_ID:
            assert format_of_type(kind.value, "x").type_id == kind.value
        else:
            with pytest.raises(mf.UnsupportedError, match=f"x is stored as {kind.name} "):
                format_of_type(kind.value, "x")


def test_an_id_that_does_not_exist():
    known = {kind.value for kind in gguf.GGMLQuantizationType}
    for type_id in {*range(60), 2**31, 2**32 - 1} - known - {40, 41, 42}:
        with pytest.raises(mf.GgufError, match=f"type {type_id}"):
            format_of_type(type_id, "x")
