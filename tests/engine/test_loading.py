"""What load_model takes and refuses, and what a model says of itself."""

import pytest
from tiny_models import Spec, write_model

import minfer_lib as mf

A = [5, 17, 200, 3]


@pytest.mark.parametrize("context", [0, -1, 65, 1.0, "8", True])
def test_impossible_contexts(tiny, context):
    with pytest.raises(mf.ArgumentError, match="context is a whole number from 1 to 64"):
        mf.load_model(tiny(), context=context)


def test_a_model_without_a_vocabulary(tiny):
    model = mf.load_model(tiny(vocabulary=False))
    assert len(list(model.generate(A, max_tokens=5))) == 5
    with pytest.raises(mf.UnsupportedError, match="no vocabulary"):
        _ = model.tokenizer


def test_a_model_with_a_vocabulary_that_is_not_built(tmp_path):
    path = write_model(tmp_path / "m.gguf", Spec(vocabulary=False, metadata={"tokenizer.ggml.model": "t5"}))
    model = mf.load_model(path)
    model.logits(A)
    with pytest.raises(mf.UnsupportedError, match="t5"):
        _ = model.tokenizer


def test_other_devices(tiny):
    for device in ("cuda", "mps", ""):
        with pytest.raises(mf.UnsupportedError, match=f"device '{device}' is not built yet"):
            mf.load_model(tiny(), device=device)


def test_no_model_there(tmp_path):
    with pytest.raises(mf.ModelMissingError, match="nowhere.gguf.*minfer fetch"):
        mf.load_model(tmp_path / "nowhere.gguf")


@pytest.mark.parametrize("threads", [0, -2, 1.5, "2"])
def test_impossible_threads(tiny, threads):
    with pytest.raises(mf.ArgumentError, match="threads"):
        mf.load_model(tiny(), threads=threads)


def test_what_a_model_says_of_itself(tiny):
    model = mf.load_model(str(tiny()), threads=3)
    assert repr(model) == f"Model({tiny().name!r}, 2 layers, 3 threads)"
    assert model.config.width == 64 and model.weights.n_vocab == 265 and model.threads == 3
    assert len(model.matrices()) == 15


def test_an_unknown_policy(tiny):
    with pytest.raises(mf.ArgumentError, match="policy is 'even' or 'ggml'"):
        mf.load_model(tiny(), policy="fair")
