"""The numbers that describe a model, read from the GGUF metadata and from nowhere else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from minfer_lib.errors import GgufError, UnsupportedError


@dataclass(frozen=True)
class Architecture:
    """What no metadata key says: it follows from the architecture's name. Source: llama.cpp `src/models/NAME.cpp`."""

    rope_order: str  # which values of a head turn together: "pairs" 2i and 2i + 1, "halves" i and i + rope_dim / 2
    rope_factors: bool = False  # the file may hold rope_freqs.weight, as Llama 3's do
    head_norms: bool = False  # each head of q and k has a norm before RoPE


ARCHITECTURES = {
    "llama": Architecture("pairs", rope_factors=True),
    "qwen2": Architecture("halves"),
    "qwen3": Architecture("halves", head_norms=True),
}


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
    rope_scaling: str  # "none", "linear" or "yarn"
    rope_factor: float  # by which the scaling makes the model's context longer; 1.0 without
    rope_context: int  # tokens that it was trained for before it was made longer
    rope_magnitude: float  # cos and sin are multiplied by it
    norm_eps: float
    context: int  # tokens that the model is made for

    @property
    def attention_scale(self) -> float:
        return self.head_dim**-0.5

    @property
    def kind(self) -> Architecture:
        return ARCHITECTURES[self.architecture]


def read_config(metadata: dict[str, Any]) -> Config:
    """Source: llama.cpp `llama-model.cpp`, load_hparams.

    Raises GgufError (missing or impossible values), UnsupportedError (another architecture, or a variant of one that
    would run but give wrong numbers).
    """
    architecture = metadata.get("general.architecture")
    if not architecture:
        raise UnsupportedError("the file has no general.architecture: it is not a language model.")
    if not isinstance(architecture, str) or architecture not in ARCHITECTURES:
        raise UnsupportedError(
            f"the architecture {architecture!r} is not built; built are: {', '.join(ARCHITECTURES)}. "
            "Choose a model of one of these."
        )
    _refuse_variants(metadata, architecture)
    get = _Reader(metadata, architecture)
    width, n_heads = get.whole("embedding_length"), get.whole("attention.head_count")
    if width % n_heads and f"{architecture}.attention.key_length" not in metadata:
        raise GgufError(f"an embedding length of {width} does not divide into {n_heads} heads.")
    head_dim = get.whole("attention.key_length", width // n_heads)
    context = get.whole("context_length")
    scaling, factor = _scaling(get)
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
        rope_scaling=scaling,
        rope_factor=factor,
        rope_context=_original_context(get, scaling, context),
        rope_magnitude=_magnitude(get, scaling, factor),
        norm_eps=get.positive("attention.layer_norm_rms_epsilon"),
        context=context,
    )
    if config.n_heads % config.n_kv_heads:
        raise GgufError(f"{config.n_heads} query heads cannot share {config.n_kv_heads} key/value heads evenly.")
    if config.rope_dim != head_dim or head_dim % 2:
        raise GgufError(f"rope.dimension_count is {config.rope_dim}, but a head has {head_dim} values, all in pairs.")
    if scaling == "yarn" and config.rope_base <= 1:
        raise GgufError(f"{architecture}.rope.freq_base is {config.rope_base:g}; YaRN scaling needs one above 1.")
    if get.whole("attention.value_length", head_dim) != head_dim:
        raise UnsupportedError("value heads of another size than key heads are not supported.")
    return config


def _scaling(get: _Reader) -> tuple[str, float]:
    """("none", "linear" or "yarn"; the factor). A factor without a type is linear; none at all is a factor of 1."""
    kind = get.metadata.get(f"{get.architecture}.rope.scaling.type", "linear")
    if kind == "none":
        return "none", 1.0
    if kind not in ("linear", "yarn"):
        raise UnsupportedError(f"RoPE scaling {kind!r} is not built; built are none, linear and yarn.")
    factor = get.positive("rope.scaling.factor", get.positive("rope.scale_linear", 1.0))
    return (kind, factor) if factor != 1 else ("none", 1.0)


def _original_context(get: _Reader, scaling: str, context: int) -> int:
    """Only YaRN asks for it; 0 is the model's own. Source: llama-context.cpp (n_ctx_orig_yarn)."""
    if scaling != "yarn":
        return context
    return get.whole("rope.scaling.original_context_length", 0, least=0) or context


def _magnitude(get: _Reader, scaling: str, factor: float) -> float:
    """What cos and sin are multiplied by. Source: llama-context.cpp (yarn_attn_factor) with ggml's rope_yarn."""
    magnitude = get.positive("rope.scaling.attn_factor", 1.0)
    if scaling != "yarn":
        return magnitude
    stretch = 1 + 0.1 * math.log(max(1, factor))
    for key, built in (("ext_factor", 1), ("attn_factor", stretch), ("beta_fast", 32), ("beta_slow", 1)):
        value = get.number(f"rope.scaling.yarn_{key}", built)
        automatic = key == "ext_factor" and value < 0
        if not automatic and not math.isclose(value, built, rel_tol=1e-3):
            raise UnsupportedError(f"YaRN scaling with another {key} than {built:g} is not built.")
    return magnitude * stretch


# Keys that a model of a built architecture may hold, and what each would change.
_VARIANTS = {
    "expert_count": "mixtures of experts",
    "nextn_predict_layers": "layers that predict further tokens",
    "attention.sliding_window": "sliding windows in attention",
    "attention.scale": "an attention scale of its own",
    "attention.clamp_kqv": "clamped queries, keys and values",
    "attn_logit_softcapping": "capped attention scores",
    "final_logit_softcapping": "capped logits",
    "logit_scale": "scaled logits",
    "embedding_scale": "scaled embeddings",
    "residual_scale": "scaled residuals",
    "rope.scaling.yarn_log_multiplier": "YaRN scaling with a log multiplier",
}


def _refuse_variants(metadata: dict[str, Any], architecture: str) -> None:
    for key, what in _VARIANTS.items():
        value = metadata.get(f"{architecture}.{key}")
        if value:
            raise UnsupportedError(
                f"{what} ({architecture}.{key} = {value!r:.40}) are not built; plain dense {architecture} models are."
            )
    if metadata.get(f"{architecture}.attention.causal", True) is not True:
        raise UnsupportedError("the model reads both ways (attention.causal is false): it embeds, it cannot generate.")
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

    def whole(self, key: str, default: int | None = None, most: int = 2**31 - 1, least: int = 1) -> int:
        value = self._get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            wanted = f"it must be a whole number from {least} to {most}"
            raise GgufError(f"{self.architecture}.{key} is {value!r}; {wanted}.")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._get(key, default)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise GgufError(f"{self.architecture}.{key} is {value!r}; it must be a number.")
        return float(value)

    def positive(self, key: str, default: float | None = None) -> float:
        value = self.number(key, default)
        if not 1e-30 < value < 1e30:
            raise GgufError(f"{self.architecture}.{key} is {value!r}; it must be a positive number of sane size.")
        return value
