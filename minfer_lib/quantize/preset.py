"""Presets, such as Q4_K_M: which tensor of a model gets which format.

A preset is a default format and a few exceptions: the tensors that hurt most, and the layers where they do, get more
bits. The rules are llama-quantize's, for models without experts and without an importance matrix. Source: llama.cpp
`llama-quant.cpp`, tensor_allows_quantization, llama_tensor_get_type_impl, tensor_type_fallback.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from minfer_lib.errors import ArgumentError, GgufError, UnsupportedError
from minfer_lib.formats.gguf import Gguf, Tensor
from minfer_lib.formats.table import FORMATS


@dataclass(frozen=True)
class Preset:
    default: str  # the format of every matrix that no rule picks out
    file_type: int  # llama.cpp's number (llama_ftype), kept in the metadata


PRESETS = {
    "Q4_0": Preset("Q4_0", 2),
    "Q4_1": Preset("Q4_1", 3),
    "Q5_0": Preset("Q5_0", 8),
    "Q5_1": Preset("Q5_1", 9),
    "Q8_0": Preset("Q8_0", 7),
    "Q2_K": Preset("Q2_K", 10),
    "Q3_K_S": Preset("Q3_K", 11),
    "Q3_K_M": Preset("Q3_K", 12),
    "Q3_K_L": Preset("Q3_K", 13),
    "Q4_K_S": Preset("Q4_K", 14),
    "Q4_K_M": Preset("Q4_K", 15),
    "Q5_K_S": Preset("Q5_K", 16),
    "Q5_K_M": Preset("Q5_K", 17),
    "Q6_K": Preset("Q6_K", 18),
    "IQ4_NL": Preset("IQ4_NL", 25),
}
ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma3")  # others have rules of their own
EMBEDDINGS = ("token_embd.weight", "per_layer_token_embd.weight")
FALLBACK = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}  # rows are not n * 256


def use_more_bits(i: int, n: int) -> bool:
    """Whether layer i of n gets more bits: the first and the last eighth, and every third between."""
    return i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2


def file_order(name: str) -> tuple[int, bytes]:
    """The order in which llama-quantize writes tensors: by layer, then by name; those of no layer first."""
    layer = re.match(r"blk\.(\d+)\.", name)
    return int(layer[1]) if layer else -1, name.encode()


def tensor_formats(gguf: Gguf, preset: str) -> dict[str, str]:
    """Tensor name -> format under `preset`, in file order.

    Raises ArgumentError (no such preset), UnsupportedError (an architecture or kind of model with other rules).
    """
    if preset not in PRESETS:
        raise ArgumentError(f"{preset!r} is not a preset. Choose one of: {', '.join(PRESETS)}.")
    rules = _Rules(gguf, preset)
    return {name: rules.format_of(gguf.tensors[name]) for name in sorted(gguf.tensors, key=file_order)}


class _Rules:
    """The rules of one preset for one model. Tensors are asked for in file order: some rules count them."""

    def __init__(self, gguf: Gguf, preset: str) -> None:
        self.preset, self.default = preset, PRESETS[preset].default
        metadata, arch = gguf.metadata, gguf.metadata.get("general.architecture")
        if arch not in ARCHITECTURES or metadata.get(f"{arch}.expert_count", 0) or metadata.get("split.count", 1) > 1:
            raise UnsupportedError(
                f"only whole models without experts, of the architectures {', '.join(ARCHITECTURES)}, are quantized "
                f"here; {gguf.path.name} is {arch or 'no language model'}, "
                f"with {metadata.get(f'{arch}.expert_count', 0)} experts, in {metadata.get('split.count', 1)} file(s)."
            )
        self.n_layers = _whole(metadata, f"{arch}.block_count")
        heads = _whole(metadata, f"{arch}.attention.head_count")
        kv_heads = _whole(metadata, f"{arch}.attention.head_count_kv", heads)
        self.queries_per_kv = heads // kv_heads
        self.is_70b = arch in ("llama", "qwen2") and self.n_layers == 80 and (arch == "qwen2" or heads != kv_heads)
        self.is_tied = "output.weight" not in gguf.tensors  # the token embedding is the output matrix too
        self.n_values = sum(_is_value_matrix(name) for name in gguf.tensors)
        self.i_value = self.i_down = 0

    def format_of(self, tensor: Tensor) -> str:
        if not _is_quantized(tensor):
            return tensor.format
        n_in = tensor.shape[-1]
        format_ = self._wanted(tensor.name, n_in)
        if n_in % FORMATS[format_].block_values:
            format_ = FALLBACK.get(format_, format_)
        return format_ if n_in % FORMATS[format_].block_values == 0 else "F16"

    def _wanted(self, name: str, n_in: int) -> str:
        """The format by what the tensor does, before its shape is looked at."""
        if name == "output.weight" or self.is_tied and name in EMBEDDINGS:
            if n_in % FORMATS[self.default].block_values or self.default == "Q8_0":
                return "Q8_0"
            return "Q6_K"
        if _is_value_matrix(name):
            self.i_value += 1
            return self._value(self.i_value - 1)
        if "ffn_down" in name:
            self.i_down += 1
            return self._down(self.i_down - 1)
        if "attn_output.weight" in name:
            return {"Q2_K": "Q3_K", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K"}.get(self.preset, self.default)
        return self.default

    def _value(self, i: int) -> str:
        """attn_v, the smallest matrix of a layer with shared heads and the most sensitive one."""
        match self.preset:
            case "Q2_K":
                format_ = "Q4_K" if self.queries_per_kv >= 4 else "Q3_K"
            case "Q3_K_M":
                format_ = "Q5_K" if i < 2 else "Q4_K"
            case "Q3_K_L":
                format_ = "Q5_K"
            case "Q4_K_S" if i < 4:
                format_ = "Q5_K"
            case "IQ4_NL" if self.queries_per_kv >= 4:
                format_ = "Q5_K"
            case "Q4_K_M" | "Q5_K_M" if use_more_bits(i, self.n_values):
                format_ = "Q6_K"
            case _:
                format_ = self.default
        return "Q5_K" if self.is_70b and format_ in ("Q3_K", "Q4_K") else format_

    def _down(self, i: int) -> str:
        """ffn_down, whose inputs have the largest outliers."""
        match self.preset:
            case "Q2_K":
                return "Q3_K"
            case "Q3_K_M":
                return "Q5_K" if i < self.n_layers // 16 else "Q4_K"
            case "Q3_K_L":
                return "Q5_K"
            case "Q4_K_S" | "IQ4_NL" if i < self.n_layers // 8:
                return "Q5_K"
            case "Q4_K_M" | "Q5_K_M" if use_more_bits(i, self.n_layers):
                return "Q6_K"
        return self.default


def _whole(metadata: dict[str, Any], key: str, default: int | None = None) -> int:
    """A number >= 1 of the metadata; where it differs from layer to layer, the first layer's."""
    value = metadata.get(key, default)
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, int) or first < 1:
        raise GgufError(f"{key} is {value!r}; it must be a whole number of at least 1.")
    return first


def _is_value_matrix(name: str) -> bool:
    return "attn_v.weight" in name or "attn_qkv.weight" in name


def _is_quantized(tensor: Tensor) -> bool:
    """Matrices of weights are; norms, biases and whatever else is small stay as they are."""
    matrix = len(tensor.shape) > 1 and max(tensor.shape[:-1]) > 1
    return matrix and tensor.name.endswith("weight") and "_norm.weight" not in tensor.name
