"""ggml's bytes, values and dot products of one more weight format: added to kernels.npz, for the tests.

    pip install llama-cpp-python gguf
    python make_kernels.py FORMAT …     as gguf.GGMLQuantizationType names them; d is the first f16 of a block

The rows and the activations are those in the file; its other arrays stay as they are.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path

import gguf
import numpy as np

HERE = Path(__file__).parent
ROWS = ("normal", "outliers", "positive", "zeros", "ties", "spike", "tiny", "large", "constant")


@cache
def ggml(part: str) -> ctypes.CDLL:
    """libggml-base or libggml-cpu, as llama-cpp-python brings it."""
    import llama_cpp

    library = ctypes.CDLL(str(Path(llama_cpp.__file__).parent / "lib" / f"libggml-{part}.so"))
    if part == "cpu":
        library.ggml_cpu_init()
    return library


def quantize_chunk(kind: gguf.GGMLQuantizationType, x: np.ndarray) -> np.ndarray:
    """f32[…, n] -> uint8[…, bytes], by ggml_quantize_chunk, without an importance matrix: as llama-quantize does it."""
    values, size = gguf.GGML_QUANT_SIZES[kind]
    x = np.ascontiguousarray(x, np.float32)
    out = np.zeros((*x.shape[:-1], x.shape[-1] // values * size), np.uint8)
    quantize, number, pointer = ggml("base").ggml_quantize_chunk, ctypes.c_int64, ctypes.c_void_p
    quantize.restype = ctypes.c_size_t
    quantize.argtypes = [ctypes.c_int, pointer, pointer, number, number, number, pointer]
    quantize(kind.value, x.ctypes.data, out.ctypes.data, 0, x.size // x.shape[-1], x.shape[-1], None)
    return out


def decoded(name: str, raw: np.ndarray, n: int) -> np.ndarray:
    """f32[n], by dequantize_row_NAME."""
    out, decode = np.zeros(n, np.float32), getattr(ggml("base"), f"dequantize_row_{name}")
    decode.restype, decode.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    decode(raw.ctypes.data, out.ctypes.data, n)
    return out


def dots(name: str, pair: str, w: np.ndarray, a: np.ndarray, n: int) -> np.ndarray:
    """f32[2]: the product of two rows of n values, by ggml's generic C code and by its SIMD code.

    NaN where ggml's number is not the product of the decoded rows.
    """
    out, number, pointer = np.zeros(2, np.float32), ctypes.c_size_t, ctypes.c_void_p
    for i, ending in enumerate(("_generic", "")):
        dot = getattr(ggml("cpu"), f"ggml_vec_dot_{name}_{pair}{ending}")
        dot.restype = None
        dot.argtypes = [ctypes.c_int, pointer, number, pointer, number, pointer, number, ctypes.c_int]
        dot(n, out[i:].ctypes.data, 0, w.ctypes.data, 0, a.ctypes.data, 0, 1)
    terms = decoded(name, w, n).astype(np.float64) * decoded(pair, a, n)
    out[np.abs(out - terms.sum()) > 0.01 * np.abs(terms).sum() + 1e-30] = np.nan
    return out


def main(names: list[str]) -> None:
    with np.load(HERE / "kernels.npz") as arrays:
        data = dict(arrays)
    for format_ in names:
        kind, name = gguf.GGMLQuantizationType[format_], format_.lower().replace("_k", "_K")
        values, size = gguf.GGML_QUANT_SIZES[kind]
        pair, n = "q8_0" if values == 32 else "q8_K", data["normal/x"].size
        rng = np.random.default_rng(kind.value)
        any_bytes = rng.integers(0, 256, (n // values, size), dtype=np.uint8)
        any_bytes[:, :2] = rng.uniform(-0.05, 0.05, (n // values, 1)).astype(np.float16).view(np.uint8)
        weights = {row: quantize_chunk(kind, data[f"{row}/x"]) for row in ROWS} | {"bytes": any_bytes.reshape(-1)}
        for row, raw in weights.items():
            a = data[f"{'normal' if row == 'bytes' else row}/act/{pair}"]
            data[f"{row}/{name}/bytes"] = raw
            data[f"{row}/{name}/values"] = decoded(name, raw, n)
            data[f"{row}/{name}/dot_scalar_simd"] = dots(name, pair, raw, a, n)
    np.savez_compressed(HERE / "kernels.npz", **data)


if __name__ == "__main__":
    main(sys.argv[1:])
