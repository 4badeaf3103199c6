"""The GGUF container: map the file, check every size, name the tensors. No tensor byte is copied.

    "GGUF"  u32 version  i64 n_tensors  i64 n_kv | key, type, value … | name, n_dims, dims, type, offset … | pad | data

Source: ggml `gguf.cpp` (gguf_init_from_file_impl), whose checks are repeated here in the same order, and the bounds
check of every tensor that `llama-model-loader.cpp` adds.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from minfer_lib.errors import ArgumentError, GgufError, ModelMissingError
from minfer_lib.formats.table import FORMATS, format_of_type

_SCALARS = {  # value type in the file -> numpy dtype; 8 is a string, 9 an array
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
_SCALARS = {type_id: np.dtype(dtype) for type_id, dtype in _SCALARS.items()}
_STRING, _ARRAY = 8, 9
_U64 = struct.Struct("<Q").unpack_from


@dataclass(frozen=True)
class Tensor:
    """A matrix or vector inside a mapped GGUF file."""

    name: str
    format: str  # a key of FORMATS
    shape: tuple[int, ...]  # outermost first: [n_out, n_in]
    offset: int  # of its first byte in the file
    data: np.ndarray  # uint8, read-only view of the file's own bytes


class Gguf:
    """A mapped file: `.metadata` (plain Python values), `.tensors` (name -> Tensor), `.bytes` (the whole map).

    `.pairs` says where each metadata key, with its value, lies in `.bytes`: who copies a file copies those as they are.
    """

    def __init__(
        self,
        path: Path,
        version: int,
        metadata: dict[str, Any],
        pairs: dict[str, slice],
        tensors: dict[str, Tensor],
        map_: np.ndarray,
    ):
        self.path, self.version, self.metadata, self.pairs = path, version, metadata, pairs
        self.tensors, self.bytes = tensors, map_

    def close(self) -> None:
        """Forget the map. The memory goes back as soon as the last array that views it is gone."""
        self.tensors, self.bytes = {}, np.zeros(0, np.uint8)

    def __enter__(self) -> Gguf:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Gguf({self.path.name!r}, {len(self.metadata)} metadata keys, {len(self.tensors)} tensors)"


class _Cursor:
    """Reads forward through the file's head; GgufError where the file ends before the value does."""

    def __init__(self, buffer: mmap.mmap) -> None:
        self.buffer, self.at, self.size = buffer, 0, len(buffer)

    def take(self, n: int, what: str) -> int:
        """Step over n bytes; where they began."""
        if n > self.size - self.at:
            raise GgufError(f"the file ends inside {what}: {n} bytes wanted at byte {self.at} of {self.size}.")
        self.at += n
        return self.at - n

    def scalar(self, dtype: np.dtype, what: str) -> Any:
        start = self.take(dtype.itemsize, what)
        return np.frombuffer(self.buffer, dtype, 1, start)[0].item()

    def u32(self, what: str) -> int:
        return struct.unpack_from("<I", self.buffer, self.take(4, what))[0]

    def i64(self, what: str) -> int:
        return struct.unpack_from("<q", self.buffer, self.take(8, what))[0]

    def u64(self, what: str) -> int:
        return _U64(self.buffer, self.take(8, what))[0]

    def string(self, what: str) -> str:
        n = self.u64(what)
        start = self.take(n, what)
        return self.buffer[start : start + n].decode("utf-8", "surrogateescape")

    def strings(self, count: int, what: str) -> list[str]:
        """The hot loop of a vocabulary: 100,000 of them in every file, so no call a string."""
        buffer, at, size, out = self.buffer, self.at, self.size, []
        try:
            for _ in range(count):
                end = at + 8 + _U64(buffer, at)[0]
                if end > size:
                    raise GgufError(f"the file ends inside {what}, in string {len(out)} at byte {at}.")
                out.append(buffer[at + 8 : end].decode("utf-8", "surrogateescape"))
                at = end
        except struct.error:
            raise GgufError(f"the file ends inside {what}, in string {len(out)} at byte {at}.") from None
        self.at = at
        return out

    def value(self, type_id: int, what: str) -> Any:
        if type_id in _SCALARS:
            return self.scalar(_SCALARS[type_id], what)
        if type_id == _STRING:
            return self.string(what)
        if type_id == _ARRAY:
            return self.array(what)
        raise GgufError(f"{what} has value type {type_id}, which does not exist.")

    def array(self, what: str) -> list:
        type_id, count = self.u32(what), self.u64(what)
        if type_id != _STRING and type_id not in _SCALARS:
            raise GgufError(f"{what} is an array of value type {type_id}; only numbers, bools and strings are allowed.")
        least = 8 if type_id == _STRING else _SCALARS[type_id].itemsize
        if count * least > self.size - self.at:
            raise GgufError(f"{what} claims {count} elements, more than the {self.size - self.at} bytes left can hold.")
        if type_id == _STRING:
            return self.strings(count, what)
        return np.frombuffer(self.buffer, _SCALARS[type_id], count, self.take(count * least, what)).tolist()


def read_gguf(path: str | Path) -> Gguf:
    """Map the GGUF file at `path`, version 2 or 3, with or without tensors.

    Raises ModelMissingError (no such file), GgufError (damaged, or the system refuses to read it), UnsupportedError (a
    tensor type without a decoder).
    """
    path = Path(path)
    try:
        buffer = _map_file(path)
    except OSError as error:
        raise GgufError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        return Gguf(path, *_parse(buffer))
    except GgufError as error:
        raise GgufError(f"{path}: {error}") from None


def _map_file(path: Path) -> mmap.mmap:
    if not path.is_file():
        raise ModelMissingError(f"there is no file {path}. `minfer fetch` brings the default model.")
    with path.open("rb") as file:
        if path.stat().st_size < 24:
            raise GgufError(f"{path} has {path.stat().st_size} bytes; a GGUF file has at least 24.")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _parse(buffer: mmap.mmap) -> tuple[int, dict, dict, dict, np.ndarray]:
    cursor = _Cursor(buffer)
    version = _version(cursor)
    n_tensors, n_kv = cursor.i64("the header"), cursor.i64("the header")
    # a pair is at least 13 bytes and a tensor's entry 24: a larger count is damage, found before any loop over it
    for count, least, what in ((n_tensors, 24, "tensors"), (n_kv, 13, "metadata keys")):
        if not 0 <= count <= cursor.size // least:
            raise GgufError(f"the header claims {count} {what}, which do not fit into {cursor.size} bytes.")
    metadata, pairs = _metadata(cursor, n_kv)
    alignment = alignment_of(metadata)
    entries = [_tensor_entry(cursor, i) for i in range(n_tensors)]
    map_ = np.frombuffer(buffer, np.uint8)
    tensors = _place(entries, aligned(cursor.at, alignment), alignment, map_)
    return version, metadata, pairs, tensors, map_


def _version(cursor: _Cursor) -> int:
    start = cursor.take(4, "the magic number")
    magic = cursor.buffer[start : start + 4]
    if magic != b"GGUF":
        raise GgufError(f"the file starts with {magic!r}, not b'GGUF': this is no GGUF file.")
    version = cursor.u32("the version")
    if version and version & 0xFFFF == 0:
        raise GgufError("the file is big-endian; this reader takes little-endian files.")
    if version not in (2, 3):
        raise GgufError(f"GGUF version {version} is not readable here; versions 2 and 3 are. Convert the model again.")
    return version


def _metadata(cursor: _Cursor, n_kv: int) -> tuple[dict[str, Any], dict[str, slice]]:
    metadata: dict[str, Any] = {}
    pairs: dict[str, slice] = {}
    for i in range(n_kv):
        start = cursor.at
        key = cursor.string(f"metadata key {i}")
        if not key:
            raise GgufError(f"metadata key {i} is empty.")
        if key in metadata:
            raise GgufError(f"metadata key {key!r} appears twice.")
        type_id = cursor.u32(key)
        metadata[key] = cursor.value(type_id, f"metadata {key!r}")
        pairs[key] = slice(start, cursor.at)
        if key == "general.alignment" and type_id != 4:
            raise GgufError(f"general.alignment has value type {type_id}; it must be an unsigned 32-bit number.")
    return metadata, pairs


def aligned(n_bytes: int, alignment: int) -> int:
    """n_bytes rounded up to a multiple of the alignment."""
    return -(-n_bytes // alignment) * alignment


def alignment_of(metadata: dict[str, Any]) -> int:
    """What the positions of tensors are multiples of. GgufError unless it is a power of two."""
    alignment = metadata.get("general.alignment", 32)
    if alignment <= 0 or alignment & (alignment - 1):
        raise GgufError(f"general.alignment is {alignment}; it must be a power of two.")
    return alignment


def _tensor_entry(cursor: _Cursor, i: int) -> tuple[str, str, tuple[int, ...], int, int]:
    """(name, format, shape outermost first, bytes, offset from the start of the data)."""
    name = cursor.string(f"the name of tensor {i}")
    if len(name.encode("utf-8", "surrogateescape")) >= 64:
        raise GgufError(f"the name of tensor {i}, {name[:40]!r}…, has 64 bytes or more.")
    where = f"tensor {name!r}"
    n_dims = cursor.u32(where)
    if n_dims > 4:
        raise GgufError(f"{where} has {n_dims} dimensions; at most 4 are allowed.")
    dims = [cursor.i64(where) for _ in range(n_dims)]  # innermost first
    row = format_of_type(cursor.u32(where), where)
    n_values = 1
    for dim in dims:
        n_values *= dim
        if dim < 0 or n_values >= 2**63:
            raise GgufError(f"{where} has the impossible dimensions {dims}.")
    if n_dims and dims[0] % row.block_values or not n_dims and row.block_values > 1:
        raise GgufError(f"{where}: rows of {dims[:1]} values are not a whole number of {row.name} blocks.")
    return name, row.name, tuple(reversed(dims)), row.row_bytes(n_values), cursor.u64(where)


def _place(entries: list[tuple], data_start: int, alignment: int, map_: np.ndarray) -> dict[str, Tensor]:
    """Tensors by name. Each must begin where the one before it, padded, ends: no gap, no overlap, no reordering."""
    tensors: dict[str, Tensor] = {}
    expected = 0
    for name, format_, shape, n_bytes, offset in entries:
        if name in tensors:
            raise GgufError(f"tensor {name!r} appears twice.")
        if offset != expected:
            raise GgufError(f"tensor {name!r} has offset {offset}; the tensors before it end at {expected}.")
        start = data_start + offset
        if start + n_bytes > map_.size:
            raise GgufError(
                f"tensor {name!r} needs bytes {start} to {start + n_bytes}, but the file has {map_.size}: "
                "it is truncated. Fetch or copy it again."
            )
        tensors[name] = Tensor(name, format_, shape, start, map_[start : start + n_bytes])
        expected += aligned(n_bytes, alignment)
    return tensors


def row_tensor(tensor: Tensor) -> np.ndarray:
    """uint8[n_rows, row_bytes]: a matrix's bytes, one row of blocks a line. ArgumentError for other dimensions."""
    if len(tensor.shape) != 2:
        raise ArgumentError(f"tensor {tensor.name!r} has shape {tensor.shape}; a matrix has 2 dimensions.")
    n_rows, n_values = tensor.shape
    return tensor.data.reshape(n_rows, FORMATS[tensor.format].row_bytes(n_values))
