"""The numbers that describe a model, read from the GGUF metadata and from nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minfer_lib.errors import GgufError, UnsupportedError

ARCHITECTURES = ("llama",)


@dataclass(frozen=True)
class Config:
    architecture: str
    n_layers: int
    width: int  # of the residual stream
    ffn_width: int
    n_heads: int
    n_kv_heads: int  # fewer than n_heads: each serves n_heads / n_kv_heads query heads (GQA)
    head_dim: int
    rope_dim: int  # the first rope_dim values of a head are rotated
    rope_base: float
    norm_eps: float
    context: int  # what the model was trained for

    @property
    def attention_scale(self) -> float:
        return self.head_dim**-0.5


def read_config(metadata: dict[str, Any]) -> Config:
    """Source: llama.cpp `llama-model.cpp`, load_hparams.

    Raises GgufError (missing or impossible values), UnsupportedError (another architecture, or a variant of llama that
    would run but give wrong numbers).
    """
    architecture = metadata.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise UnsupportedError(
            f"the architecture {architecture!r} is not built yet; built are: {', '.join(ARCHITECTURES)}."
            if architecture
            else "the file has no general.architecture: it is not a language model."
        )
    get = _Reader(metadata, architecture)
    _refuse_variants(metadata, architecture)
    width, n_heads = get.whole("embedding_length"), get.whole("attention.head_count")
    if width % n_heads and f"{architecture}.attention.key_length" not in metadata:
        raise GgufError(f"an embedding length of {width} does not divide into {n_heads} heads.")
    head_dim = get.whole("attention.key_length", width // n_heads)
    config = Config(
        architecture=architecture,
        n_layers=get.whole("block_count", most=512),
        width=width,
        ffn_width=get.whole("feed_forward_length"),
        n_heads=n_heads,
        n_kv_heads=get.whole("attention.head_count_kv", n_heads),
        head_dim=head_dim,
        rope_dim=get.whole("rope.dimension_count", head_dim),
        rope_base=get.positive("rope.freq_base", 10000.0),
        norm_eps=get.positive("attention.layer_norm_rms_epsilon"),
        context=get.whole("context_length"),
    )
    if config.n_heads % config.n_kv_heads:
        raise GgufError(f"{config.n_heads} query heads cannot share {config.n_kv_heads} key/value heads evenly.")
    if config.rope_dim != head_dim or head_dim % 2:
        raise GgufError(f"rope.dimension_count is {config.rope_dim}, but a head has {head_dim} values, all in pairs.")
    if get.whole("attention.value_length", head_dim) != head_dim:
        raise UnsupportedError("value heads of another size than key heads are not supported.")
    return config


def _refuse_variants(metadata: dict[str, Any], architecture: str) -> None:
    scaling = metadata.get(f"{architecture}.rope.scaling.type", "none")
    if scaling != "none" or f"{architecture}.rope.scale_linear" in metadata:
        raise UnsupportedError(f"RoPE scaling ({scaling!r}) is not built yet.")
    if f"{architecture}.rope.scaling.type" not in metadata and metadata.get(f"{architecture}.rope.scaling.factor"):
        raise UnsupportedError("RoPE scaling ('linear', as a factor without a type means) is not built yet.")
    for key in ("attention.scale", "attention.sliding_window", "expert_count", "logit_scale"):
        if metadata.get(f"{architecture}.{key}"):
            raise UnsupportedError(f"models with {architecture}.{key} are not supported.")
    if metadata.get("split.count", 1) not in (0, 1):
        raise UnsupportedError("the model is split over several files; merge them first (llama-gguf-split --merge).")


class _Reader:
    """Metadata values with the architecture's prefix, checked."""

    def __init__(self, metadata: dict[str, Any], architecture: str) -> None:
        self.metadata, self.architecture = metadata, architecture

    def _get(self, key: str, default: Any) -> Any:
        value = self.metadata.get(f"{self.architecture}.{key}", default)
        if value is None:
            raise GgufError(f"the metadata key {self.architecture}.{key} is missing.")
        if isinstance(value, list):
            raise UnsupportedError(f"{self.architecture}.{key} differs from layer to layer; that is not supported.")
        return value

    def whole(self, key: str, default: int | None = None, most: int = 2**31 - 1) -> int:
        value = self._get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            raise GgufError(f"{self.architecture}.{key} is {value!r}; it must be a whole number from 1 to {most}.")
        return value

    def positive(self, key: str, default: float | None = None) -> float:
        value = self._get(key, default)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 1e-30 < value < 1e30:
            raise GgufError(f"{self.architecture}.{key} is {value!r}; it must be a positive number of sane size.")
        return float(value)
