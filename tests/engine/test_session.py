"""Model and Session as a caller uses them, on tiny models; and the real model beside llama.cpp."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from agreement import clear_steps
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_models import Spec, write_model

import minfer_lib as mf
from minfer_lib import model_files
from minfer_lib.engine.perplexity import perplexity

A, B, C = [5, 17, 200, 3], [99, 98, 97], [42, 7, 64, 128, 5]


@pytest.fixture
def model(tiny):
    return mf.load_model(tiny(format="Q8_0"))


# The context


def test_feed_in_pieces_is_feed_at_once(model):
    at_once = model.logits(A + B + C)
    session = model.session()
    session.feed(A)
    session.feed(B)
    assert np.array_equal(session.feed(C), at_once)
    assert session.ids == A + B + C and session.position == 12


def test_rewind_forgets(model):
    session = model.session()
    after_a = session.feed(A)
    session.feed(B)
    session.rewind(len(A))
    assert session.ids == A and session.position == 4
    assert np.array_equal(session.feed(C), model.logits(A + C))
    session.rewind(3)
    assert np.array_equal(session.feed(A[3:]), after_a)
    session.reset()
    assert session.position == 0
    assert np.array_equal(session.feed(C), model.logits(C))


def test_rewind_out_of_range(model):
    session = model.session()
    session.feed(A)
    for position in (-1, 5):
        with pytest.raises(mf.ArgumentError, match="cannot rewind"):
            session.rewind(position)
    session.rewind(4)
    assert session.ids == A


def test_the_context_exactly_full_and_one_more(tiny):
    model = mf.load_model(tiny(format="Q8_0"), context=7)
    session = model.session()
    full = session.feed(A + B)
    assert session.position == 7
    with pytest.raises(mf.ContextFullError, match="1 more tokens do not fit: the context holds 7, 7 taken"):
        session.feed([1])
    assert session.ids == A + B
    session.rewind(4)
    with pytest.raises(mf.ContextFullError):
        session.feed(B + [1])
    assert session.ids == A
    assert np.array_equal(session.feed(B), full), "a refused feed leaves the cache as it was"
    with pytest.raises(mf.ContextFullError):
        model.logits(list(range(8)))
    assert np.array_equal(mf.load_model(tiny(format="Q8_0"), context=64).logits(A + B), full)


def test_kv_memory_follows_the_context(tiny):
    path = tiny(context=1 << 20)
    for context in (1, 512):
        cache = mf.load_model(path, context=context).session().cache
        assert (
            cache.keys.nbytes == cache.values.nbytes == 2 * 2 * 16 * context * 2
        )  # layers, heads, values, tokens, f16
    assert mf.load_model(path).context == 4096
    assert mf.load_model(tiny(context=64)).context == 64


@pytest.mark.parametrize("context", [0, -1, 65, 1.0, "8", True])
def test_impossible_contexts(tiny, context):
    with pytest.raises(mf.ArgumentError, match="context is a whole number from 1 to 64"):
        mf.load_model(tiny(), context=context)


def test_sessions_do_not_share_anything(model):
    one, other = model.session(), model.session()
    one.feed(A)
    other.feed(B)
    assert np.array_equal(one.feed(C), model.logits(A + C))
    assert np.array_equal(other.feed(C), model.logits(B + C))


def test_sessions_on_several_threads(model):
    prompts = [[(3 * i + j) % 256 for j in range(20)] for i in range(8)]
    right = [model.logits(prompt) for prompt in prompts]
    with ThreadPoolExecutor(8) as callers:
        for got, want in zip(callers.map(model.logits, prompts * 3), right * 3, strict=True):
            assert np.array_equal(got, want)


# Token ids


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        ([], "no tokens"),
        ([265], "265 is out of range: the vocabulary has 265 tokens"),
        ([1, 2, -1], "-1 is out of range"),
        ([2**70], "out of range"),
        ([1.5], "whole numbers"),
        ("Hello", "whole numbers"),
        ("12", "whole numbers"),
        (["3"], "whole numbers"),
        (None, "whole numbers"),
        (7, "whole numbers"),
        (np.array([[1, 2], [3, 4]]), "whole numbers"),
        (np.array([1.0]), "whole numbers"),
    ],
)
def test_bad_ids(model, ids, says):
    session = model.session()
    session.feed(A)
    for call in (session.feed, session.trace, session.generate, model.logits, model.generate):
        with pytest.raises(mf.ArgumentError, match=says):
            call(ids)
    assert session.ids == A


@pytest.mark.parametrize("ids", [tuple(A), np.array(A), np.array(A, np.uint8), iter(A), range(2, 6)])
def test_any_sequence_of_whole_numbers(model, ids):
    expected = [2, 3, 4, 5] if isinstance(ids, range) else A
    assert np.array_equal(model.logits(ids), model.logits(expected))


def test_the_callers_list_is_not_kept(model):
    ids, session = list(A), model.session()
    session.feed(ids)
    ids.append(1)
    list(session.generate(ids, max_tokens=3))
    assert session.ids[:4] == A and ids == [*A, 1]


# Generation


def next_tokens(model, ids, n):
    """Greedy continuation, each token from a context of its own."""
    out = []
    for _ in range(n):
        out.append(int(model.logits(ids + out).argmax()))
    return out


def test_generate_is_arg_max_after_arg_max(tiny):
    model = mf.load_model(tiny(format="Q8_0", vocabulary=False))
    assert list(model.generate(A, max_tokens=8)) == next_tokens(model, A, 8)
    session = model.session()
    first = list(session.generate(A, max_tokens=4))
    assert session.ids == A + first[:3], "the last token has not been read yet"
    assert list(session.generate(first[3:], max_tokens=4)) == next_tokens(model, A + first, 4)


def test_generate_yields_as_it_goes_and_checks_at_once(model):
    with pytest.raises(mf.ArgumentError, match="overflow is 'error' or 'slide'"):
        model.generate(A, overflow="wrap")
    for max_tokens in (-1, 1.5, None):
        with pytest.raises(mf.ArgumentError, match="max_tokens"):
            model.generate(A, max_tokens=max_tokens)
    with pytest.raises(mf.ContextFullError):
        model.generate([1] * 65)
    session = model.session()
    tokens = session.generate(A, max_tokens=3)
    assert session.position == 0, "nothing is computed before the first token is asked for"
    next(tokens)
    assert session.position == 4
    assert list(session.generate([1], max_tokens=0)) == []


def test_generate_ends_at_an_end_token_which_it_does_not_yield(model):
    assert model.tokenizer.end_ids == {0, 2}
    for end in (0, 2):
        script = iter([10, 11, end, 12])
        session = model.session()
        assert list(session.generate(A, sampler=lambda logits, ids, script=script: next(script))) == [10, 11]
        assert session.ids == [*A, 10, 11]
    assert list(model.generate(A, sampler=lambda logits, ids: 2)) == []


def test_the_sampler_sees_the_logits_and_all_ids_so_far(model):
    seen = []

    def sampler(logits, ids):
        seen.append((logits.copy(), list(ids)))
        return 50 + len(seen)

    assert list(model.generate(A, max_tokens=3, sampler=sampler)) == [51, 52, 53]
    assert [ids for _, ids in seen] == [A, [*A, 51], [*A, 51, 52]]
    for logits, ids in seen:
        assert np.array_equal(logits, model.logits(ids)) and logits.dtype == np.float32


def test_equal_seeds_draw_equal_tokens(model):
    def draw(seed):
        return list(model.generate(A, 20, mf.Sampler(seed=seed, temperature=2.0, top_k=0, top_p=1.0, min_p=0.0)))

    assert draw(1) == draw(1)
    assert len({tuple(draw(seed)) for seed in range(5)}) == 5


def test_a_full_context_is_an_error_in_the_middle(tiny):
    model = mf.load_model(tiny(format="Q8_0", vocabulary=False), context=6)
    tokens = model.generate(A, max_tokens=10)
    got = []
    with pytest.raises(mf.ContextFullError):
        for token in tokens:
            got.append(token)
    assert got == next_tokens(model, A, 3), "one for each place in the context, and one after the last"
    assert list(model.generate(A, max_tokens=3)) == got, "just enough room is no error"


def test_slide_keeps_the_newest_half(tiny):
    model = mf.load_model(tiny(format="Q8_0", vocabulary=False), context=8)
    session = model.session()
    out = list(session.generate(A, max_tokens=20, overflow="slide"))
    assert len(out) == 20
    everything, window = list(A), list(A)
    for token in out:
        assert token == int(model.logits(window).argmax())
        everything.append(token)
        window.append(token)
        if len(window) > 8:
            window = everything[-4:]
    assert len(session.ids) <= 8 and everything[-len(session.ids) - 1 : -1] == session.ids


def test_slide_waits_until_a_token_needs_the_room(tiny):
    """A generation that ends with the context just full leaves it full: nothing is forgotten for no reason."""
    session = mf.load_model(tiny(format="Q8_0", vocabulary=False), context=8).session()
    out = list(session.generate(A, max_tokens=5, overflow="slide"))
    assert session.ids == A + out[:4] and session.position == 8


def test_slide_takes_a_prompt_longer_than_the_context(tiny):
    model = mf.load_model(tiny(format="Q8_0", vocabulary=False), context=8)
    long = list(range(20, 50))
    assert list(model.generate(long, max_tokens=1, overflow="slide")) == next_tokens(model, long[-4:], 1)
    session = model.session()
    session.feed(A)
    list(session.generate(C, max_tokens=1, overflow="slide"))
    assert session.ids == (A + C)[-4:]


def test_slide_in_a_context_of_one(tiny):
    model = mf.load_model(tiny(format="Q8_0", vocabulary=False), context=1)
    assert len(list(model.generate([5], max_tokens=4, overflow="slide"))) == 4


def test_a_refused_generate_leaves_the_session_alone(tiny):
    session = mf.load_model(tiny(format="Q8_0"), context=6).session()
    session.feed(A)
    with pytest.raises(mf.ArgumentError, match="out of range"):
        session.generate([1, 2, 999], overflow="slide")
    assert session.ids == A


def test_stop_before_and_between_tokens(tiny):
    model = mf.load_model(tiny(format="Q8_0", context=400, vocabulary=False))
    stop = threading.Event()
    stop.set()
    assert list(model.generate(A, stop=stop)) == []
    stop.clear()
    got = []
    for token in model.generate(A, max_tokens=50, stop=stop):
        got.append(token)
        if len(got) == 3:
            stop.set()
    assert got == next_tokens(model, A, 3)


def test_stop_acts_between_the_pieces_of_a_long_prompt(tiny):
    class StopAtSecondLook:
        looks = 0

        def is_set(self):
            self.looks += 1
            return self.looks > 1

    session = mf.load_model(tiny(format="Q8_0", context=400, vocabulary=False)).session()
    assert list(session.generate([1] * 300, stop=StopAtSecondLook())) == []
    assert session.position == 128


# Probabilities


@pytest.mark.parametrize("first", [1, 3, 130, 290, 300])
def test_log_probabilities_are_the_log_softmax_of_the_logits(tiny, first):
    model = mf.load_model(tiny(format="Q8_0", context=400))
    ids = [(11 * i + 2) % 256 for i in range(300)]
    found = model.session().log_probabilities(ids, first=first)
    assert found.shape == (300 - first,)
    session = model.session()
    session.feed(ids[:first])
    session.rewind(first - 1)
    for place in range(first, 300):
        logits = session.feed([ids[place - 1]]).astype(np.float64)
        right = logits[ids[place]] - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
        assert abs(found[place - first] - right) < 1e-9


# Loading


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


# Damage: whatever the metadata says, kernels read inside the file and nothing absurd is allocated


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
    from tiny_models import random_weights

    path = write_model(tmp_path / "m.gguf", Spec(**numbers), random_weights(Spec()))
    with pytest.raises(mf.GgufError):
        mf.load_model(path)


def test_an_enormous_context_costs_nothing_until_it_is_asked_for(tiny):
    model = mf.load_model(tiny(context=2**31 - 1))
    assert model.context == 4096 and model.logits(A).shape == (265,)


@pytest.mark.parametrize("format_", ["F32", "Q8_0"])
def test_weights_that_are_not_numbers_end_in_an_error(tmp_path, format_):
    from tiny_models import random_weights

    weights = random_weights(Spec())
    weights["output_norm.weight"][5] = np.nan
    model = mf.load_model(write_model(tmp_path / "m.gguf", Spec(format=format_), weights))
    with pytest.raises(mf.ArgumentError, match="NaN"):
        list(model.generate(A, max_tokens=1))


@pytest.mark.parametrize(("format_", "name"), [("Q8_0", "output.weight"), ("F32", "blk.1.ffn_up.weight")])
def test_floats_that_are_not_numbers_end_in_an_error(tmp_path, format_, name):
    """No quantizer sees these: they show in the logits alone."""
    from tiny_models import random_weights

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


@pytest.mark.parametrize("ids, kept", [([1, 2, 3, 4, 9], 4), ([1, 2, 7], 2), ([1, 2, 3], 2), ([8], 0), ([1], 0)])
def test_what_two_texts_share_is_not_read_again(tiny, ids, kept):
    model = mf.load_model(tiny())
    session = model.session()
    session.feed([1, 2, 3, 4])
    rest = session.keep_common(ids)
    assert session.position == kept and session.ids + rest == ids
    assert np.array_equal(session.feed(rest), model.logits(ids))


def test_nothing_to_keep_up_with_is_an_error(tiny):
    session = mf.load_model(tiny()).session()
    session.feed([1])
    for wrong in ([], [10**6]):
        with pytest.raises(mf.ArgumentError):
            session.keep_common(wrong)
    assert session.ids == [1]


# The real model


CASES = json.loads(
    (Path(__file__).parents[2] / "data" / "golden" / "smollm2_135m_q4_1.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def real(smollm2):
    return mf.load_model(smollm2)


@pytest.mark.parametrize("case", CASES, ids=[case["prompt"][:20] for case in CASES])
def test_prompt_ids_and_logits_are_llama_cpps(real, case):
    assert real.tokenizer.encode(case["prompt"]) == case["ids"]
    logits, std = real.logits(case["ids"]), case["logits_std"]
    assert abs(logits.std() / std - 1) < 0.05 and abs(logits.mean() - case["logits_mean"]) < 0.2 * std
    distance = np.abs(logits[case["top_ids"]] - case["top_logits"]).max() / std
    assert distance < 0.35, f"the ten highest logits are up to {distance:.2f} standard deviations apart"


def test_the_token_rule(real):
    """Fed llama.cpp's own tokens one by one, our arg max is its next token wherever its margin is clear."""
    clear, agreed = clear_steps(real, CASES)
    assert clear > 250
    assert agreed >= 0.99 * clear, f"{agreed} of {clear} clear steps"


def test_the_real_model_says_the_same_at_any_number_of_threads(smollm2):
    ids = CASES[1]["ids"]
    texts = [list(mf.load_model(smollm2, threads=n).generate(ids, max_tokens=12)) for n in (1, 2, 3)]
    assert texts[0] == texts[1] == texts[2]
    assert np.array_equal(mf.load_model(smollm2, threads=1).logits(ids), mf.load_model(smollm2, threads=2).logits(ids))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_claimed_chunks_give_the_bits_of_even_ranges(threads):
    """The rows of a matrix may be computed in any order by anyone: each is one worker's sum, in one order."""
    path = model_files.resolve("austen")
    ids = list(range(40, 60))
    expected = mf.load_model(path, threads=1).session().trace(ids)
    model = mf.load_model(path, threads=threads, policy="ggml")
    for _ in range(3):  # who claims what differs from run to run
        found = model.session().trace(ids)
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[name], expected[name]) for name in found)
        assert np.array_equal(model.logits(ids), expected["logits"][0])


def test_an_unknown_policy(tiny):
    with pytest.raises(mf.ArgumentError, match="policy is 'even' or 'ggml'"):
        mf.load_model(tiny(), policy="fair")


def test_a_session_at_work_refuses_a_second_caller(tiny):
    session, refused = mf.load_model(tiny()).session(), []

    for (operation, _), _ in session.walk(A):
        for call in (lambda: session.feed([1]), session.reset, lambda: session.log_probabilities([1, 2])):
            with pytest.raises(mf.ArgumentError, match="at work"):
                call()
            refused.append(operation.name)
    assert refused and session.position == len(A)
    session.feed([1])  # and afterwards it is free again


def test_a_generation_that_is_not_asked_for_changes_nothing(tiny):
    session = mf.load_model(tiny(), context=8).session()
    session.feed([1, 2, 3, 4, 5, 6])
    session.generate([1, 2, 3, 4], 3, overflow="slide")
    assert session.position == 6
