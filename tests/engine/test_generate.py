"""Generation: which tokens come, where it ends, and what a full context does."""

import threading

import numpy as np
import pytest

import minfer_lib as mf

A, C = [5, 17, 200, 3], [42, 7, 64, 128, 5]


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


def test_a_generation_that_is_not_asked_for_changes_nothing(tiny):
    session = mf.load_model(tiny(), context=8).session()
    session.feed([1, 2, 3, 4, 5, 6])
    session.generate([1, 2, 3, 4], 3, overflow="slide")
    assert session.position == 6
