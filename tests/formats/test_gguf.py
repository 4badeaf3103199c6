"""The GGUF reader: good files as the `gguf` package reads them, bad ones refused, by our own error only."""

import errno
import struct
import tracemalloc
from pathlib import Path

import gguf as reference
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minfer_lib as mf
from minfer_lib.formats.gguf import row_tensor

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)


# A file by hand: every part can be wrong on its own.


def string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str | bytes, kind: int, value: bytes) -> bytes:
    return string(key) + struct.pack("<I", kind) + value


def entry(name="t", dims=(32,), kind=0, offset=0, n_dims=None) -> bytes:
    n_dims = len(dims) if n_dims is None else n_dims
    return string(name) + struct.pack(f"<I{len(dims)}qIQ", n_dims, *dims, kind, offset)


def container(
    pairs=(), entries=(), data=b"", magic=b"GGUF", version=3, n_tensors=None, n_kv=None, alignment=32
) -> bytes:
    n_tensors = len(entries) if n_tensors is None else n_tensors
    n_kv = len(pairs) if n_kv is None else n_kv
    head = magic + struct.pack("<Iqq", version, n_tensors, n_kv) + b"".join(pairs) + b"".join(entries)
    return head + bytes(-len(head) % alignment) + data


ONE = container([pair("a", U32, bytes(4))], [entry()], bytes(128))


@pytest.fixture
def read(tmp_path):
    def read(raw: bytes):
        path = tmp_path / "x.gguf"
        path.write_bytes(raw)
        return mf.read_gguf(path)

    return read


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def array(kind: int, count: int, raw: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + raw


BAD = {
    "empty file": (b"", "0 bytes"),
    "only a magic number": (b"GGUF", "4 bytes"),
    "other magic": (container(magic=b"GGML"), "no GGUF file"),
    "version 0": (container(version=0), "version 0"),
    "version 1": (container(version=1), "version 1"),
    "version 4": (container(version=4), "version 4"),
    "big-endian 3": (container(version=3 << 24), "big-endian"),
    "big-endian 2": (container(version=2 << 24), "big-endian"),
    "negative tensor count": (container(n_tensors=-1), "tensors"),
    "negative key count": (container(n_kv=-1), "metadata keys"),
    "huge tensor count": (container(n_tensors=2**62), "tensors"),
    "huge key count": (container(n_kv=2**62), "metadata keys"),
    "one key too many": (container([pair("a", U32, bytes(4))], n_kv=2), "ends inside|empty"),
    "one tensor too many": (container(entries=[entry()], n_tensors=2, data=bytes(128)), "."),
    "empty key": (container([pair("", U32, bytes(4))]), "is empty"),
    "duplicate key": (container([pair("a", U32, bytes(4)), pair("a", F32, bytes(4))]), "'a' appears twice"),
    "key past the end": (container([struct.pack("<Q", 2**40) + b"a"]), "ends inside"),
    "key of 2^64 - 1 bytes": (container([struct.pack("<Q", 2**64 - 1) + bytes(40)]), "ends inside"),
    "value type 13": (container([pair("a", 13, bytes(8))]), "value type 13"),
    "value type 2^32 - 1": (container([pair("a", 2**32 - 1, bytes(8))]), "value type"),
    "string past the end": (container([pair("a", STRING, struct.pack("<Q", 2**30) + b"xyz")]), "ends inside"),
    "string of 2^64 - 1 bytes": (container([pair("a", STRING, struct.pack("<Q", 2**64 - 1))]), "ends inside"),
    "number past the end": (container([pair("a", U64, b"\1\2\3")], alignment=1), "ends inside"),
    "array past the end": (container([pair("a", ARRAY, array(U64, 6, bytes(40)))], alignment=1), "6 elements"),
    "array of 2^63 numbers": (container([pair("a", ARRAY, array(U8, 2**63))]), "elements"),
    "array of 2^64 - 1 strings": (container([pair("a", ARRAY, array(STRING, 2**64 - 1, bytes(80)))]), "elements"),
    "array whose size wraps around 2^64": (container([pair("a", ARRAY, array(U64, 2**61 + 1, bytes(80)))]), "elements"),
    "string in an array past the end": (
        container([pair("a", ARRAY, array(STRING, 2, string("ok") + struct.pack("<Q", 99) + b"no"))]),
        "string 1",
    ),
    "length in an array past the end": (
        container([pair("a", ARRAY, array(STRING, 2, string("0123456789") + b"\1\0\0"))], alignment=1),
        "string 1",
    ),
    "array of arrays": (container([pair("a", ARRAY, array(ARRAY, 1, array(U8, 1, b"x")))]), "array of value type 9"),
    "array of value type 13": (container([pair("a", ARRAY, array(13, 1, bytes(8)))]), "array of value type 13"),
    "alignment 0": (container([pair("general.alignment", U32, u32(0))]), "power of two"),
    "alignment 3": (container([pair("general.alignment", U32, u32(3))]), "power of two"),
    "alignment 13": (container([pair("general.alignment", U32, u32(13))]), "power of two"),
    "alignment as u64": (container([pair("general.alignment", U64, struct.pack("<Q", 32))]), "32-bit"),
    "alignment as i32": (container([pair("general.alignment", I32, u32(32))]), "32-bit"),
    "alignment as text": (container([pair("general.alignment", STRING, string("32"))]), "32-bit"),
    "name of 64 bytes": (container(entries=[entry("n" * 64)], data=bytes(128)), "64 bytes"),
    "name of 33 two-byte letters": (container(entries=[entry("ä" * 33)], data=bytes(128)), "64 bytes"),
    "name past the end": (container(entries=[struct.pack("<Q", 2**60) + bytes(24)]), "ends inside"),
    "duplicate tensor": (container(entries=[entry(), entry(offset=128)], data=bytes(256)), "'t' appears twice"),
    "five dimensions": (container(entries=[entry(dims=(32, 1, 1, 1, 1))], data=bytes(128)), "5 dimensions"),
    "2^32 - 1 dimensions": (container(entries=[entry(n_dims=2**32 - 1)], data=bytes(128)), "dimensions"),
    "negative dimension": (container(entries=[entry(dims=(32, -1))], data=bytes(128)), "impossible"),
    "two negative dimensions": (container(entries=[entry(dims=(-32, -1))], data=bytes(128)), "impossible"),
    "product of 2^63": (container(entries=[entry(dims=(2**31, 2**32))], data=bytes(128)), "impossible"),
    "product that wraps to 0": (container(entries=[entry(dims=(2**32, 2**32))], data=bytes(128)), "impossible"),
    "bytes beyond 2^63": (container(entries=[entry(dims=(2**62,))], data=bytes(128)), "truncated"),
    "type 43": (container(entries=[entry(kind=43)], data=bytes(128)), "type 43"),
    "type 2^32 - 1": (container(entries=[entry(kind=2**32 - 1)], data=bytes(128)), "ggml type"),
    "rows of part of a block": (container(entries=[entry(dims=(33,), kind=2)], data=bytes(128)), "whole number"),
    "rows of half a super-block": (container(entries=[entry(dims=(128, 2), kind=12)], data=bytes(144)), "whole number"),
    "no dimensions, but blocks": (container(entries=[entry(dims=(), kind=8)], data=bytes(128)), "whole number"),
    "gap": (container(entries=[entry(), entry("u", offset=160)], data=bytes(320)), "offset 160"),
    "overlap": (container(entries=[entry(), entry("u", offset=96)], data=bytes(256)), "offset 96"),
    "first does not begin at 0": (container(entries=[entry(offset=32)], data=bytes(160)), "offset 32"),
    "out of order": (container(entries=[entry(offset=128), entry("u", offset=0)], data=bytes(256)), "offset 128"),
    "offset 2^64 - 1": (container(entries=[entry(offset=2**64 - 1)], data=bytes(128)), "offset"),
    "one byte short": (container(entries=[entry()], data=bytes(127)), "truncated"),
    "no data": (container(entries=[entry()]), "truncated"),
    "alignment 2^31, data elsewhere": (
        container([pair("general.alignment", U32, u32(2**31))], [entry()], bytes(128)),
        "truncated",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_file(read, case):
    raw, says = BAD[case]
    with pytest.raises(mf.GgufError, match=says) as caught:
        read(raw)
    assert "x.gguf" in str(caught.value)


@pytest.mark.parametrize("kind", [4, 5, 31, 32, 33, 36, 37, 38])
def test_types_that_ggml_removed_do_not_exist(read, kind):
    with pytest.raises(mf.GgufError, match=f"ggml type {kind}"):
        read(container(entries=[entry(dims=(256,), kind=kind)], data=bytes(4096)))


@pytest.mark.parametrize(("kind", "name"), [(23, "IQ4_XS"), (39, "MXFP4"), (16, "IQ2_XXS"), (24, "I8"), (34, "TQ1_0")])
def test_types_without_a_decoder_are_refused_by_name(read, kind, name):
    with pytest.raises(mf.UnsupportedError, match=f"'t' is stored as {name}.*Q8_0"):
        read(container(entries=[entry(dims=(256,), kind=kind)], data=bytes(4096)))


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(mf.ModelMissingError, match="nothing.gguf"):
        mf.read_gguf(tmp_path / "nothing.gguf")
    with pytest.raises(mf.ModelMissingError):
        mf.read_gguf(tmp_path)


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    path = tmp_path / "x.gguf"
    path.write_bytes(ONE)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(mf.GgufError, match="x.gguf.*Permission denied"):
        mf.read_gguf(path)


def test_a_path_that_cannot_be_one():
    for path in ("n" * 5000, "a\0b", ""):
        with pytest.raises(mf.MinferError):
            mf.read_gguf(path)


# What is allowed


def test_version_2_reads_as_3(read):
    assert read(container([pair("a", U32, u32(7))], version=2)).metadata == {"a": 7}


def test_every_kind_of_value(read):
    numbers = {
        "B": (U8, 255), "b": (I8, -128), "H": (U16, 65535), "h": (I16, -32768), "I": (U32, 2**32 - 1),
        "i": (I32, -(2**31)), "Q": (U64, 2**64 - 1), "q": (I64, -(2**63)), "f": (F32, 0.5), "d": (F64, 0.1),
        "?": (BOOL, True),
    }  # fmt: skip
    pairs = [pair(code, kind, struct.pack(f"<{code}", value)) for code, (kind, value) in numbers.items()]
    arrays = [
        pair(f"{code}s", ARRAY, array(kind, 2, struct.pack(f"<{code}", value) * 2))
        for code, (kind, value) in numbers.items()
    ]
    texts = [
        pair("s", STRING, string("grüß\n")),
        pair("ss", ARRAY, array(STRING, 3, string("a") + string("") + string("ü"))),
    ]
    metadata = read(container([*pairs, *arrays, *texts])).metadata
    for code, (_, value) in numbers.items():
        assert metadata[code] == value and type(metadata[code]) is type(value)
        assert metadata[f"{code}s"] == [value, value] and type(metadata[f"{code}s"][0]) is type(value)
    assert metadata["s"] == "grüß\n" and metadata["ss"] == ["a", "", "ü"]


def test_empty_arrays(read):
    pairs = [pair("none", ARRAY, array(STRING, 0)), pair("zero", ARRAY, array(F32, 0))]
    assert read(container(pairs)).metadata == {"none": [], "zero": []}


def test_bytes_that_are_not_utf8_survive(read):
    metadata = read(
        container([pair(b"k\xff", STRING, string(b"\xf0\x9f")), pair("l", ARRAY, array(STRING, 1, string(b"\x80")))])
    ).metadata
    (key, value), (_, values) = metadata.items()
    assert [text.encode("utf-8", "surrogateescape") for text in (key, value, *values)] == [
        b"k\xff",
        b"\xf0\x9f",
        b"\x80",
    ]


def test_a_file_without_tensors(read):
    file = read(container([pair("a", STRING, string("b"))]))
    assert file.tensors == {} and file.metadata == {"a": "b"}
    assert read(container(alignment=1)).metadata == {}  # 24 bytes: the shortest there is


def test_zero_dimensions_and_dimensions_of_zero(read):
    entries = [entry("scalar", ()), entry("empty", (32, 0), 8, 32), entry("last", (32,), 8, 32)]
    tensors = read(container(entries=entries, data=bytes(32 + 34))).tensors  # and the last one's padding is missing
    assert tensors["scalar"].shape == () and tensors["scalar"].data.size == 4
    assert tensors["empty"].shape == (0, 32) and tensors["empty"].data.size == 0
    assert tensors["last"].data.size == 34


def test_shape_is_outermost_first_and_data_is_the_files_own_bytes(read):
    data = bytes(range(72)) + bytes(24) + bytes(range(100, 104))
    file = read(container(entries=[entry("m", (64, 2), 2), entry("v", (1,), 0, 96)], data=data))
    m, v = file.tensors["m"], file.tensors["v"]
    assert (m.shape, m.format, v.shape, v.format) == ((2, 64), "Q4_0", (1,), "F32")
    assert bytes(m.data) == data[:72] and bytes(v.data) == data[96:]
    assert bytes(file.bytes[m.offset : m.offset + 72]) == data[:72]
    assert bytes(row_tensor(m)[1]) == data[36:72]
    with pytest.raises(mf.ArgumentError, match="'v'"):
        row_tensor(v)


@pytest.mark.parametrize("alignment", [1, 2, 8, 64, 1024])
def test_alignment(read, alignment):
    data = b"\1" * 34 + bytes(-34 % alignment) + b"\2" * 34
    entries = [entry("a", (32,), 8), entry("b", (32,), 8, len(data) - 34)]
    pairs = [pair("general.alignment", U32, u32(alignment))]
    tensors = read(container(pairs, entries, data, alignment=alignment)).tensors
    assert set(tensors["a"].data) == {1} and set(tensors["b"].data) == {2}


def test_the_map_cannot_be_written_and_survives_close(read):
    file = read(ONE)
    data = file.tensors["t"].data
    with pytest.raises(ValueError, match="read-only"):
        data[0] = 1
    with file:
        pass
    assert file.tensors == {} and file.bytes.size == 0
    assert bytes(data) == bytes(128)
    file.close()


def test_names_of_63_bytes_and_unicode(read):
    assert "n" * 63 in read(container(entries=[entry("n" * 63)], data=bytes(128))).tensors
    assert "ä" in read(container(entries=[entry("ä")], data=bytes(128))).tensors


# Beside the gguf package


def assert_same_as_reference(path):
    ours, theirs = mf.read_gguf(path), reference.GGUFReader(path)
    fields = {key: field.contents() for key, field in theirs.fields.items() if not key.startswith("GGUF.")}
    assert list(ours.metadata) == list(fields)
    for key, value in fields.items():
        assert ours.metadata[key] == value, key
    assert list(ours.tensors) == [tensor.name for tensor in theirs.tensors]
    for tensor in theirs.tensors:
        mine = ours.tensors[tensor.name]
        assert mine.shape == tuple(reversed(tensor.shape.tolist())), tensor.name
        assert mine.format == tensor.tensor_type.name
        assert mine.offset == tensor.data_offset
        assert np.array_equal(mine.data, tensor.data.view(np.uint8).reshape(-1))


@pytest.mark.parametrize("format_", ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0"])
def test_tiny_models_read_as_the_gguf_package_reads_them(tiny, format_):
    assert_same_as_reference(tiny(format=format_, rope_freqs=True, alignment=64))


def test_the_real_model_reads_as_the_gguf_package_reads_it(smollm2):
    assert_same_as_reference(smollm2)


# Damage anywhere


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A whole file of about a kilobyte that has a bit of everything."""
    path = tmp_path_factory.mktemp("small") / "small.gguf"
    writer = reference.GGUFWriter(path, "llama")
    writer.add_uint32("n", 7)
    writer.add_array("words", ["a", "bc", ""])
    writer.add_array("numbers", [1, 2, 3])
    writer.add_float64("x", 0.5)
    writer.add_bool("yes", True)
    writer.add_custom_alignment(32)
    rng = np.random.default_rng(0)
    for name, kind in (("f", "F32"), ("q", "Q4_0"), ("b", "BF16"), ("e", "Q8_0")):
        kind = reference.GGMLQuantizationType[kind]
        values = rng.standard_normal((3, 32)).astype(np.float32)
        writer.add_tensor(name, reference.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def load_or_refuse(path, raw):
    path.write_bytes(raw)
    try:
        file = mf.read_gguf(path)
    except mf.MinferError:
        return None
    for tensor in file.tensors.values():
        assert tensor.data.size == mf.FORMATS[tensor.format].row_bytes(int(np.prod(tensor.shape, dtype=object)))
        assert 0 <= tensor.offset and tensor.offset + tensor.data.size <= len(raw)
    return file


def test_truncation_at_every_byte(small, tmp_path):
    assert load_or_refuse(tmp_path / "x.gguf", small).tensors.keys() == {"f", "q", "b", "e"}
    last = max(n for n in range(len(small)) if load_or_refuse(tmp_path / "x.gguf", small[:n]) is None)
    assert last >= len(small) - 32, "what is missing at the end is at most padding"


def test_every_byte_of_the_head_changed(small, tmp_path):
    for at in range(small.index(b"general.alignment") + 200):
        for flip in (1, 0x80, 0xFF):
            raw = bytearray(small)
            raw[at] ^= flip
            load_or_refuse(tmp_path / "x.gguf", raw)


@settings(max_examples=300)
@given(data=st.data())
def test_damage_anywhere_is_refused_or_harmless(small, tmp_path, data):
    raw = bytearray(small)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        new = data.draw(
            st.binary(min_size=1, max_size=8) | st.sampled_from([bytes(8), b"\xff" * 8, b"\xff" * 7 + b"\x7f"])
        )
        raw[at : at + len(new)] = new
    load_or_refuse(tmp_path / "x.gguf", raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw)


@given(raw=st.binary(max_size=200))
def test_noise_after_the_magic_number(tmp_path, raw):
    load_or_refuse(tmp_path / "x.gguf", b"GGUF\3\0\0\0" + raw)


def test_no_claim_in_the_file_takes_memory(read):
    """The claims of the bad files above reach 2^63 elements; reading them stays within a few hundred kilobytes."""
    tracemalloc.start()
    try:
        for raw, _ in BAD.values():
            with pytest.raises(mf.GgufError):
                read(raw)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
