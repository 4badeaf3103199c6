"""A session: what it has read, what it forgets, which ids it takes, and who may use it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minfer_lib as mf

A, B, C = [5, 17, 200, 3], [99, 98, 97], [42, 7, 64, 128, 5]


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


def test_a_session_at_work_refuses_a_second_caller(tiny):
    session, refused = mf.load_model(tiny()).session(), []

    for (operation, _), _ in session.walk(A):
        for call in (lambda: session.feed([1]), session.reset, lambda: session.log_probabilities([1, 2])):
            with pytest.raises(mf.ArgumentError, match="at work"):
                call()
            refused.append(operation.name)
    assert refused and session.position == len(A)
    session.feed([1])  # and afterwards it is free again
