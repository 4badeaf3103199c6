"""Well-known models by their shapes alone: enough to ask which format each tensor gets, and how large it then is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.formats.gguf import Gguf, Tensor
from minfer_lib.formats.table import FORMATS


@dataclass(frozen=True)
class Shape:
    architecture: str
    layers: int
    width: int
    ffn: int
    heads: int
    kv_heads: int
    vocabulary: int
    tied: bool  # the token embedding is the output matrix too
    head: int  # values a head


SHAPES = {  # from the models' own configuration files
    "Qwen3-8B": Shape("qwen3", 36, 4096, 12288, 32, 8, 151936, tied=False, head=128),
    "Qwen2.5-7B": Shape("qwen2", 28, 3584, 18944, 28, 4, 152064, tied=False, head=128),
    "Qwen2.5-0.5B": Shape("qwen2", 24, 896, 4864, 14, 2, 151936, tied=True, head=64),
}


def outline(name: str) -> Gguf:
    """The matrices of model `name` as an F16 file would hold them, without their bytes: every `.data` is empty."""
    if name not in SHAPES:
        raise ArgumentError(f"there is no outline of {name!r}. Choose one of: {', '.join(SHAPES)}.")
    shape = SHAPES[name]
    arch, nothing = shape.architecture, np.zeros(0, np.uint8)
    metadata = {
        "general.architecture": arch,
        f"{arch}.block_count": shape.layers,
        f"{arch}.attention.head_count": shape.heads,
        f"{arch}.attention.head_count_kv": shape.kv_heads,
    }
    tensors = {tensor: Tensor(tensor, "F16", dims, 0, nothing) for tensor, dims in _dims(shape).items()}
    return Gguf(Path(f"{name}.gguf"), 3, metadata, {}, tensors, nothing)


def _dims(shape: Shape) -> dict[str, tuple[int, int]]:
    width, ffn = shape.width, shape.ffn
    queries, keys = shape.heads * shape.head, shape.kv_heads * shape.head
    layer = {
        "attn_q": (queries, width), "attn_k": (keys, width), "attn_v": (keys, width), "attn_output": (width, queries),
        "ffn_gate": (ffn, width), "ffn_up": (ffn, width), "ffn_down": (width, ffn),
    }  # fmt: skip
    dims = {"token_embd.weight": (shape.vocabulary, width)}
    dims |= {f"blk.{i}.{name}.weight": size for i in range(shape.layers) for name, size in layer.items()}
    return dims if shape.tied else dims | {"output.weight": (shape.vocabulary, width)}


def bits_per_weight(gguf: Gguf, formats: Mapping[str, str]) -> float:
    """Of all tensors in `formats` (tensor name -> format) together."""
    shapes = {name: gguf.tensors[name].shape for name in formats}
    n_bytes = sum(FORMATS[formats[name]].row_bytes(prod(shape)) for name, shape in shapes.items())
    return 8 * n_bytes / sum(prod(shape) for shape in shapes.values())
