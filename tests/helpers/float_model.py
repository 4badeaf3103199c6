"""The yardstick: llama, qwen2 and qwen3 in float64 NumPy, weights decoded by the `gguf` package. No minfer code.

Two questions can be asked of it. `logits`: what would the model say in exact arithmetic? `stages`: given what the
engine had in hand before a stage, what should have come out? The second is tight for quantized weights too, because
the activations are rounded to Q8_0 (and keys and values to f16) as the engine says it does.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

Arrays = dict[str, np.ndarray]


class FloatModel:
    def __init__(self, path: Path) -> None:
        reader = gguf.GGUFReader(path)
        self.architecture = reader.fields["general.architecture"].contents()
        get = {key.removeprefix(self.architecture + "."): field.contents() for key, field in reader.fields.items()}
        self.n_heads, self.n_kv_heads = get["attention.head_count"], get["attention.head_count_kv"]
        self.eps, self.n_layers = get["attention.layer_norm_rms_epsilon"], get["block_count"]
        self.head = get.get("attention.key_length", get["embedding_length"] // self.n_heads)
        self.quantized, self.w = set(), {}
        for tensor in reader.tensors:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
            self.w[tensor.name] = values
            if gguf.GGML_QUANT_SIZES[tensor.tensor_type][0] > 1:
                self.quantized.add(tensor.name)
        self.output = "output.weight" if "output.weight" in self.w else "token_embd.weight"
        self._split_fused()
        self.turn, self.stretch = self._turns(get)

    def _split_fused(self) -> None:
        q, kv = self.n_heads * self.head, self.n_kv_heads * self.head
        for name in [name for name in self.w if ".attn_qkv." in name]:
            for n, part in zip("qkv", np.split(self.w.pop(name), [q, q + kv]), strict=True):
                self.w[name.replace("qkv", n)] = part
                if name in self.quantized:
                    self.quantized.add(name.replace("qkv", n))

    def _turns(self, get: dict) -> tuple[np.ndarray, float]:
        """Radians a position of each pair, and what a turned pair is multiplied by."""
        half, base = self.head // 2, get["rope.freq_base"]
        turn = base ** (-np.arange(half) / half) / self.w.get("rope_freqs.weight", 1.0)
        factor = get.get("rope.scaling.factor", get.get("rope.scale_linear", 1.0))
        stretch = get.get("rope.scaling.attn_factor", 1.0)
        kind = get.get("rope.scaling.type", "linear")
        if kind == "linear":
            turn = turn / factor
        if kind == "yarn":  # the paper's ramp: where in the list of pairs do those lie that turn 32 times, and once?
            context = get.get("rope.scaling.original_context_length", get["context_length"])
            fast, slow = (half * np.log(context / (2 * np.pi * turns)) / np.log(base) for turns in (32, 1))
            fast, slow = max(np.floor(fast), 0), min(np.ceil(slow), self.head - 1)
            slowed = np.clip((np.arange(half) - fast) / max(slow - fast, 1e-3), 0, 1)
            turn = turn * (1 - slowed) + turn / factor * slowed
            stretch *= 1 + 0.1 * np.log(max(factor, 1))
        return turn, stretch

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + self.eps) * self.w[name]

    def rope(self, x: np.ndarray, first: int) -> np.ndarray:
        """x: [n_tokens, heads * head], tokens from position `first` on. A pair is a complex number: values 2i and
        2i + 1 of a llama head; i and i + half of Qwen's."""
        half = self.head // 2
        turn = self.stretch * np.exp(1j * np.arange(first, first + len(x))[:, None, None] * self.turn)
        axis = -1 if self.architecture == "llama" else -2
        pairs = x.reshape(len(x), -1, half, 2) if axis == -1 else x.reshape(len(x), -1, 2, half)
        turned = (pairs.take(0, axis) + 1j * pairs.take(1, axis)) * turn
        return np.stack([turned.real, turned.imag], axis=axis).reshape(x.shape)

    def head_norm(self, x: np.ndarray, name: str) -> np.ndarray:
        """x: [n_tokens, heads * head], every head through the norm of that name, if the model has it."""
        return self.norm(x.reshape(len(x), -1, self.head), name).reshape(x.shape) if name in self.w else x

    def attention(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        """q: the last len(q) of the len(k) tokens. Each query head h reads key/value head h // group."""
        group = self.n_heads // self.n_kv_heads
        q = q.reshape(len(q), self.n_heads, self.head)
        k, v = (np.repeat(a.reshape(len(a), self.n_kv_heads, self.head), group, axis=1) for a in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(self.head)
        future = np.arange(len(k))[None, :] > np.arange(len(k) - len(q), len(k))[:, None]
        scores = np.where(future, -np.inf, scores)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        return np.einsum("hqk,khd->qhd", weights, v).reshape(len(q), -1)

    def logits(self, ids: list[int]) -> np.ndarray:
        """[n_tokens, n_vocab], nothing rounded on the way."""
        w, x = self.w, self.w["token_embd.weight"][ids]
        for i in range(self.n_layers):
            b = f"blk.{i}."
            h = self.norm(x, b + "attn_norm.weight")
            q, k, v = (h @ w[f"{b}attn_{n}.weight"].T + w.get(f"{b}attn_{n}.bias", 0) for n in "qkv")
            q, k = self.head_norm(q, b + "attn_q_norm.weight"), self.head_norm(k, b + "attn_k_norm.weight")
            x = x + self.attention(self.rope(q, 0), self.rope(k, 0), v) @ w[b + "attn_output.weight"].T
            h = self.norm(x, b + "ffn_norm.weight")
            x = x + (silu(h @ w[b + "ffn_gate.weight"].T) * (h @ w[b + "ffn_up.weight"].T)) @ w[b + "ffn_down.weight"].T
        return self.norm(x, "output_norm.weight") @ w[self.output].T

    def stages(self, ids: list[int], trace: Arrays, before: list[Arrays] = ()) -> Arrays:
        """What each stage of `trace` (of tokens `ids`, after the traces `before`) should be, given its inputs there."""
        first = sum(len(t["embedding"]) for t in before)
        t = {name: array.astype(np.float64) for name, array in trace.items()}

        def times(x: np.ndarray, name: str) -> np.ndarray:
            return (as_q8_0(x) if name in self.quantized else x) @ self.w[name].T

        def cached(name: str) -> np.ndarray:
            """All tokens' keys or values, as f16 keeps them."""
            return np.concatenate([a[name] for a in (*before, trace)]).astype(np.float16).astype(np.float64)

        right, x = {"embedding": self.w["token_embd.weight"][ids]}, t["embedding"]
        for i in range(self.n_layers):
            b = f"blk.{i}."
            right[b + "attn_norm"] = self.norm(x, b + "attn_norm.weight")
            for n in "qkv":
                right[b + n] = times(t[b + "attn_norm"], f"{b}attn_{n}.weight")
            last = {n: b + n for n in "qkv"}  # the last stage so far of each
            for n in "qkv":
                if f"{b}attn_{n}.bias" in self.w:
                    right[f"{b}{n}_bias"] = t[last[n]] + self.w[f"{b}attn_{n}.bias"]
                    last[n] = f"{b}{n}_bias"
            for n in "qk":
                if f"{b}attn_{n}_norm.weight" in self.w:
                    right[f"{b}{n}_norm"] = self.head_norm(t[last[n]], f"{b}attn_{n}_norm.weight")
                    last[n] = f"{b}{n}_norm"
            for n in "qk":
                right[f"{b}{n}_rope"] = self.rope(t[last[n]], first)
            right[b + "heads"] = self.attention(t[b + "q_rope"], cached(b + "k_rope"), cached(last["v"]))
            right[b + "attn_output"] = times(t[b + "heads"], b + "attn_output.weight")
            right[b + "after_attention"] = x + t[b + "attn_output"]
            right[b + "ffn_norm"] = self.norm(t[b + "after_attention"], b + "ffn_norm.weight")
            for n in ("gate", "up"):
                right[b + n] = times(t[b + "ffn_norm"], f"{b}ffn_{n}.weight")
            right[b + "swiglu"] = silu(t[b + "gate"]) * t[b + "up"]
            right[b + "ffn_down"] = times(t[b + "swiglu"], b + "ffn_down.weight")
            right[b + "after_ffn"] = t[b + "after_attention"] + t[b + "ffn_down"]
            x = t[b + "after_ffn"]
        right["output_norm"] = self.norm(x[-1:], "output_norm.weight")
        right["logits"] = times(t["output_norm"], self.output)
        return right


def assert_stages(got: Arrays, right: Arrays, where: str = "") -> None:
    """Largest difference of each stage against that stage's largest value: rounding is 1e-6, a fault is near 1."""
    for name, array in right.items():
        error = np.abs(got[name] - array).max() / np.abs(array).max()
        assert error < 1e-5, f"{where}{name} is off by {error:.1e} of its largest value"


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def as_q8_0(x: np.ndarray) -> np.ndarray:
    """x after a trip through Q8_0: scale amax / 127 as f16, codes rint(x * (127 / amax)) in float32."""
    blocks = x.astype(np.float32).reshape(-1, 32)
    amax = np.abs(blocks).max(axis=1, keepdims=True)
    inverse = np.divide(np.float32(127), amax, out=np.zeros_like(amax), where=amax > 0)
    scale = (amax / np.float32(127)).astype(np.float16).astype(np.float64)
    return (np.rint(blocks * inverse) * scale).reshape(x.shape)
