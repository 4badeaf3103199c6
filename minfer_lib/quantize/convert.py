"""A whole GGUF file -> another preset: what `minfer quantize` does.

Every tensor is decoded and quantized a few rows at a time, so that memory stays small, and on several threads: no block
depends on another one, so the bytes do not depend on how the rows are cut. Source: llama.cpp `llama-quant.cpp`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.formats.decode import dequantize
from minfer_lib.formats.gguf import Tensor, read_gguf
from minfer_lib.formats.gguf_writer import write_gguf
from minfer_lib.formats.table import FORMATS
from minfer_lib.quantize.api import quantize
from minfer_lib.quantize.preset import PRESETS, tensor_formats

CHUNK = 1 << 17  # values that one thread converts at a time
_QUANTIZATION_VERSION = 2  # of the block layouts: ggml's GGML_QNT_VERSION


def quantize_gguf(
    source: str | Path,
    target: str | Path,
    preset: str,
    threads: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, str]:
    """Write the model in file `source` to file `target` in another preset. Returns tensor name -> format.

    The file is llama-quantize's, byte for byte, at any number of threads. A quantized source is decoded first (as
    llama-quantize does with --allow-requantize); a tensor that has its format already is copied. `progress` is told
    how many weights are done, and of how many. Raises ArgumentError (preset, target, NaN or infinity), GgufError,
    UnsupportedError.
    """
    target = Path(target)
    with read_gguf(source) as gguf, ThreadPoolExecutor(threads) as pool:
        if target.exists() and target.samefile(source):
            raise ArgumentError(f"{target} is the file to read from; write to another one.")
        if target.is_dir():
            raise ArgumentError(f"{target} is a folder; name the file to write.")
        formats = tensor_formats(gguf, preset)
        tensors = [(gguf.tensors[name], format_) for name, format_ in formats.items()]
        numbers = {
            "general.quantization_version": _QUANTIZATION_VERSION,
            "general.file_type": PRESETS[preset].file_type,
        }
        dropped = ("split.no", "split.count", "split.tensors.count")
        write_gguf(target, gguf, numbers, dropped, tensors, _converted(tensors, pool, progress))
    return formats


def _converted(tensors: list[tuple[Tensor, str]], pool: ThreadPoolExecutor, progress: Callable) -> Iterator[np.ndarray]:
    """The bytes of all tensors in their new formats, chunk by chunk."""
    done, total = 0, sum(math.prod(tensor.shape) for tensor, _ in tensors)
    progress(done, total)
    for tensor, format_ in tensors:
        for n_values, raw in convert(tensor, format_, pool.map):
            done += n_values
            progress(done, total)
            yield raw


def convert(tensor: Tensor, format_: str, map_: Callable = map) -> Iterator[tuple[int, np.ndarray]]:
    """(number of weights, their bytes in `format_`, uint8) of a tensor, some rows at a time; map_ may work on threads.

    Raises ArgumentError for NaN or infinity in the tensor, or values too large for the format's f16 scales.
    """
    if tensor.format == format_:
        yield math.prod(tensor.shape), tensor.data
        return
    n_in = tensor.shape[-1]
    step = max(1, CHUNK // n_in) * FORMATS[tensor.format].row_bytes(n_in)

    def encoded(start: int) -> tuple[int, np.ndarray]:
        x = dequantize(tensor.format, tensor.data[start : start + step])
        try:
            return x.size, _encode(format_, x)
        except ArgumentError as error:
            raise ArgumentError(f"tensor {tensor.name!r} cannot be quantized. {error}") from None

    yield from map_(encoded, range(0, tensor.data.size, step))


def _encode(format_: str, x: np.ndarray) -> np.ndarray:
    if format_ == "F16":
        with np.errstate(over="ignore"):
            raw = x.astype("<f2").view(np.uint8)
    else:
        raw = quantize(format_, x)
    blocks = raw.view(FORMATS[format_].dtype)
    for field in FORMATS[format_].fields:
        if field.dtype.kind == "f" and not np.isfinite(blocks[field.name]).all():
            raise ArgumentError(f"Its values, up to {np.abs(x).max():.3g}, are too large for {format_}: f16 overflows.")
    return raw
