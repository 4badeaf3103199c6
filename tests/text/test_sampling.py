"""The sampling stages one by one, and the sampler that chains them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from minfer_lib.errors import ArgumentError
from minfer_lib.text.sampling import (
    Greedy,
    Sampler,
    draw,
    min_p,
    repeat_penalty,
    softmax,
    temperature,
    top_k,
    top_p,
)

TENTHS = np.log(np.array([0.1, 0.2, 0.3, 0.4], np.float32))  # logits whose probabilities are .1 .2 .3 .4
LOGITS = arrays(np.float32, st.integers(1, 50), elements=st.floats(-20, 20, width=32))
ALL = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}  # every stage off


# The cases of llama.cpp's tests/test-sampling.cpp.
@pytest.mark.parametrize(
    "stage, setting, expected",
    [
        (top_k, 1, [0, 0, 0, 1]),
        (top_k, 3, [0, 0.222222, 0.333333, 0.444444]),
        (top_k, 4, [0.1, 0.2, 0.3, 0.4]),
        (top_k, 0, [0.1, 0.2, 0.3, 0.4]),
        (top_p, 0, [0, 0, 0, 1]),
        (top_p, 0.7, [0, 0, 0.428571, 0.571429]),
        (top_p, 0.8, [0, 0.222222, 0.333333, 0.444444]),
        (top_p, 1, [0.1, 0.2, 0.3, 0.4]),
        (min_p, 0, [0.1, 0.2, 0.3, 0.4]),
        (min_p, 0.24, [0.1, 0.2, 0.3, 0.4]),
        (min_p, 0.26, [0, 0.222222, 0.333333, 0.444444]),
        (min_p, 0.49, [0, 0.222222, 0.333333, 0.444444]),
        (min_p, 0.51, [0, 0, 0.428571, 0.571429]),
        (min_p, 0.74, [0, 0, 0.428571, 0.571429]),
        (min_p, 0.76, [0, 0, 0, 1]),
        (min_p, 1, [0, 0, 0, 1]),
        (temperature, 1, [0.1, 0.2, 0.3, 0.4]),
        (temperature, 0, [0, 0, 0, 1]),
        (temperature, 0.5, [1 / 30, 4 / 30, 9 / 30, 16 / 30]),
    ],
)
def test_stages(stage, setting, expected):
    before = TENTHS.copy()
    assert softmax(stage(TENTHS, setting)) == pytest.approx(expected, abs=1e-5)
    assert np.array_equal(TENTHS, before), "a stage must not change its input"


def test_the_penalty_lowers_logits_of_both_signs():
    penalized = repeat_penalty(np.array([4, -4, 0, 4], np.float32), [0, 1, 1, 2], 2.0)
    assert penalized.tolist() == [2, -8, 0, 4]


@pytest.mark.parametrize("history", [[4], [-1], [0, 10**9]])
def test_the_penalty_refuses_ids_that_are_not_in_the_vocabulary(history):
    with pytest.raises(ArgumentError, match="history"):
        repeat_penalty(TENTHS, history, 1.1)


@settings(deadline=None)
@given(LOGITS, st.integers(1, 60))
def test_top_k_keeps_the_k_highest(logits, k):
    kept = np.flatnonzero(top_k(logits, k) > -np.inf)
    # A stable sort puts equals in order of their ids, so the lowest ids among equals stay.
    assert kept.tolist() == sorted(np.argsort(-logits, kind="stable")[:k])


@settings(deadline=None)
@given(LOGITS, st.floats(0, 0.999))
def test_top_p_keeps_the_fewest_that_reach_p(logits, p):
    chances = softmax(logits).astype(np.float64)
    kept = top_p(logits, p) > -np.inf
    assert chances[kept].sum() >= p - 1e-5
    assert chances[kept].sum() - chances[kept].min() < p + 1e-5 or kept.sum() == 1
    assert kept.all() or chances[kept].min() >= chances[~kept].max()


@settings(deadline=None)
@given(LOGITS, st.floats(0.001, 1))
def test_min_p_compares_with_the_likeliest(logits, p):
    chances = softmax(logits).astype(np.float64)
    kept = min_p(logits, p) > -np.inf
    assert chances[kept].min() >= p * chances.max() * (1 - 1e-4)
    assert kept.all() or chances[~kept].max() <= p * chances.max() * (1 + 1e-4)


@settings(deadline=None)
@given(LOGITS)
def test_probabilities_sum_to_one(logits):
    chances = Sampler(seed=0).probabilities(logits)
    assert chances.dtype == np.float32 and chances.shape == logits.shape
    assert chances.sum() == pytest.approx(1, abs=1e-5) and chances.min() >= 0


def test_draw_walks_over_the_probabilities():
    chances = np.array([0.25, 0, 0.5, 0.25], np.float32)
    assert [draw(chances, u) for u in (0, 0.249, 0.25, 0.749, 0.75, math.nextafter(1, 0))] == [0, 0, 2, 2, 3, 3]


def test_the_order_is_llama_cpps():
    # Top-p and min-p see the logits before the temperature: a temperature of 10 brings nobody back in.
    hot = Sampler(temperature=10, top_k=0, top_p=0.7, min_p=0, seed=0).probabilities(TENTHS)
    assert np.flatnonzero(hot).tolist() == [2, 3]
    # The penalty comes before top-k: it takes the first place from the likeliest token.
    penalized = Sampler(top_k=1, repeat_penalty=3.0, seed=0).probabilities(TENTHS, [3])
    assert np.flatnonzero(penalized).tolist() == [2]


@pytest.mark.parametrize("last_n, likeliest", [(0, 3), (1, 3), (2, 2), (-1, 2), (64, 2)])
def test_the_penalty_looks_at_the_last_n(last_n, likeliest):
    sampler = Sampler(top_k=1, repeat_penalty=3.0, last_n=last_n, seed=0)
    assert sampler(TENTHS, [3, 0]) == likeliest


def test_draws_follow_the_probabilities():
    sampler = Sampler(**ALL, seed=1)
    counts = np.bincount([sampler(TENTHS, []) for _ in range(20_000)], minlength=4)
    assert counts / 20_000 == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.015)


def test_equal_seeds_draw_equal_tokens():
    logits = np.zeros(1000, np.float32)
    runs = [[sampler(logits, []) for _ in range(20)] for sampler in (Sampler(**ALL, seed=s) for s in (5, 5, 6))]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("t", [0, -1, 1e-300])
def test_temperature_zero_is_the_arg_max(t):
    sampler = Sampler(temperature=t)
    assert {sampler(TENTHS, []) for _ in range(20)} == {3}


def test_greedy_takes_the_highest_and_of_equals_the_first():
    assert Greedy()(np.array([1, 3, 3, 2], np.float32), []) == 1
    assert type(Greedy()(TENTHS, [])) is int and type(Sampler()(TENTHS, [])) is int


@pytest.mark.parametrize("choose", [Greedy(), Sampler(seed=0)])
@pytest.mark.parametrize("bad", [[1, math.nan], [math.nan] * 2, [1, math.inf], [-math.inf] * 2, [], [[1, 2]]])
def test_logits_that_leave_no_choice(choose, bad):
    with pytest.raises(ArgumentError, match="logits"):
        choose(np.array(bad, np.float32), [])


def test_a_token_that_is_ruled_out_is_never_drawn():
    logits = np.array([0, -np.inf, 0], np.float32)
    for sampler in (Sampler(seed=0), Sampler(**ALL, seed=0), Sampler(repeat_penalty=2.0, seed=0)):
        assert {sampler(logits, [0, 1]) for _ in range(50)} == {0, 2}


@pytest.mark.parametrize(
    "name, value",
    [
        ("temperature", math.nan),
        ("temperature", "hot"),
        ("top_k", 1.5),
        ("top_p", -0.1),
        ("top_p", 1.1),
        ("min_p", 2),
        ("min_p", math.nan),
        ("repeat_penalty", 0),
        ("repeat_penalty", math.inf),
        ("last_n", -2),
        ("seed", -1),
        ("seed", 0.5),
    ],
)
def test_bad_parameters(name, value):
    with pytest.raises(ArgumentError, match=name):
        Sampler(**{name: value})
