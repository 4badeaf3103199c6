"""The llama architecture in PyTorch, with GGUF's names and its row order, so that export.py copies without permuting.

Shapes: B sequences, T tokens, E width, H query heads, K key/value heads, D values a head, F the feed-forward width.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Config:
    vocab: int = 4096
    width: int = 256
    layers: int = 8
    heads: int = 4
    kv_heads: int = 2
    ffn: int = 768
    context: int = 1024
    tied: bool = True  # the output matrix is the embedding
    dropout: float = 0.2  # of embeddings and of what each half layer adds; training only
    rope_base: float = 10000.0
    eps: float = 1e-5

    @property
    def head_width(self) -> int:
        return self.width // self.heads


def rotation(config: Config) -> Tensor:
    """[2, context, D/2]: cosine and sine of position * base^(-2i/D)."""
    frequency = config.rope_base ** (-torch.arange(0, config.head_width, 2) / config.head_width)
    angle = torch.outer(torch.arange(config.context), frequency)
    return torch.stack([angle.cos(), angle.sin()])


def rope(x: Tensor, turn: Tensor) -> Tensor:
    """Rotate the pairs (2i, 2i+1) of x [B, heads, T, D]: llama.cpp's NORM order. Hugging Face's is (i, i + D/2)."""
    cos, sin = turn[:, :x.shape[2]]
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


class Layer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        kv_width = config.kv_heads * config.head_width
        self.config = config
        self.attn_norm = nn.RMSNorm(config.width, config.eps)
        self.attn_q = nn.Linear(config.width, config.width, bias=False)
        self.attn_k = nn.Linear(config.width, kv_width, bias=False)
        self.attn_v = nn.Linear(config.width, kv_width, bias=False)
        self.attn_output = nn.Linear(config.width, config.width, bias=False)
        self.ffn_norm = nn.RMSNorm(config.width, config.eps)
        self.ffn_gate = nn.Linear(config.width, config.ffn, bias=False)
        self.ffn_up = nn.Linear(config.width, config.ffn, bias=False)
        self.ffn_down = nn.Linear(config.ffn, config.width, bias=False)
        self.dropout = nn.Dropout(config.dropout)

    def attention(self, x: Tensor, turn: Tensor) -> Tensor:
        q, k, v = (  # [B, T, heads * D] -> [B, heads, T, D]
            projection(x).unflatten(-1, (-1, self.config.head_width)).transpose(1, 2)
            for projection in (self.attn_q, self.attn_k, self.attn_v))
        y = F.scaled_dot_product_attention(rope(q, turn), rope(k, turn), v, is_causal=True, enable_gqa=True)
        return self.attn_output(y.transpose(1, 2).flatten(-2))

    def feed_forward(self, x: Tensor) -> Tensor:
        return self.ffn_down(F.silu(self.ffn_gate(x)) * self.ffn_up(x))

    def forward(self, x: Tensor, turn: Tensor) -> Tensor:  # [B, T, E] -> [B, T, E]
        x = x + self.dropout(self.attention(self.attn_norm(x), turn))
        return x + self.dropout(self.feed_forward(self.ffn_norm(x)))


class Llama(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.token_embd = nn.Embedding(config.vocab, config.width)
        self.blk = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.output_norm = nn.RMSNorm(config.width, config.eps)
        self.output = nn.Linear(config.width, config.vocab, bias=False)
        self.dropout = nn.Dropout(config.dropout)
        self.register_buffer("turn", rotation(config), persistent=False)
        self.apply(self.start)
        if config.tied:
            self.output.weight = self.token_embd.weight

    def start(self, module: nn.Module) -> None:
        """Normal(0, 0.02); smaller by sqrt(2 * layers) where a half layer adds to the residual stream."""
        if isinstance(module, (nn.Embedding, nn.Linear)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, Layer):
            for last in (module.attn_output, module.ffn_down):
                nn.init.normal_(last.weight, std=0.02 / (2 * self.config.layers) ** 0.5)

    def forward(self, ids: Tensor) -> Tensor:  # [B, T] -> logits [B, T, vocab]
        x = self.dropout(self.token_embd(ids))
        for layer in self.blk:
            x = layer(x, self.turn)
        return self.output(self.output_norm(x))


def load(path) -> Llama:
    """A model saved by train.py, in float32, ready to evaluate."""
    saved = torch.load(path, map_location="cpu", weights_only=True)
    model, weights = Llama(Config(**saved["config"])), saved["weights"]
    model.load_state_dict({"output.weight": weights["token_embd.weight"], **weights})
    return model.eval()
