"""Outlines of known models, and the map of a preset."""

import re

import pytest

import minfer_lib as mf
from minfer_lib.lessons import bits_per_weight, outline, preset_map
from minfer_lib.quantize.preset import tensor_formats

# Seed 2, §1.3, and llama-quantize's rules for Qwen3-8B
SIX_BITS = [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 31, 32, 33, 34, 35]


def test_q4_k_m_of_36_layers():
    formats = tensor_formats(outline("Qwen3-8B"), "Q4_K_M")
    for kind in ("attn_v", "ffn_down"):
        assert [i for i in range(36) if formats[f"blk.{i}.{kind}.weight"] == "Q6_K"] == SIX_BITS
    picture = preset_map(formats)
    assert picture.svg.count("<rect") == 7 * 36 + 2
    assert "attn_q: all Q4_K" in picture.alt and "ffn_down: Q4_K in layers 4 to 5" in picture.alt


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


def test_text_is_readable_and_squares_carry_a_digit():
    svg = preset_map(tensor_formats(outline("Qwen2.5-0.5B"), "Q5_K_M")).svg
    assert int(re.search(r'font-size="(\d+)"', svg)[1]) >= 11
    assert {"5", "8"} <= set(re.findall(r">(\d)</text>", svg))


def test_refusals():
    with pytest.raises(mf.ArgumentError, match="Qwen3-8B"):
        outline("nothing")
    with pytest.raises(mf.ArgumentError, match="no layer"):
        preset_map({"token_embd.weight": "Q4_0"})
