"""The model as a list: everything that happens to a token, in order. The engine, the timings and the lessons read it.

Operands are buffers by name, f32[n, width] for n tokens, and the weights of the layer. A `Phase` ends where a worker
needs what others have computed.
"""

from __future__ import annotations

from minfer_lib.model.activations import Quantize
from minfer_lib.model.attend import Attend
from minfer_lib.model.config import Config
from minfer_lib.model.heads import Bias, HeadNorm
from minfer_lib.model.linear import Add, MatMul
from minfer_lib.model.norm import Norm
from minfer_lib.model.operation import Phase
from minfer_lib.model.rope import Rope
from minfer_lib.model.swiglu import SwiGlu
from minfer_lib.model.weights import Layer, Weights

FFN_ROWS = 128  # rows of gate and up before SwiGLU reads them, so that it finds both products in the core's cache


def widths(c: Config) -> dict[str, int]:
    """The buffers: how many values of each a token has."""
    return {
        "x": c.width,  # the residual stream: what the layers add to
        "h": c.width,  # its norm
        "q": c.n_heads * c.head_dim,
        "k": c.n_kv_heads * c.head_dim,
        "v": c.n_kv_heads * c.head_dim,
        "heads": c.n_heads * c.head_dim,  # what each head of attention found
        "out": c.width,  # what a matrix adds to x
        "gate": c.ffn_width,
        "up": c.ffn_width,
        "act": c.ffn_width,  # silu(gate) * up
    }


def layer(c: Config, w: Layer) -> list[Phase]:
    """A layer's operations. `h`, `heads` and `act` are quantized to the formats that the matrices after them take."""
    biases = {"q": w.q_bias, "k": w.k_bias, "v": w.v_bias}
    has_bias = any(bias is not None for bias in biases.values())
    return [
        Phase(
            Norm("attn_norm", x="x", weight=w.attn_norm, out="h"),  # h[n, width] = x / rms(x) * weight
            Quantize("attn_norm_quantize", x="h"),
        ),
        Phase(MatMul("qkv", a="h", q=w.q, k=w.k, v=w.v)),  # q[n, n_heads * head_dim], k and v[n, n_kv_heads * head_dim]
        Phase(
            *([Bias("bias", **biases)] if has_bias else []),  # added to q, k, v
            *([HeadNorm("head_norm", q=w.q_norm, k=w.k_norm)] if c.kind.head_norms else []),  # of each head of q and k
            Rope("rope"),  # turns each head of q and k, [head_dim]; writes k and v into the cache
        ),
        Phase(Attend("attention", q="q", out="heads")),  # heads = softmax(q · keys * scale) · values, as q
        Phase(Quantize("heads_quantize", x="heads")),
        Phase(
            MatMul("attn_output", a="heads", out=w.attn_output),  # out[n, width]
            Add("attn_add", to="x", y="out", stage="after_attention"),  # x += out
        ),
        Phase(
            Norm("ffn_norm", x="x", weight=w.ffn_norm, out="h"),
            Quantize("ffn_norm_quantize", x="h"),
        ),
        Phase(
            MatMul("gate", a="h", gate=w.gate),  # gate[n, ffn_width]
            MatMul("up", a="h", up=w.up),  # up[n, ffn_width]
            SwiGlu("swiglu", gate="gate", up="up", out="act"),  # act = silu(gate) * up
            at_once=FFN_ROWS,
        ),
        Phase(Quantize("act_quantize", x="act")),
        Phase(
            MatMul("ffn_down", a="act", out=w.down),  # out[n, width]
            Add("ffn_add", to="x", y="out", stage="after_ffn"),
        ),
    ]


def output(w: Weights) -> list[Phase]:
    """After the last layer, for those tokens only whose logits are wanted."""
    return [
        Phase(
            Norm("output_norm", x="x", weight=w.output_norm, out="h"),
            Quantize("output_norm_quantize", x="h"),
        ),
        Phase(MatMul("logits", a="h", logits=w.output)),  # logits[wanted, n_vocab]
    ]
