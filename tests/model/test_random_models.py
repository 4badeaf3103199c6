"""Models of any shape that their metadata allows: each stage beside the float model."""

from float_model import FloatModel, assert_stages
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import Spec, write_model

import minfer_lib as mf

FACTORS = st.sampled_from([0.5, 1.0, 2.0, 7.5])


@st.composite
def specs(draw):
    """A Spec of few, odd numbers. Rows of blocks are multiples of 32 values; floats may have any number of them."""
    architecture = draw(st.sampled_from(["llama", "qwen2", "qwen3"]))
    format_ = draw(st.sampled_from(["F32", "F16", "BF16", "Q8_0"]))
    kv_heads, head = draw(st.integers(1, 3)), 2 * draw(st.integers(2, 25))
    heads = kv_heads * draw(st.integers(1, 3))
    blocks = format_ == "Q8_0"
    widths = st.integers(1, 5).map(lambda n: 32 * n) if blocks else st.integers(16, 100)
    metadata = {}
    if draw(st.booleans()):
        metadata["rope.scaling.type"] = draw(st.sampled_from(["none", "linear", "yarn"]))
        metadata["rope.scaling.factor"] = draw(FACTORS)
        metadata["rope.scaling.attn_factor"] = draw(FACTORS)
        metadata["rope.scaling.original_context_length"] = draw(st.integers(1, 5000))
    return Spec(
        architecture=architecture,
        format=format_,
        formats={"attn_output": "F16"} if blocks and heads * head % 32 else {},
        width=draw(widths),
        ffn_width=draw(widths),
        n_layers=draw(st.integers(1, 2)),
        n_heads=heads,
        n_kv_heads=kv_heads,
        head_dim=head,
        eps=draw(st.sampled_from([1e-6, 1e-5, 0.1])),
        rope_base=draw(st.sampled_from([10.0, 1e4, 1e6])),
        tied=draw(st.booleans()),
        qkv_bias=draw(st.booleans()),
        fused=draw(st.booleans()),
        rope_freqs=architecture == "llama" and draw(st.booleans()),
        vocabulary=False,
        metadata=metadata,
    )


@given(spec=specs(), ids=st.lists(st.integers(0, 255), min_size=2, max_size=9), threads=st.integers(1, 3))
@settings(max_examples=60)
def test_every_stage(spec, ids, threads, tmp_path_factory):
    path = write_model(tmp_path_factory.mktemp("random") / "m.gguf", spec)
    session, right = mf.load_model(path, threads=threads).session(), FloatModel(path)
    first = session.trace(ids[:-1])
    assert_stages(first, right.stages(ids[:-1], first))
    last = session.trace(ids[-1:])
    assert_stages(last, right.stages(ids[-1:], last, [first]), "one token: ")
