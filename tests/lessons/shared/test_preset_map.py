"""The map of a preset: a square for each matrix."""

import re

import pytest

import minfer_lib as mf
from minfer_lib.lessons import outline, preset_map
from minfer_lib.quantize.preset import tensor_formats

# llama-quantize's rules for Qwen3-8B: the layers whose attn_v and ffn_down get six bits
SIX_BITS = [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 31, 32, 33, 34, 35]


def test_q4_k_m_of_36_layers():
    formats = tensor_formats(outline("Qwen3-8B"), "Q4_K_M")
    for kind in ("attn_v", "ffn_down"):
        assert [i for i in range(36) if formats[f"blk.{i}.{kind}.weight"] == "Q6_K"] == SIX_BITS
    picture = preset_map(formats)
    assert picture.svg.count("<rect") == 7 * 36 + 2
    assert "attn_q: all Q4_K" in picture.alt and "ffn_down: Q4_K in layers 4 to 5" in picture.alt


def test_text_is_readable_and_squares_carry_a_digit():
    svg = preset_map(tensor_formats(outline("Qwen2.5-0.5B"), "Q5_K_M")).svg
    assert int(re.search(r'font-size="(\d+)"', svg)[1]) >= 11
    assert {"5", "8"} <= set(re.findall(r">(\d)</text>", svg))


def test_formats_without_a_layer_are_refused():
    with pytest.raises(mf.ArgumentError, match="no layer"):
        preset_map({"token_embd.weight": "Q4_0"})
