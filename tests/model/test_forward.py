"""The forward pass beside an independent one in float64: every stage, every weight format, every architecture."""

from pathlib import Path

import numpy as np
import pytest
from float_model import FloatModel, assert_stages
from tiny_models import Spec, random_weights, write_model

import minfer_lib as mf

ROOT = Path(__file__).parents[2]
IDS = [5, 17, 200, 3, 99, 17, 254, 42, 7, 64, 128]  # eleven tokens, one of them twice
FORMATS = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0")

YARN = {
    "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 600,
    "rope.scaling.attn_factor": 0.9,
}  # fmt: skip

VARIANTS = {
    "plain": {},
    "tied": {"tied": True},
    "one kv head": {"n_kv_heads": 1},
    "no GQA": {"n_kv_heads": 4},
    "odd number of heads": {"width": 96, "n_heads": 3, "n_kv_heads": 1},
    "heads wider than the stream": {"head_dim": 32},
    "heads narrower": {"head_dim": 8},
    "one layer": {"n_layers": 1},
    "rope_freqs": {"rope_freqs": True},
    "eps": {"eps": 0.5},
    "rope base": {"rope_base": 100.0},
    "K = 160": {"width": 160, "ffn_width": 32, "n_heads": 5, "n_kv_heads": 5},
    "data aligned to 1 byte": {"alignment": 1},
    "data aligned to 4096 bytes": {"alignment": 4096},
    "llama, biases": {"qkv_bias": True},
    "llama, fused": {"fused": True, "qkv_bias": True},
    "qwen2": {"architecture": "qwen2", "qkv_bias": True},
    "qwen2, fused": {"architecture": "qwen2", "qkv_bias": True, "fused": True, "n_kv_heads": 1},
    "qwen3": {"architecture": "qwen3", "head_dim": 32, "rope_base": 1e6},
    "qwen3, biases": {"architecture": "qwen3", "qkv_bias": True, "tied": True},
    "vectors in F16": {"architecture": "qwen3", "qkv_bias": True, "vectors": "F16"},
    "vectors in BF16": {"rope_freqs": True, "vectors": "BF16"},
    "linear": {"metadata": {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}},
    "linear, by the old key": {"architecture": "qwen2", "metadata": {"rope.scale_linear": 2.5}},
    "yarn": {"metadata": YARN},
    "yarn and rope_freqs": {"metadata": YARN, "rope_freqs": True},
    "qwen3, yarn": {"architecture": "qwen3", "head_dim": 32, "rope_base": 1e6, "metadata": YARN},
    "magnitude": {"metadata": {"rope.scaling.type": "none", "rope.scaling.attn_factor": 1.25}},
    "formats mixed": {
        "formats": {"attn_q": "Q4_0", "attn_k": "F16", "attn_v": "Q8_0", "ffn_up": "BF16", "output": "Q4_1"}
    },
}


@pytest.mark.parametrize("format_", FORMATS)
def test_every_stage_in_every_format(tiny, format_):
    path = tiny(format=format_)
    trace = mf.load_model(path).session().trace(IDS)
    assert_stages(trace, FloatModel(path).stages(IDS, trace), f"{format_}: ")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("format_", ["F32", "Q8_0"])
def test_every_stage_of_every_variant(tiny, variant, format_):
    spec = {"format": format_} | VARIANTS[variant]
    if spec.get("head_dim") == 8:
        spec["n_heads"], spec["n_kv_heads"] = 8, 2  # rows of attn_output stay whole blocks
    path = tiny(**spec)
    session, float_model = mf.load_model(path).session(), FloatModel(path)
    first = session.trace(IDS)
    assert_stages(first, float_model.stages(IDS, first), f"{variant}: ")
    more = [11, 12, 250]
    then = session.trace(more)
    assert_stages(then, float_model.stages(more, then, [first]), f"{variant}, later positions: ")


@pytest.mark.parametrize("variant", VARIANTS)
def test_float_logits_of_the_whole_pass(tiny, variant):
    """From ids to logits at every position; only the f16 cache and float32 lie between the two."""
    path = tiny(**VARIANTS[variant] | {"formats": {}})
    session, right = mf.load_model(path).session(), FloatModel(path).logits(IDS)
    for position, token in enumerate(IDS):
        error = np.abs(session.feed([token]) - right[position]).max() / right[position].std()
        assert error < 5e-3, f"position {position}: {error:.1e} standard deviations"


@pytest.mark.parametrize(
    ("format_", "limit"), [("F16", 2e-3), ("BF16", 2e-3), ("Q4_0", 0.03), ("Q4_1", 0.03), ("Q8_0", 0.03)]
)
def test_logits_stay_near_the_float_model_of_the_same_weights(tiny, format_, limit):
    """Rounding the activations to Q8_0 costs about a hundredth of the logits' spread (rms), at every position."""
    path = tiny(format=format_)
    model, right = mf.load_model(path), FloatModel(path).logits(IDS)
    for n in range(1, len(IDS) + 1):
        error = np.sqrt(((model.logits(IDS[:n]) - right[n - 1]) ** 2).mean()) / right[n - 1].std()
        assert error < limit, f"after {n} tokens: {error:.4f}"


@pytest.mark.parametrize(
    ("what", "changed"),
    [("eps", {"eps": 0.1}), ("rope base", {"rope_base": 20000.0}), ("rope_freqs", {"rope_freqs": True})],
)
def test_numbers_come_from_the_file(tiny, what, changed):
    """Models that differ in one number differ in their logits; RoPE's base only shows after position 0."""
    weights = random_weights(Spec(rope_freqs=True))
    plain = {name: w for name, w in weights.items() if name != "rope_freqs.weight"}
    folder = tiny().parent
    a = write_model(folder / "a.gguf", Spec(), plain)
    b = write_model(folder / "b.gguf", Spec(**changed), weights if "rope_freqs" in changed else plain)
    a, b = mf.load_model(a), mf.load_model(b)
    assert not np.allclose(a.logits(IDS), b.logits(IDS), atol=1e-3), f"{what} makes no difference"
    if what != "eps":
        assert np.array_equal(a.logits(IDS[:1]), b.logits(IDS[:1])), f"{what} must not show at position 0"


def test_gqa_repeats_each_kv_head_for_neighbouring_query_heads(tmp_path):
    """4 heads on 2 KV heads are 4 heads on 4 KV heads whose weights come in equal pairs (0, 0, 1, 1)."""
    spec = Spec(n_heads=4, n_kv_heads=2, format="Q8_0")
    weights = random_weights(spec)
    repeated = {
        name: np.repeat(w.reshape(2, 16, -1), 2, axis=0).reshape(64, -1)
        if ".attn_k." in name or ".attn_v." in name
        else w
        for name, w in weights.items()
    }
    gqa = write_model(tmp_path / "gqa.gguf", spec, weights)
    mha = write_model(tmp_path / "mha.gguf", Spec(n_heads=4, n_kv_heads=4, format="Q8_0"), repeated)
    assert np.array_equal(mf.load_model(gqa).logits(IDS), mf.load_model(mha).logits(IDS))


def test_attention_as_sharp_as_it_gets(tmp_path):
    """Scores in the hundreds: exp overflows unless the highest is subtracted first."""
    spec, weights = Spec(), random_weights(Spec())
    for name in weights:
        if ".attn_q." in name:
            weights[name] *= 300
    path = write_model(tmp_path / "sharp.gguf", spec, weights)
    trace = mf.load_model(path).session().trace(IDS)
    for name, array in FloatModel(path).stages(IDS, trace).items():  # a score's rounding grows with the score
        assert np.abs(trace[name] - array).max() / np.abs(array).max() < 1e-3, name


@pytest.mark.parametrize(
    ("spec", "between"),
    [
        ({}, ""),
        ({"architecture": "qwen2", "qkv_bias": True}, "q_bias k_bias v_bias"),
        ({"architecture": "qwen3"}, "q_norm k_norm"),
        ({"architecture": "qwen3", "qkv_bias": True}, "q_bias k_bias v_bias q_norm k_norm"),
    ],
)
def test_trace_has_every_stage_once_in_order(tiny, spec, between):
    trace = mf.load_model(tiny(**spec)).session().trace(IDS)
    stages = (
        f"attn_norm q k v {between} q_rope k_rope heads attn_output after_attention "
        "ffn_norm gate up swiglu ffn_down after_ffn"
    ).split()
    layers = [f"blk.{i}.{stage}" for i in range(2) for stage in stages]
    assert list(trace) == ["embedding", *layers, "output_norm", "logits"]
    for name, array in trace.items():
        assert array.dtype == np.float32
        assert len(array) == (1 if name in ("output_norm", "logits") else len(IDS)), name


SPECS = [
    {"format": "F32"},
    {"format": "Q4_1"},
    {"format": "Q8_0", "architecture": "qwen2", "qkv_bias": True},
    {"format": "Q8_0", "architecture": "qwen3", "qkv_bias": True},
]


@pytest.mark.parametrize("spec", SPECS)
def test_trace_is_the_same_pass_as_feed(tiny, spec):
    model = mf.load_model(tiny(**spec))
    fed, traced = model.session(), model.session()
    assert np.array_equal(fed.feed(IDS), traced.trace(IDS)["logits"][0])
    assert np.array_equal(fed.feed([9]), traced.feed([9]))
    assert fed.ids == traced.ids == [*IDS, 9]


@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.parametrize("spec", SPECS)
def test_threads_do_not_change_a_bit(tiny, spec, threads):
    one, many = (mf.load_model(tiny(**spec), threads=n).session() for n in (1, threads))
    traces = one.trace(IDS), many.trace(IDS)
    assert all(np.array_equal(traces[0][name], traces[1][name]) for name in traces[0])
    assert np.array_equal(one.feed([3]), many.feed([3]))  # one token, in one call


def test_threads_do_not_change_a_bit_where_formats_mix():
    """q, k and v are one range of rows: two workers may be in matrices of different formats, each unpacking tiles."""
    path = ROOT / "data" / "golden" / "models" / "qwen2_q5.gguf"
    one, many = (mf.load_model(path, threads=n, context=256) for n in (1, 3))
    assert len({matrix.dot.format for matrix in one.matrices()[:3]}) > 1
    for n in (1, 7, 16, 128):
        ids = [(7 * i + 3) % 250 for i in range(n)]
        right = one.logits(ids)
        assert all(np.array_equal(right, many.logits(ids)) for _ in range(5)), n


def test_the_longest_pieces_and_the_shortest_agree(tiny):
    """A prompt over the 128 tokens of a pass, against the same tokens one by one."""
    model = mf.load_model(tiny(context=300, format="Q8_0"))
    ids = [(7 * i + 3) % 256 for i in range(290)]
    session = model.session()
    for token in ids:
        last = session.feed([token])
    assert np.array_equal(model.logits(ids), last)


def test_a_trace_over_several_pieces_covers_all_tokens(tiny):
    path = tiny(context=300, format="Q8_0")
    ids = [(5 * i + 1) % 256 for i in range(200)]
    trace = mf.load_model(path).session().trace(ids)
    assert_stages(trace, FloatModel(path).stages(ids, trace))
