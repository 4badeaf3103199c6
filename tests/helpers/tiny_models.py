"""Small random models as GGUF files, written by the `gguf` package: the tests' own, independent of minfer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONTROLS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["h e", "t he", "Ġ the", "i n", "l l", "o r"]


def byte_characters() -> list[str]:
    """GPT-2's printable character for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return [chr(b) if b in plain else chr(256 + others.index(b)) for b in range(256)]


TOKENS = [*CONTROLS, *byte_characters(), *(m.replace(" ", "") for m in MERGES)]
# As many, the way SentencePiece has them.
PIECES = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁the", "the", "he", "▁", "t", "e"]


@dataclass(frozen=True)
class Spec:
    """The shape of a model. Everything unusual is a field, so that a test says what it is about."""

    width: int = 64
    ffn_width: int = 96  # three blocks of 32: an odd number
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int | None = None  # None: width / n_heads, and no key_length in the file
    n_vocab: int = len(TOKENS)
    context: int = 64
    eps: float = 1e-5
    rope_base: float = 10000.0
    tied: bool = False
    rope_freqs: bool = False
    vocabulary: bool = True
    sentencepiece: bool = False
    alignment: int | None = None
    architecture: str = "llama"
    qkv_bias: bool = False
    fused: bool = False  # q, k and v as one matrix, and their biases as one vector
    formats: dict[str, str] = field(default_factory=dict)  # "attn_q", "token_embd", … -> format; else `format`
    format: str = "F32"
    vectors: str = "F32"  # the format of norms and biases
    metadata: dict[str, Any] = field(default_factory=dict)  # more keys, without the architecture's prefix

    @property
    def head(self) -> int:
        return self.head_dim or self.width // self.n_heads

    def shapes(self) -> dict[str, tuple[int, ...]]:
        e, f, q, kv = self.width, self.ffn_width, self.n_heads * self.head, self.n_kv_heads * self.head
        shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (self.n_vocab, e), "output_norm.weight": (e,)}
        if not self.tied:
            shapes["output.weight"] = (self.n_vocab, e)
        if self.rope_freqs:
            shapes["rope_freqs.weight"] = (self.head // 2,)
        layer = {
            "attn_norm": (e,), "attn_q": (q, e), "attn_k": (kv, e), "attn_v": (kv, e), "attn_output": (e, q),
            "ffn_norm": (e,), "ffn_gate": (f, e), "ffn_up": (f, e), "ffn_down": (e, f),
        }  # fmt: skip
        layer = {f"{name}.weight": shape for name, shape in layer.items()}
        if self.qkv_bias:
            layer |= {"attn_q.bias": (q,), "attn_k.bias": (kv,), "attn_v.bias": (kv,)}
        if self.architecture == "qwen3":
            layer |= {"attn_q_norm.weight": (self.head,), "attn_k_norm.weight": (self.head,)}
        return shapes | {f"blk.{i}.{name}": shape for i in range(self.n_layers) for name, shape in layer.items()}


def random_weights(spec: Spec, seed: int = 0) -> dict[str, np.ndarray]:
    """name -> f32, large enough that attention is not uniform and that logits differ from token to token."""
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in spec.shapes().items():
        if name == "rope_freqs.weight":
            weights[name] = rng.uniform(1, 8, shape).astype(np.float32)
        elif name.endswith(".bias"):
            weights[name] = (rng.standard_normal(shape) * 0.5).astype(np.float32)
        elif len(shape) == 1:
            weights[name] = rng.uniform(0.5, 1.5, shape).astype(np.float32)
        else:
            scale = 2 if name == "token_embd.weight" else 1.2 / np.sqrt(shape[1])
            weights[name] = (rng.standard_normal(shape) * scale).astype(np.float32)
    return fused(weights) if spec.fused else weights


def fused(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same weights with attn_q, attn_k and attn_v of each layer in one attn_qkv; so the biases."""
    result = {}
    for name, values in weights.items():
        if ".attn_q." in name:
            parts = [values, *(weights[name.replace(".attn_q.", f".attn_{n}.")] for n in "kv")]
            result[name.replace(".attn_q.", ".attn_qkv.")] = np.concatenate(parts)
        elif ".attn_k." not in name and ".attn_v." not in name:
            result[name] = values
    return result


def write_model(
    path: Path, spec: Spec, weights: dict[str, np.ndarray] | None = None, quantize: Callable = gguf.quants.quantize
) -> Path:
    """`weights` (default: random) in the spec's formats, by quantize(values, kind), as a GGUF file at `path`."""
    writer = gguf.GGUFWriter(path, spec.architecture)
    _add_numbers(writer, spec)
    _add_vocabulary(writer, spec)
    for key, value in spec.metadata.items():
        _add(
            writer, key if key.startswith(("general.", "tokenizer.", "split.")) else f"{spec.architecture}.{key}", value
        )
    for name, values in (random_weights(spec) if weights is None else weights).items():
        format_ = spec.formats.get(name.split(".")[-2], spec.format) if values.ndim == 2 else spec.vectors
        kind = gguf.GGMLQuantizationType[format_]
        data = values if format_ == "F32" else quantize(values, kind)
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_numbers(writer: gguf.GGUFWriter, spec: Spec) -> None:
    if spec.alignment:
        writer.add_custom_alignment(spec.alignment)
    writer.add_context_length(spec.context)
    writer.add_embedding_length(spec.width)
    writer.add_block_count(spec.n_layers)
    writer.add_feed_forward_length(spec.ffn_width)
    writer.add_head_count(spec.n_heads)
    writer.add_head_count_kv(spec.n_kv_heads)
    if spec.head_dim:
        writer.add_key_length(spec.head_dim)
        writer.add_value_length(spec.head_dim)
    writer.add_rope_dimension_count(spec.head)
    writer.add_rope_freq_base(spec.rope_base)
    writer.add_layer_norm_rms_eps(spec.eps)


def _add_vocabulary(writer: gguf.GGUFWriter, spec: Spec) -> None:
    if not spec.vocabulary:
        writer.add_tokenizer_model("no_vocab")
        writer.add_vocab_size(spec.n_vocab)
        return
    if spec.sentencepiece:
        writer.add_tokenizer_model("llama")
        writer.add_token_list(PIECES)
        writer.add_token_scores([-float(place) for place in range(len(PIECES))])
        writer.add_token_types([2, 3, 3, *[6] * 256, *[1] * 6])
        return
    tokens = TOKENS + [f"<unused{i}>" for i in range(spec.n_vocab - len(TOKENS))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens[: spec.n_vocab])
    writer.add_token_types([3 if token in CONTROLS else 1 for token in tokens[: spec.n_vocab]])
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHATML)


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    add.get(type(value), writer.add_array)(key, value)
