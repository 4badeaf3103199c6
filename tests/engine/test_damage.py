"""Damage: whatever a file says, kernels read inside it, nothing absurd is allocated, and NaN is no number."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_models import Spec, random_weights, write_model

import minfer_lib as mf
from minfer_lib.engine.perplexity import perplexity

A = [5, 17, 200, 3]


def load_and_run(path):
    try:
        model = mf.load_model(path, threads=2)
        logits = model.session().feed([0, 1, 2])
        assert logits.shape == (model.weights.n_vocab,)
        list(model.generate([0], max_tokens=2))
    except mf.MinferError:
        return False
    return True


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """(a whole tiny model's bytes, where its tensor data begin, a path to write damaged copies to)"""
    folder = tmp_path_factory.mktemp("damaged")
    path = write_model(folder / "whole.gguf", Spec(n_layers=1, format="Q8_0", rope_freqs=True))
    start = min(tensor.offset for tensor in mf.read_gguf(path).tensors.values())
    return path.read_bytes(), start, folder / "damaged.gguf"


def numbers_in(raw, start):
    """Where the values of the model's numeric metadata and the tensors' entries lie."""
    vocabulary = raw.index(b"tokenizer.ggml.tokens")
    infos = raw.index(b"tokenizer.chat_template")
    return [*range(24, vocabulary), *range(infos, start)]


def test_every_byte_of_metadata_and_tensor_entries_changed(damaged):
    raw, start, path = damaged
    path.write_bytes(raw)
    assert load_and_run(path)
    loaded = []
    for at in numbers_in(raw, start):
        for flip in (1, 0x80):
            copy = bytearray(raw)
            copy[at] ^= flip
            path.write_bytes(copy)
            loaded.append(load_and_run(path))
    assert 0 < sum(loaded) < len(loaded) / 2, "some changes are harmless, most are found"


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_anywhere_in_a_model(damaged, data):
    raw, start, path = damaged
    copy = bytearray(raw)
    where = st.sampled_from(numbers_in(raw, start)) | st.integers(0, len(raw) - 1)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(where)
        new = data.draw(
            st.binary(min_size=1, max_size=8) | st.sampled_from([bytes(4), b"\xff" * 4, b"\xff\xff\xff\x7f"])
        )
        copy[at : at + len(new)] = new
    path.write_bytes(copy[: len(raw)])
    load_and_run(path)


@pytest.mark.parametrize(
    "numbers",
    [
        {"n_heads": 2**20, "head_dim": 2},
        {"n_heads": 64, "n_kv_heads": 64},
        {"n_kv_heads": 4},
        {"ffn_width": 2**30},
        {"width": 2**20},
        {"n_layers": 512},
        {"head_dim": 2**20},
        {"head_dim": 2},
    ],
)
def test_numbers_larger_or_smaller_than_the_tensors(tmp_path, numbers):
    """The file's metadata describe another model than its tensors are."""
    path = write_model(tmp_path / "m.gguf", Spec(**numbers), random_weights(Spec()))
    with pytest.raises(mf.GgufError):
        mf.load_model(path)


def test_an_enormous_context_costs_nothing_until_it_is_asked_for(tiny):
    model = mf.load_model(tiny(context=2**31 - 1))
    assert model.context == 4096 and model.logits(A).shape == (265,)


@pytest.mark.parametrize("format_", ["F32", "Q8_0"])
def test_weights_that_are_not_numbers_end_in_an_error(tmp_path, format_):
    weights = random_weights(Spec())
    weights["output_norm.weight"][5] = np.nan
    model = mf.load_model(write_model(tmp_path / "m.gguf", Spec(format=format_), weights))
    with pytest.raises(mf.ArgumentError, match="NaN"):
        list(model.generate(A, max_tokens=1))


@pytest.mark.parametrize(("format_", "name"), [("Q8_0", "output.weight"), ("F32", "blk.1.ffn_up.weight")])
def test_floats_that_are_not_numbers_end_in_an_error(tmp_path, format_, name):
    """No quantizer sees these: they show in the logits alone."""
    weights = random_weights(Spec())
    weights[name][7, 5] = np.nan
    spec = Spec(format=format_, formats={"output": "F32"})
    model = mf.load_model(write_model(tmp_path / "m.gguf", spec, weights))
    with pytest.raises(mf.ArgumentError, match="NaN"):
        model.logits(A)
    with pytest.raises(mf.ArgumentError, match="NaN"):
        model.session().log_probabilities(A)
    with pytest.raises(mf.ArgumentError, match="NaN"):
        perplexity(model, "the " * 20, context=4)
