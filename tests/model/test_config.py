"""What a model must say about itself, and what is refused: by name, at load, never as wrong numbers later."""

import math
from dataclasses import replace

import gguf
import numpy as np
import pytest
from tiny_models import Spec, fused, random_weights, write_model

import minfer_lib as mf
from minfer_lib.model import kv_cache
from minfer_lib.model.config import read_config

GOOD = {
    "general.architecture": "llama",
    "llama.context_length": 2048,
    "llama.embedding_length": 64,
    "llama.block_count": 2,
    "llama.feed_forward_length": 96,
    "llama.attention.head_count": 4,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}

YARN = {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0}


def of(architecture, **changed):
    """GOOD of another architecture, with further keys (without the prefix; dots as two underscores)."""
    numbers = {key.partition(".")[2]: value for key, value in GOOD.items() if key != "general.architecture"}
    numbers |= {key.replace("__", "."): value for key, value in changed.items()}
    return {"general.architecture": architecture} | {f"{architecture}.{key}": v for key, v in numbers.items()}


def test_defaults_are_llama_cpps():
    config = read_config(GOOD)
    assert (config.n_heads, config.n_kv_heads, config.head_dim, config.rope_dim) == (4, 4, 16, 16)
    assert config.rope_base == 10000.0 and config.norm_eps == 1e-5 and config.context == 2048
    assert config.attention_scale == 0.25
    assert (config.rope_scaling, config.rope_factor, config.rope_magnitude) == ("none", 1.0, 1.0)


@pytest.mark.parametrize(
    ("architecture", "order", "head_norms"),
    [("llama", "pairs", False), ("qwen2", "halves", False), ("qwen3", "halves", True)],
)
def test_what_follows_from_the_architecture(architecture, order, head_norms):
    config = read_config(of(architecture))
    assert config == replace(read_config(GOOD), architecture=architecture)
    assert (config.kind.rope_order, config.kind.head_norms) == (order, head_norms)


def test_every_number_comes_from_its_key():
    config = read_config(
        GOOD
        | {
            "llama.attention.head_count_kv": 2,
            "llama.attention.key_length": 32,
            "llama.attention.value_length": 32,
            "llama.rope.dimension_count": 32,
            "llama.rope.freq_base": 5e5,
        }
    )
    assert (config.n_layers, config.width, config.ffn_width) == (2, 64, 96)
    assert (config.n_heads, config.n_kv_heads, config.head_dim, config.rope_dim) == (4, 2, 32, 32)
    assert config.rope_base == 5e5


@pytest.mark.parametrize("key", [key for key in GOOD if key != "general.architecture"])
def test_missing_key(key):
    with pytest.raises(mf.GgufError, match=f"{key} is missing"):
        read_config({k: v for k, v in GOOD.items() if k != key})


@pytest.mark.parametrize("value", [0, -1, 1.5, "12", True, 2**31, 2**64 - 1])
@pytest.mark.parametrize(
    "key", ["context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count"]
)
def test_impossible_whole_numbers(key, value):
    with pytest.raises(mf.GgufError, match=f"llama.{key}"):
        read_config(GOOD | {f"llama.{key}": value})


@pytest.mark.parametrize("value", [0.0, -1e-5, float("nan"), float("inf"), "x", True, 1e-300, 1e300])
@pytest.mark.parametrize(
    "key",
    [
        *("attention.layer_norm_rms_epsilon", "rope.freq_base"),
        *("rope.scaling.factor", "rope.scale_linear", "rope.scaling.attn_factor"),
    ],
)
def test_impossible_numbers(key, value):
    with pytest.raises(mf.GgufError, match=f"llama.{key}"):
        read_config(GOOD | {f"llama.{key}": value})


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"block_count": 513}, "512"),
        ({"attention.head_count": 5}, "does not divide"),
        ({"attention.head_count": 128}, "does not divide"),
        ({"attention.head_count_kv": 3}, "cannot share"),
        ({"attention.head_count_kv": 8}, "cannot share"),
        ({"rope.dimension_count": 8}, "rope.dimension_count"),
        ({"attention.key_length": 15}, "pairs"),
        ({"rope.scaling.type": "yarn", "rope.scaling.factor": 2.0, "rope.freq_base": 1.0}, "above 1"),
    ],
)
def test_numbers_that_do_not_fit_together(changed, says):
    with pytest.raises(mf.GgufError, match=says):
        read_config(GOOD | {f"llama.{key}": value for key, value in changed.items()})


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"llama.rope.scaling.type": "longrope"}, "'longrope' is not built; built are none, linear and yarn"),
        ({"llama.rope.scaling.type": ["linear"]}, "RoPE scaling"),
        (YARN | {"llama.rope.scaling.yarn_beta_fast": 16.0}, "beta_fast than 32"),
        (YARN | {"llama.rope.scaling.yarn_beta_slow": 2.0}, "beta_slow than 1"),
        (YARN | {"llama.rope.scaling.yarn_ext_factor": 0.5}, "ext_factor than 1"),
        (YARN | {"llama.rope.scaling.yarn_ext_factor": 0.0}, "ext_factor than 1"),
        (YARN | {"llama.rope.scaling.yarn_beta_fast": -1.0}, "beta_fast than 32"),
        (YARN | {"llama.rope.scaling.yarn_attn_factor": 1.0}, "attn_factor than 1.13863"),
        (YARN | {"llama.rope.scaling.yarn_log_multiplier": 0.1}, "log multiplier"),
        ({"llama.attention.scale": 0.1}, r"attention scale of its own \(llama.attention.scale = 0.1\)"),
        ({"llama.attention.sliding_window": 512}, "sliding windows.*sliding_window = 512"),
        ({"llama.expert_count": 8}, "mixtures of experts.*expert_count = 8.*plain dense llama models are"),
        ({"llama.logit_scale": 0.5}, "logit_scale"),
        ({"llama.final_logit_softcapping": 30.0}, "capped logits"),
        ({"llama.attention.causal": False}, "both ways"),
        ({"llama.attention.value_length": 8}, "value heads"),
        ({"llama.attention.head_count": [4, 4]}, "head_count differs from layer to layer"),
        ({"llama.feed_forward_length": [96, 64]}, "feed_forward_length differs"),
        ({"split.count": 2}, "split over several files"),
        ({"split.count": "many"}, "split over several files"),
        ({"general.architecture": "qwen3moe"}, "'qwen3moe' is not built; built are: llama, qwen2, qwen3"),
        ({"general.architecture": ["llama"]}, "is not built"),
        ({"general.architecture": ""}, "not a language model"),
    ],
)
def test_variants_that_would_give_wrong_numbers(changed, says):
    with pytest.raises(mf.UnsupportedError, match=says):
        read_config(GOOD | changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 4.0},
        {"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 0.0},
        {"llama.rope.scaling.original_context_length": 0},
        {"llama.rope.scaling.original_context_length": 512},
        {"llama.rope.scaling.type": "linear"},
        {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 1.0},
        {"llama.rope.scaling.finetuned": True},
        {"llama.attention.causal": True},
        {"split.count": 1},
        {"split.count": 0},
        {"llama.expert_count": 0},
    ],
)
def test_keys_that_change_nothing(changed):
    assert read_config(GOOD | changed) == read_config(GOOD)


def test_a_file_that_is_no_model():
    with pytest.raises(mf.UnsupportedError, match="no general.architecture"):
        read_config({})


def test_scaling():
    """A factor divides; the old key means the same; YaRN adds a magnitude (llama.cpp's rule)."""
    linear = read_config(GOOD | {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0})
    assert (linear.rope_scaling, linear.rope_factor, linear.rope_magnitude) == ("linear", 4.0, 1.0)
    assert read_config(GOOD | {"llama.rope.scaling.factor": 4.0}) == linear
    assert read_config(GOOD | {"llama.rope.scale_linear": 4.0}) == linear
    yarn = read_config(GOOD | YARN | {"llama.rope.scaling.original_context_length": 512})
    assert (yarn.rope_scaling, yarn.rope_factor, yarn.rope_context, yarn.context) == ("yarn", 4.0, 512, 2048)
    assert yarn.rope_magnitude == pytest.approx(1 + 0.1 * math.log(4))
    assert read_config(GOOD | YARN).rope_context == 2048
    zero = {"llama.rope.scaling.original_context_length": 0, "llama.rope.scaling.yarn_ext_factor": -1.0}
    assert read_config(GOOD | YARN | zero) == read_config(GOOD | YARN), "both mean: as llama.cpp chooses"
    as_converted = {"yarn_beta_fast": 32.0, "yarn_beta_slow": 1.0, "yarn_attn_factor": 1.1386294}
    assert read_config(GOOD | YARN | {f"llama.rope.scaling.{k}": v for k, v in as_converted.items()}).rope_factor == 4.0
    assert read_config(GOOD | {"llama.rope.scaling.attn_factor": 1.5}).rope_magnitude == 1.5


# Files


def test_other_architectures_are_refused_by_name(tiny):
    for architecture in ("qwen2moe", "phi3", "gemma3"):
        with pytest.raises(mf.UnsupportedError, match=f"'{architecture}' is not built; built are: llama, qwen2, qwen3"):
            mf.load_model(tiny(architecture=architecture))


def test_k_quants_load(tmp_path):
    """The gguf package does not write K-quants; with bytes of zero all weights are zero, and so are the logits."""
    path = tmp_path / "k.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    spec = Spec(width=256, ffn_width=256)
    for add, value in (
        ("context_length", 64), ("embedding_length", 256), ("block_count", 2), ("feed_forward_length", 256),
        ("head_count", 4), ("head_count_kv", 2), ("layer_norm_rms_eps", 1e-5),
    ):  # fmt: skip
        getattr(writer, f"add_{add}")(value)
    for name, values in random_weights(spec).items():
        if values.ndim == 2:
            raw = np.zeros((len(values), values.shape[1] // 256 * 144), np.uint8)
            writer.add_tensor(name, raw, raw_dtype=gguf.GGMLQuantizationType.Q4_K)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert mf.read_gguf(path).tensors["output.weight"].format == "Q4_K"
    assert not mf.load_model(path).logits([1, 2]).any()


@pytest.mark.parametrize(
    "name",
    [
        "token_embd.weight",
        "output_norm.weight",
        "blk.0.attn_norm.weight",
        "blk.1.attn_v.weight",
        "blk.1.ffn_down.weight",
    ],
)
def test_a_missing_tensor(tmp_path, name):
    weights = random_weights(Spec())
    del weights[name]
    with pytest.raises(mf.GgufError, match=f"'{name}' is missing"):
        mf.load_model(write_model(tmp_path / "m.gguf", Spec(), weights))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("token_embd.weight", (265, 32)),
        ("token_embd.weight", (264, 64)),  # one row less than the vocabulary has tokens
        ("output.weight", (264, 64)),
        ("output_norm.weight", (63,)),
        ("blk.0.attn_norm.weight", (64, 1)),
        ("blk.0.attn_q.weight", (32, 64)),
        ("blk.0.attn_k.weight", (64, 64)),
        ("blk.1.attn_output.weight", (64, 32)),
        ("blk.1.ffn_up.weight", (64, 96)),  # transposed
        ("blk.1.ffn_down.weight", (96, 64)),
    ],
)
def test_a_tensor_of_another_shape(tmp_path, name, shape):
    weights = random_weights(Spec()) | {name: np.zeros(shape, np.float32)}
    with pytest.raises(mf.GgufError, match=f"'{name}' has shape"):
        mf.load_model(write_model(tmp_path / "m.gguf", Spec(), weights))


@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        ("llama", "blk.2.attn_q.weight"),
        ("llama", "blk.0.attn_q_norm.weight"),
        ("llama", "blk.0.attn_output.bias"),
        ("llama", "blk.0.ffn_up.bias"),
        ("llama", "position_embd.weight"),
        ("qwen2", "output.bias"),
        ("qwen2", "blk.0.attn_k_norm.weight"),
        ("qwen2", "rope_freqs.weight"),
        ("qwen3", "cls.output.weight"),
    ],
)
def test_a_tensor_that_nothing_would_use(tmp_path, architecture, name):
    spec = Spec(architecture=architecture)
    weights = random_weights(spec) | {name: np.ones(64, np.float32)}
    with pytest.raises(mf.UnsupportedError, match=name):
        mf.load_model(write_model(tmp_path / "m.gguf", spec, weights))


def test_both_the_fused_matrix_and_its_parts(tmp_path):
    """Which of the two should run? Neither is taken silently."""
    weights = random_weights(Spec())
    with pytest.raises(mf.UnsupportedError, match="attn_k.weight"):
        mf.load_model(write_model(tmp_path / "m.gguf", Spec(), weights | fused(weights)))


@pytest.mark.parametrize(
    ("changed", "name", "shape"),
    [
        ({"qkv_bias": True}, "blk.1.attn_k.bias", (64,)),
        ({"architecture": "qwen3"}, "blk.1.attn_q_norm.weight", (64,)),
        ({"fused": True}, "blk.0.attn_qkv.weight", (64, 64)),
        ({"fused": True, "qkv_bias": True}, "blk.0.attn_qkv.bias", (64,)),
    ],
)
def test_a_vector_of_another_shape(tmp_path, changed, name, shape):
    spec = Spec(**changed)
    weights = random_weights(spec)
    assert name in weights
    with pytest.raises(mf.GgufError, match=f"'{name}' has shape"):
        mf.load_model(write_model(tmp_path / "m.gguf", spec, weights | {name: np.zeros(shape, np.float32)}))


@pytest.mark.parametrize("name", ["blk.0.attn_q_norm.weight", "blk.1.attn_k_norm.weight"])
def test_qwen3_without_a_head_norm(tmp_path, name):
    spec = Spec(architecture="qwen3")
    weights = random_weights(spec)
    del weights[name]
    with pytest.raises(mf.GgufError, match=f"'{name}' is missing"):
        mf.load_model(write_model(tmp_path / "m.gguf", spec, weights))


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan])
def test_rope_factors_that_no_angle_can_be_divided_by(tmp_path, factor):
    spec = Spec(rope_freqs=True)
    weights = random_weights(spec)
    weights["rope_freqs.weight"][3] = factor
    with pytest.raises(mf.GgufError, match="rope_freqs"):
        mf.load_model(write_model(tmp_path / "m.gguf", spec, weights))


def test_a_context_that_no_memory_holds(tiny, monkeypatch):
    def refuse(*_):
        raise MemoryError

    model = mf.load_model(tiny())
    monkeypatch.setattr(kv_cache.np, "zeros", refuse)
    with pytest.raises(mf.ArgumentError, match="a context of 64 tokens needs 0 GB.*smaller"):
        model.session()
