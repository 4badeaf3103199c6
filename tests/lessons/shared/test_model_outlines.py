"""Outlines of known models: formats and sizes from shapes alone."""

import pytest

import minfer_lib as mf
from minfer_lib.lessons import bits_per_weight, outline
from minfer_lib.quantize.preset import tensor_formats


def test_q2_k_and_the_tied_embedding():
    q2 = tensor_formats(outline("Qwen3-8B"), "Q2_K")
    assert [q2[f"blk.5.{kind}.weight"] for kind in ("attn_v", "attn_output", "ffn_down")] == ["Q4_K", "Q3_K", "Q3_K"]
    assert tensor_formats(outline("Qwen2.5-0.5B"), "Q4_0")["token_embd.weight"] == "Q8_0"


def test_sizes():
    small = outline("Qwen2.5-0.5B")
    assert bits_per_weight(small, dict.fromkeys(small.tensors, "F16")) == 16
    assert bits_per_weight(small, dict.fromkeys(small.tensors, "Q4_0")) == 4.5
    assert sum(t.shape[0] * t.shape[1] for t in small.tensors.values()) == pytest.approx(494e6, rel=0.01)
    assert len(outline("Qwen3-8B").tensors) == 7 * 36 + 2


def test_what_has_no_outline_is_refused():
    with pytest.raises(mf.ArgumentError, match="Qwen3-8B"):
        outline("nothing")
