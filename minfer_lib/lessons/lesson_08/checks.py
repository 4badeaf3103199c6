"""Lesson 8: pairs that turn, a cache that grows, a token that is chosen, and rows that need no logits."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np

from minfer_lib import model_files
from minfer_lib.engine.session import load_model
from minfer_lib.lessons.shared.check_runner import Case, CheckFailedError, run
from minfer_lib.text.sampling import draw, softmax


def rope_pairs(function: Callable) -> None:
    """function(x, position, base) -> f32[n]: one head, each pair (2i, 2i + 1) turned."""
    random = np.random.default_rng(8)
    cases = [
        ("a pair at position 1", np.array([1, 0], np.float32), 1, 10000.0,
         "the first pair turns by exactly `position`: (cos 1, sin 1). A minus sign at the wrong sine turns it back; "
         "or you overwrote the old first number, which the new second one needs."),
        ("position 0", random.standard_normal(8), 0, 10000.0, "at position 0 nothing turns."),
        ("the first of four pairs", np.array([1, 2, 0, 0, 0, 0, 0, 0]), 3, 10000.0,
         "pair i is elements 2i and 2i + 1, neighbours. Pairs (i, i + n/2) are another model's order."),
        ("the second pair alone", np.array([0, 0, 1, 0, 0, 0, 0, 0]), 5, 100.0,
         "pair i turns by position · base^(−2i/n): the second of four by 5 · 100^(−1/4)."),
        ("both numbers of a pair", np.array([0, 0, 0, 1, 0, 0, 2, -3]), 2, 100.0,
         "the new second number needs the old first one: keep it before you overwrite it."),
        ("a head of 64 at position 700", random.standard_normal(64), 700, 100000.0,
         "the base is the model's own: it differs from file to file, and only late positions show it."),
    ]  # fmt: skip
    run(
        function,
        [
            Case(what, (x.astype(np.float32), at, base), _turned(x, at, base), cause, 2e-4)
            for what, x, at, base, cause in cases
        ],
    )


def _turned(x: np.ndarray, position: int, base: float) -> np.ndarray:
    points = x[0::2] + 1j * x[1::2]
    points = points * np.exp(1j * position * base ** (-np.arange(0, x.size, 2) / x.size))
    return np.stack([points.real, points.imag], axis=1).ravel()


MOST_COPIES = 5  # of the cache, while 25 rows are appended to 20


def append_row(function: Callable) -> None:
    """function(cache, n, row) -> a cache, f16[m >= n + 1, d], whose first n rows are the old ones and row n the new.

    A cache that grows row by row, or is copied for each, is refused.
    """
    random = np.random.default_rng(20)
    rows = random.standard_normal((45, 4)).astype(np.float16)
    cases = [
        ("room is left", rows[:20], 7, rows[40], 1, "row n is the new one; those before it stay."),
        ("the cache is full", rows[:20], 20, rows[41], 1,
         "a larger cache begins empty: copy the old rows into it. All of them, in their order."),
        ("full, with a single row", rows[:1], 1, rows[42], 1, "twice one row is two."),
        ("after a rewind from 20 rows to 5", rows[:20], 5, rows[43], 1,
         "n says how many rows count, not the cache's length. Rows after n are left over from before."),
        ("25 tokens more, one after the other", rows[:20], 20, rows[44], 25, "it must grow more than once."),
    ]  # fmt: skip

    @wraps(function)
    def appended(cache: np.ndarray, n: int, row: np.ndarray, times: int) -> np.ndarray:
        copies = 0
        for i in range(times):
            before, cache = cache, np.asarray(function(cache, n + i, row * (i + 1)))
            copies += not np.may_share_memory(before, cache)
        if cache.dtype != np.float16:
            raise CheckFailedError(f"the cache became {cache.dtype}: half as many tokens fit. np.zeros needs a dtype.")
        if copies > MOST_COPIES:
            raise CheckFailedError(
                f"{copies} of {times} tokens copied the whole cache. Copy it only when it is full, to one of twice the "
                "size, and write the row in place: then few tokens do."
            )
        return cache[: n + times]

    run(
        appended,
        [
            Case(what, (cache, n, row, times), np.vstack([cache[:n], *(row * (i + 1) for i in range(times))]), cause)
            for what, cache, n, row, times, cause in cases
        ],
    )


def choose_token(function: Callable) -> None:
    """function(logits, temperature, u) -> a token's id, u in [0, 1) the chance; temperature 0 takes the highest."""
    some = np.array([1.0, 3.0, 2.0, -1.0, 2.5], np.float32)
    cases = [
        ("temperature 0", some, 0.0, 0.99, "at temperature 0 there is no chance, and nothing to divide by: arg max."),
        ("temperature 1, a large chance", some, 1.0, 0.73,
         "lay the probabilities end to end by id; u falls into one of them. Always taking the highest is greedy."),
        ("temperature 1, a smaller one", some, 1.0, 0.6, "ids in their own order, not sorted by probability."),
        ("temperature 3", some, 3.0, 0.1,
         "divide the logits before the softmax: above 1 the probabilities draw together."),
        ("temperature 0.2", some, 0.2, 0.04, "below 1 they draw apart: here the second token takes nearly all."),
        ("the very last share", some, 1.0, 0.9999, "u is just below 1: the last token of all."),
        ("logits near a thousand", np.array([1000, 1001, 1002], np.float32), 1.0, 0.2,
         "e^1002 is infinite in float32: take the highest logit from all before the exponential."),
    ]  # fmt: skip
    run(
        function,
        [Case(what, (logits, t, u), float(_chosen(logits, t, u)), cause) for what, logits, t, u, cause in cases],
    )


def _chosen(logits: np.ndarray, temperature: float, u: float) -> int:
    return int(logits.argmax()) if temperature == 0 else draw(softmax(logits / np.float32(temperature)), u)


def saved_share(function: Callable) -> None:
    """function(n_tokens, layers, output) -> the share of prefill's multiplications that last-row-only logits save.

    layers, output: multiplications a token in the layers and in the output matrix.
    """
    cases = [
        (
            "four tokens, an output as large as the layers",
            4,
            100,
            100,
            "without the rule 4 · 200 = 800 multiplications; it saves three rows of logits, 300.",
        ),
        ("one token: decode", 1, 100, 28, "one row is needed, and one token has one: nothing is saved."),
        (
            "SmolLM2, a prompt of 256",
            256,
            106_168_320,
            28_311_552,
            "a share of the work without the rule, n · (layers + output), not of what is left.",
        ),
        ("two tokens, no layers", 2, 0, 50, "of two rows of logits one is needed: half."),
    ]
    run(
        function,
        [
            Case(what, (n, layers, output), (n - 1) * output / (n * (layers + output)), cause, 1e-9)
            for what, n, layers, output, cause in cases
        ],
    )


SURE = 0.6


def sure_prompt(function: Callable) -> None:
    """function() -> a text of 4 tokens or more after which the course's model gives one token a chance of SURE."""
    choice = model_files.choose()
    model, told = load_model(choice.path), []

    @wraps(function)
    def chance() -> float:
        text = function()
        if not isinstance(text, str):
            raise CheckFailedError(f"{function.__name__} returns a {type(text).__name__}; a prompt is a str.")
        if text.strip() == choice.prompt:
            raise CheckFailedError(f"{text!r} is this notebook's prompt; write one of your own.")
        ids = model.tokenizer.encode(text)
        if len(ids) < 4:
            raise CheckFailedError(f"{text!r} is {len(ids)} tokens; write at least four.")
        probabilities = softmax(model.logits(ids))
        best = int(probabilities.argmax())
        told.append(f"{model.tokenizer.decode([best])!r} gets {probabilities[best]:.1%} after {text!r}")
        if probabilities[best] < SURE:
            raise CheckFailedError(
                f"{told[0]}, and no token gets more; {SURE:.0%} are asked. A text leaves little choice inside a fixed "
                "phrase, or where a pattern has repeated several times."
            )
        return 1.0

    run(chance, [Case("the likeliest token after your prompt", (), 1.0, "")])
    print(*told)
