"""Whole random models of every architecture, scaling and format: the logits rule, beside llama.cpp's own logits."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from agreement import distance
from float_model import FloatModel

import minfer_lib as mf
from minfer_lib.model.config import ARCHITECTURES

MODELS = Path(__file__).parent.parent / "data" / "golden" / "models"
WHAT = {  # model -> (architecture, scaling, formats of its matrices)
    "llama_q4_k": ("llama", "none", "Q4_K Q6_K"),
    "llama_q4_0": ("llama", "none", "Q4_0 Q4_1"),
    "llama_rope_freqs": ("llama", "none", "F16 F32"),
    "llama_linear": ("llama", "linear", "F16"),
    "qwen2_q5": ("qwen2", "none", "Q5_0 Q5_1 Q5_K"),
    "qwen2_yarn": ("qwen2", "yarn", "F16"),
    "qwen3_q8": ("qwen3", "none", "Q2_K Q3_K Q8_0"),
    "qwen3_yarn": ("qwen3", "yarn", "F16"),
    "qwen3_iq4_nl": ("qwen3", "none", "IQ4_NL"),
    "qwen3_bf16_tied": ("qwen3", "none", "BF16 F16"),
}


def case_of(name):
    return json.loads((MODELS / f"{name}.json").read_text(encoding="utf-8"))


def logits_of(model, case):
    """Ours, after the prompt and after each further token."""
    session = model.session()
    return [session.feed(case["prompt"]), *(session.feed([token]) for token in case["then"])]


def exact_logits(name, case):
    """The same in exact arithmetic."""
    return FloatModel(MODELS / f"{name}.gguf").logits(case["prompt"] + case["then"])[len(case["prompt"]) - 1 :]


def limit(case, exact):
    """The logits rule: how far from exact arithmetic we may be, by how far llama.cpp is."""
    return 1.15 * distance(case["logits"], exact) + 0.001 * exact.std()


def test_no_model_is_forgotten():
    assert {path.stem for path in MODELS.glob("*.gguf")} == set(WHAT)


@pytest.mark.parametrize("name", WHAT)
def test_logits_are_as_near_to_exact_arithmetic_as_llama_cpps(name):
    model, case = mf.load_model(MODELS / f"{name}.gguf"), case_of(name)
    formats = " ".join(sorted({matrix.dot.format for matrix in model.matrices()}))
    assert (model.config.architecture, model.config.rope_scaling, formats) == WHAT[name]
    exact = exact_logits(name, case)
    assert distance(case["logits"], exact) < 0.03 * exact.std(), "llama.cpp computes another model than the yardstick"
    assert distance(logits_of(model, case), exact) <= limit(case, exact)


@pytest.mark.parametrize("name", ["llama_q4_k", "qwen2_q5", "qwen3_q8"])
def test_two_yardsticks_agree(name):
    """Ours, in float64, and the float32 one whose logits lie beside llama.cpp's."""
    case = case_of(name)
    exact = exact_logits(name, case)
    assert np.abs(exact - case["float"]).max() < 1e-4 * exact.std()


@pytest.mark.parametrize(
    "wrong",
    [
        {"rope_order": "pairs"},
        {"rope_scaling": "linear"},
        {"rope_magnitude": 1.2},
        {"rope_factor": 3.9},
        {"rope_context": 2000},
        {"rope_base": 1e5},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_the_rule_sees_a_wrong_rotation(wrong, monkeypatch):
    """A rule that a model with another RoPE meets too would be worth nothing."""
    model, case = mf.load_model(MODELS / "qwen3_yarn.gguf"), case_of("qwen3_yarn")
    if "rope_order" in wrong:
        monkeypatch.setitem(ARCHITECTURES, "qwen3", replace(ARCHITECTURES["qwen3"], **wrong))
    else:
        model.config = replace(model.config, **wrong)
    exact = exact_logits("qwen3_yarn", case)
    assert distance(logits_of(model, case), exact) > limit(case, exact)
