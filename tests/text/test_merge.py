"""Merging of neighbouring symbols against the rule as it is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minfer_lib.text.merge import merge

MERGES = ["Ġ t", "h e", "Ġt he", "a a", "aa a", "l l", "he ll", "e ll"]


def by_rule(rules):
    """Rank of a pair by its first place in a list of rules."""
    return lambda left, right: rules.index(f"{left} {right}") if f"{left} {right}" in rules else None


@pytest.mark.parametrize(
    "symbols, expected",
    [
        ("hell", ["hell"]),
        ("aaaa", ["aa", "aa"]),  # both pairs of "aa" are older rules than "aa a"
        ("aaa", ["aaa"]),  # the leftmost pair first, so that "aa a" applies
        ("Ġthe", ["Ġthe"]),
        ("the", ["t", "he"]),
        ("x", ["x"]),
        ("", []),
    ],
)
def test_merge_takes_the_oldest_rule_and_the_leftmost_pair(symbols, expected):
    assert merge(symbols, by_rule(MERGES)) == expected


def test_merge_skips_a_pair_that_is_out_of_date():
    # "b c" is queued first, but "a b" takes its b away.
    assert merge("abc", by_rule(["a b", "b c", "c d"])) == ["ab", "c"]


def naive_merge(symbols, rank):
    """The rule as it is told: look for the best pair, merge it, start again."""
    symbols = list(symbols)
    while True:
        ranks = [rank(left, right) for left, right in zip(symbols, symbols[1:], strict=False)]
        known = [found for found in ranks if found is not None]
        if not known:
            return symbols
        best = ranks.index(min(known))
        symbols[best : best + 2] = [symbols[best] + symbols[best + 1]]


RULES = st.lists(st.sampled_from([f"{a} {b}" for a in ("a", "b", "ab", "aa") for b in ("a", "b", "ab", "ba")]))


@given(st.text("ab", max_size=40), RULES)
def test_merge_by_rules_equals_the_naive_search(symbols, rules):
    assert merge(symbols, by_rule(rules)) == naive_merge(symbols, by_rule(rules))


# Few different scores: most pairs are equally good, and a pair that is out of date looks like a new one.
SCORES = st.dictionaries(st.text("ab", min_size=2, max_size=6), st.sampled_from([0.0, -1.0, 2.5]), max_size=20)


@given(st.text("ab", max_size=40), SCORES)
def test_merge_by_scores_equals_the_naive_search(symbols, score_of):
    def rank(left, right):
        return -score_of[left + right] if left + right in score_of else None

    assert merge(symbols, rank) == naive_merge(symbols, rank)
