"""A GGUF file like another one, with other tensor formats: the metadata is copied byte for byte.

The layout is the one that `gguf.py` reads; source: ggml `gguf.cpp`, gguf_write_out.
"""

from __future__ import annotations

import math
import os
import struct
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.formats.gguf import Gguf, Tensor, aligned, alignment_of
from minfer_lib.formats.table import FORMATS

_U32 = 4  # the value type of an unsigned 32-bit number


def write_gguf(
    path: Path,
    source: Gguf,
    numbers: Mapping[str, int],
    dropped: Iterable[str],
    tensors: list[tuple[Tensor, str]],
    chunks: Iterable[np.ndarray],
) -> None:
    """Write `source`'s metadata, less the keys in `dropped`, and with `numbers` (u32) at its end; then the tensors.

    tensors: (one of the source's, for name and shape; the format it gets), in file order; chunks: uint8 arrays, the
    bytes of all tensors in that order, cut wherever they are. The file gets its name in one step when it is complete.
    Raises ArgumentError if it cannot be written.
    """
    alignment = alignment_of(source.metadata)
    try:
        with tempfile.TemporaryDirectory(prefix=".writing-", dir=path.parent) as temp:
            part = Path(temp) / path.name
            with part.open("wb") as file:
                file.write(_head(source, numbers, {*dropped, *numbers}, tensors, alignment))
                _write_tensors(file, [_n_bytes(tensor, format_) for tensor, format_ in tensors], chunks, alignment)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
    except OSError as error:
        raise ArgumentError(f"{path} could not be written: {error.strerror or error}.") from error


def _n_bytes(tensor: Tensor, format_: str) -> int:
    return FORMATS[format_].row_bytes(math.prod(tensor.shape))


def _head(source: Gguf, numbers: Mapping[str, int], without: set[str], tensors: list, alignment: int) -> bytes:
    """Everything before the first tensor's bytes."""
    pairs = [source.bytes[where].tobytes() for key, where in source.pairs.items() if key not in without]
    pairs += [_string(key) + struct.pack("<II", _U32, value) for key, value in numbers.items()]
    entries, offset = [], 0
    for tensor, format_ in tensors:
        dims = tensor.shape[::-1]  # innermost first
        entries.append(
            _string(tensor.name) + struct.pack(f"<I{len(dims)}qIQ", len(dims), *dims, FORMATS[format_].type_id, offset)
        )
        offset += aligned(_n_bytes(tensor, format_), alignment)
    head = b"GGUF" + struct.pack("<Iqq", 3, len(entries), len(pairs)) + b"".join(pairs + entries)
    return head.ljust(aligned(len(head), alignment), b"\0")


def _string(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(raw)) + raw


def _write_tensors(file, sizes: list[int], chunks: Iterable[np.ndarray], alignment: int) -> None:
    """The chunks one after the other, and zeros after each tensor up to the next aligned byte."""
    chunks = iter(chunks)
    for size in sizes:
        written = 0
        while written < size:
            written += file.write(next(chunks))
        file.write(bytes(aligned(size, alignment) - size))
