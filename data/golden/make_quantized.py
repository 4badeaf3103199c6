"""What ggml and llama-quantize make of rows and of models, as hashes: data/golden/quantized_*.json, for the tests.

    pip install llama-cpp-python gguf
    python make_quantized.py rows                   the rows below, by ggml_quantize_chunk, or quantize_row_*_ref
    python make_quantized.py tied untied            the random models below, by llama_model_quantize
    python make_quantized.py MODEL.gguf …           any other model

For a row, one sha256 a format. For a model, for every preset, the tensors' formats in file order and one sha256 over
all tensor data; and the first eight digits of the sha256 of every tensor in every format that it got.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np

FILE_TYPES = {
    "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10, "Q3_K_S": 11, "Q3_K_M": 12, "Q3_K_L": 13,
    "Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_S": 16, "Q5_K_M": 17, "Q6_K": 18,
    "IQ4_NL": 25,
}  # fmt: skip

ROW_FORMATS = {  # format: values and bytes of a block
    "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24), "Q8_0": (32, 34), "Q8_1": (32, 36),
    "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144), "Q5_K": (256, 176), "Q6_K": (256, 210),
    "Q8_K_GGML": (256, 292), "IQ4_NL": (32, 18),
}  # fmt: skip


def _hashes(n: int, seed: int) -> np.ndarray:
    """uint32[n], well mixed."""
    h = np.arange(n, dtype=np.uint32) + np.uint32(seed * 2654435761 % 2**32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = (h ^ h >> np.uint32(shift)) * np.uint32(factor)
    return h


def weights(seed: int, *shape: int) -> np.ndarray:
    """f32[shape], bell-shaped with a few outliers, by integer arithmetic alone: the same on every machine."""
    h = _hashes(int(np.prod(shape)), seed)
    bell = h.view(np.uint8).reshape(-1, 4).sum(axis=1, dtype=np.int32) - 510
    return (bell * np.where(h % 97 == 0, 8, 1) / 8192).astype(np.float32).reshape(shape)


def rows() -> dict[str, np.ndarray]:
    """64k ordinary weights, on which one fused multiply-add would show, and rows on which almost everything overflows,
    underflows, ties or is a zero with one sign or the other."""
    n = 1 << 14
    bits = _hashes(n, 2)
    bits[bits >> 23 & 255 == 255] &= np.uint32(0xBFFFFFFF)  # any float32 but NaN and infinity
    signs = np.where(_hashes(n, 3) & 1, np.float32(-1), np.float32(1))
    return {
        "bell": weights(1, 1 << 16),
        "any_bits": bits.view(np.float32),
        "sparse": np.where(_hashes(n, 4) % 10 == 0, weights(5, n), np.float32(0)) * signs,
        "denormal": weights(6, n) * np.float32(1e-38),
        "near_1e-15": weights(7, n) * np.float32(1e-14),
        "large": weights(8, n) * np.float32(1e7),
        "halves": np.round(weights(9, n) * 256) / np.float32(2),
        "signs": signs,
    }


def random_model(name: str, path: Path) -> None:
    """Write the F16 model "tied" (llama: 16 layers, 4 query heads a key head, no output matrix) or the BF16 model
    "untied" (qwen2: 9 layers, 2 heads a key head, biases, and a matrix whose rows are no multiple of 32)."""
    tied = name == "tied"
    arch, layers, kv_heads = ("llama", 16, 1) if tied else ("qwen2", 9, 2)
    kind = gguf.GGMLQuantizationType.F16 if tied else gguf.GGMLQuantizationType.BF16
    writer, seed, width = gguf.GGUFWriter(path, arch), 0, 256
    writer.add_context_length(128)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(width)
    writer.add_head_count(4)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_file_type(1 if tied else 32)
    writer.add_array("test.strings", ["", "ä", "three"])
    writer.add_float64("test.float64", 0.1)
    writer.add_array("test.bools", [True, False])
    writer.add_tokenizer_model("no_vocab")

    def add(tensor: str, *shape: int, plain: bool = False) -> None:
        nonlocal seed
        seed += 1
        x = weights(seed, *shape)
        if plain or len(shape) == 1:
            writer.add_tensor(tensor, x)
        else:
            writer.add_tensor(tensor, gguf.quants.quantize(x, kind), raw_dtype=kind)

    add("token_embd.weight", 320, width)
    if not tied:
        add("output.weight", 320, width, plain=True)
        add("blk.0.odd.weight", 8, 40)
        add("blk.0.odd_norm.weight", 4, width)
    add("output_norm.weight", width)
    for i in range(layers):
        add(f"blk.{i}.attn_norm.weight", width)
        add(f"blk.{i}.attn_q.weight", width, width)
        add(f"blk.{i}.attn_k.weight", 64 * kv_heads, width)
        add(f"blk.{i}.attn_v.weight", 64 * kv_heads, width)
        if not tied:
            add(f"blk.{i}.attn_v.bias", 64 * kv_heads)
        add(f"blk.{i}.attn_output.weight", width, width)
        add(f"blk.{i}.ffn_norm.weight", width)
        for part in ("gate", "up", "down"):
            add(f"blk.{i}.ffn_{part}.weight", width, width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def quantized(model: Path, preset: str, temp: Path) -> Path:
    """The file that llama_model_quantize writes."""
    import llama_cpp

    out = temp / f"{preset}.gguf"
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype, params.allow_requantize, params.nthread = FILE_TYPES[preset], True, 1
    if llama_cpp.llama_model_quantize(str(model).encode(), str(out).encode(), ctypes.byref(params)):
        raise SystemExit(f"llama.cpp could not quantize {model} to {preset}")
    return out


def golden(model: Path) -> dict:
    result = {"source_sha256": hashlib.sha256(model.read_bytes()).hexdigest(), "presets": {}, "tensors": {}}
    with tempfile.TemporaryDirectory() as temp:
        for preset in FILE_TYPES:
            out = quantized(model, preset, Path(temp))
            whole, formats = hashlib.sha256(), []
            for tensor in gguf.GGUFReader(out).tensors:
                raw, format_ = tensor.data.tobytes(), tensor.tensor_type.name
                whole.update(raw)
                formats.append(format_)
                result["tensors"].setdefault(tensor.name, {})[format_] = hashlib.sha256(raw).hexdigest()[:8]
            result["presets"][preset] = {"sha256": whole.hexdigest(), "formats": " ".join(formats)}
            out.unlink()
    return result


def golden_rows() -> dict:
    """{row: {format: sha256}}"""
    from make_kernels import ggml, quantize_chunk

    result = {}
    for row, x in rows().items():
        result[row] = {}
        for format_, (values, size) in ROW_FORMATS.items():
            if format_ not in ("Q8_1", "Q8_K_GGML"):
                out = quantize_chunk(gguf.GGMLQuantizationType[format_], x)
            else:  # no format of weights
                quantize = getattr(ggml("base"), f"quantize_row_{format_.removesuffix('_GGML').replace('Q', 'q')}_ref")
                quantize.restype, quantize.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
                out = np.zeros(x.size // values * size, np.uint8)
                quantize(x.ctypes.data, out.ctypes.data, x.size)
            result[row][format_] = hashlib.sha256(out).hexdigest()
    return result


def main(names: list[str]) -> None:
    here = Path(__file__).parent
    for name in names:
        if name == "rows":
            (here / "quantized_rows.json").write_text(json.dumps(golden_rows(), indent=1) + "\n")
            continue
        with tempfile.TemporaryDirectory() as temp:
            model = Path(name)
            if name in ("tied", "untied"):
                model = Path(temp) / f"{name}.gguf"
                random_model(name, model)
            record = golden(model)
        stem = model.stem.lower().replace("-instruct", "").replace("-", "_").replace(".", "_")
        text = json.dumps(record, indent=0, separators=(",", ":"))
        (here / f"quantized_{stem}.json").write_text(re.sub(r'",\n"(?=I?Q)', '","', text) + "\n")
        print(f"quantized_{stem}.json")


if __name__ == "__main__":
    main(sys.argv[1:])
