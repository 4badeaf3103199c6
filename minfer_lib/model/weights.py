"""A model's tensors by name, every shape checked. Matrices stay bytes in the map; vectors become float32."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from minfer_lib.dot.kernel_key import kernel_for
from minfer_lib.errors import GgufError, UnsupportedError
from minfer_lib.formats.decode import dequantize
from minfer_lib.formats.gguf import Gguf, Tensor, row_tensor
from minfer_lib.matmul.product import Matrix
from minfer_lib.model.config import Config


@dataclass(frozen=True)
class Layer:
    attn_norm: np.ndarray  # f32[width]
    q: Matrix  # [n_heads * head_dim, width]
    k: Matrix  # [n_kv_heads * head_dim, width]
    v: Matrix
    attn_output: Matrix  # [width, n_heads * head_dim]
    ffn_norm: np.ndarray
    gate: Matrix  # [ffn_width, width]
    up: Matrix
    down: Matrix  # [width, ffn_width]
    q_bias: np.ndarray | None  # f32[n_heads * head_dim], added to what q makes
    k_bias: np.ndarray | None
    v_bias: np.ndarray | None
    q_norm: np.ndarray | None  # f32[head_dim]: the norm of each query head, before RoPE
    k_norm: np.ndarray | None


@dataclass(frozen=True)
class Weights:
    embedding: Tensor  # [n_vocab, width]
    layers: tuple[Layer, ...]
    output_norm: np.ndarray
    output: Matrix  # [n_vocab, width]; the embedding itself where the file has no output matrix (tied)
    rope_factors: np.ndarray | None  # f32[rope_dim / 2], each divides its pair's angle

    @property
    def n_vocab(self) -> int:
        return self.embedding.shape[0]

    def embed(self, ids: list[int]) -> np.ndarray:
        """f32[n_tokens, width]: the rows of `ids`, decoded. A look-up, not a product (seed 1, embed_tokens)."""
        rows = row_tensor(self.embedding)[ids]
        return dequantize(self.embedding.format, rows).reshape(len(ids), -1)


def read_weights(gguf: Gguf, config: Config) -> Weights:
    """Raises GgufError (a tensor missing or of the wrong shape), UnsupportedError (a format or tensor not built)."""
    take = _Taker(gguf)
    c = config
    embedding = take.tensor("token_embd.weight", (_n_tokens(gguf), c.width))
    layers = tuple(_layer(take, c, f"blk.{i}.") for i in range(c.n_layers))
    output_norm = take.vector("output_norm.weight", c.width)
    output = "output.weight" if "output.weight" in gguf.tensors else "token_embd.weight"
    factors = _rope_factors(take, c) if c.kind.rope_factors and "rope_freqs.weight" in gguf.tensors else None
    weights = Weights(embedding, layers, output_norm, take.matrix(output, embedding.shape[0], c.width), factors)
    take.nothing_left()
    return weights


def _layer(take: _Taker, c: Config, block: str) -> Layer:
    q_width, kv_width = c.n_heads * c.head_dim, c.n_kv_heads * c.head_dim
    widths = {"q": q_width, "k": kv_width, "v": kv_width}
    norms = {n: take.vector(f"{block}attn_{n}_norm.weight", c.head_dim) for n in "qk" if c.kind.head_norms}
    return Layer(
        attn_norm=take.vector(block + "attn_norm.weight", c.width),
        **_qkv(take, block, widths, c.width),
        attn_output=take.matrix(block + "attn_output.weight", c.width, q_width),
        ffn_norm=take.vector(block + "ffn_norm.weight", c.width),
        gate=take.matrix(block + "ffn_gate.weight", c.ffn_width, c.width),
        up=take.matrix(block + "ffn_up.weight", c.ffn_width, c.width),
        down=take.matrix(block + "ffn_down.weight", c.width, c.ffn_width),
        **_biases(take, block, widths),
        q_norm=norms.get("q"),
        k_norm=norms.get("k"),
    )


def _qkv(take: _Taker, block: str, widths: dict[str, int], width: int) -> dict[str, Matrix]:
    """The matrices q, k and v. A file may hold the three one under the other, as one (fused) matrix."""
    if block + "attn_qkv.weight" not in take.left:
        return {n: take.matrix(f"{block}attn_{n}.weight", n_out, width) for n, n_out in widths.items()}
    fused = take.matrix(block + "attn_qkv.weight", sum(widths.values()), width)
    matrices, first = {}, 0
    for n, n_out in widths.items():
        matrices[n] = replace(fused, at=fused.at + first * fused.row_bytes, n_out=n_out)
        first += n_out
    return matrices


def _biases(take: _Taker, block: str, widths: dict[str, int]) -> dict[str, np.ndarray | None]:
    """What is added to q, k and v, each where the file has it; fused as the matrices may be."""
    if block + "attn_qkv.bias" in take.left:
        fused = take.vector(block + "attn_qkv.bias", sum(widths.values()))
        biases = np.split(fused, np.cumsum([*widths.values()])[:-1])
    else:
        names = {n: f"{block}attn_{n}.bias" for n in widths}
        biases = [take.vector(name, widths[n]) if name in take.left else None for n, name in names.items()]
    return {f"{n}_bias": bias for n, bias in zip(widths, biases, strict=True)}


def _n_tokens(gguf: Gguf) -> int | None:
    """How many tokens the file's vocabulary has, one row of the embedding each; None without a vocabulary."""
    tokens = gguf.metadata.get("tokenizer.ggml.tokens")
    return len(tokens) if isinstance(tokens, list) else None


def _rope_factors(take: _Taker, config: Config) -> np.ndarray:
    factors = take.vector("rope_freqs.weight", config.rope_dim // 2)
    if not (factors > 0).all():
        raise GgufError("rope_freqs.weight holds a zero, a negative number or NaN; each factor divides an angle.")
    return factors


class _Taker:
    """Takes tensors by name and remembers which: one that nobody takes would silently change the numbers."""

    def __init__(self, gguf: Gguf) -> None:
        self.gguf, self.left = gguf, set(gguf.tensors)

    def tensor(self, name: str, shape: tuple[int | None, ...]) -> Tensor:
        tensor = self.gguf.tensors.get(name)
        if tensor is None:
            raise GgufError(f"{self.gguf.path.name}: the tensor {name!r} is missing.")
        wanted = tuple(have if want is None else want for want, have in zip(shape, tensor.shape, strict=False))
        if tensor.shape != wanted or len(shape) != len(tensor.shape):
            raise GgufError(f"{self.gguf.path.name}: {name!r} has shape {tensor.shape}; the metadata asks for {shape}.")
        self.left.discard(name)
        return tensor

    def vector(self, name: str, n: int) -> np.ndarray:
        tensor = self.tensor(name, (n,))
        return dequantize(tensor.format, tensor.data)

    def matrix(self, name: str, n_out: int, n_in: int) -> Matrix:
        tensor = self.tensor(name, (n_out, n_in))
        return Matrix(kernel_for(tensor.format), self.gguf.bytes, tensor.offset, n_out, n_in)

    def nothing_left(self) -> None:
        if self.left:
            raise UnsupportedError(
                f"{self.gguf.path.name} has tensors that this engine does not use, so it would answer wrongly: "
                f"{', '.join(sorted(self.left)[:5])}{' …' if len(self.left) > 5 else ''}."
            )
