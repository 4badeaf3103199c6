"""Wrong answers that people give. Each must fail its check; the docstring is a word of the message that it must get."""

import numpy as np

from minfer_lib import model_files

# rope_pairs


def _turn(x, position, base, halves=False, exponent=2, sign=1):
    n = x.size
    angle = position * base ** (-exponent * np.arange(n // 2) / n)
    first, second = (slice(0, n // 2), slice(n // 2, n)) if halves else (slice(0, n, 2), slice(1, n, 2))
    a, b = x[first], x[second]
    out = np.empty(n, np.float32)
    out[first] = a * np.cos(angle) - sign * b * np.sin(angle)
    out[second] = sign * a * np.sin(angle) + b * np.cos(angle)
    return out


def rope_pairs__halves(x, position, base):
    """neighbours"""
    return _turn(x, position, base, halves=True)


def rope_pairs__turned_back(x, position, base):
    """turns it back"""
    return _turn(x, position, base, sign=-1)


def rope_pairs__half_the_exponent(x, position, base):
    """base^(−2i/n)"""
    return _turn(x, position, base, exponent=1)


def rope_pairs__base_hard_coded(x, position, base):
    """100^(−1/4)"""
    return _turn(x, position, 10000.0)


def rope_pairs__from_one(x, position, base):
    """exactly `position`"""
    return _turn(x, position + 1, base)


def rope_pairs__overwritten(x, position, base):
    """you overwrote the old first number"""
    n = x.size
    angle = position * base ** (-np.arange(0, n, 2) / n)
    x[0::2] = x[0::2] * np.cos(angle) - x[1::2] * np.sin(angle)
    x[1::2] = x[0::2] * np.sin(angle) + x[1::2] * np.cos(angle)
    return x


def rope_pairs__not_turned(x, position, base):
    """exactly `position`"""
    return x


# append_row


def append_row__nothing_copied(cache, n, row):
    """copy the old rows"""
    if n == len(cache):
        cache = np.zeros((2 * n, row.size), np.float16)
    cache[n] = row
    return cache


def append_row__always_at_the_end(cache, n, row):
    """row n is the new one"""
    return np.concatenate([cache, row[None]])


def append_row__n_is_the_length(cache, n, row):
    """left over from before"""
    if n in (len(cache), 5):
        return np.concatenate([cache, row[None]])
    cache[n] = row
    return cache


def append_row__the_oldest_drops_out(cache, n, row):
    """copy the old rows"""
    if n == len(cache):
        cache = np.roll(cache, -1, axis=0)
        return np.concatenate([cache[:-1], row[None], row[None]])
    cache[n] = row
    return cache


def append_row__float64(cache, n, row):
    """half as many tokens"""
    larger = np.zeros((len(cache) + 1, row.size))
    larger[:n] = cache[:n]
    larger[n] = row
    return larger


def append_row__forty_at_most(cache, n, row):
    """more than once"""
    if n == len(cache) and n < 40:
        cache = np.concatenate([cache, np.zeros_like(cache)])
    if n >= 40:
        return cache
    cache[n] = row
    return cache


def append_row__one_row_more_each_time(cache, n, row):
    """25 of 25 tokens copied"""
    return np.vstack([cache[:n], row])


# choose_token


def _choose(logits, temperature, u):
    if temperature == 0:
        return int(logits.argmax())
    scaled = logits.astype(float) / temperature
    weights = np.exp(scaled - scaled.max())
    ends = np.cumsum(weights / weights.sum())
    return int(np.searchsorted(ends, u, side="right"))


def choose_token__always_greedy(logits, temperature, u):
    """is greedy"""
    return int(logits.argmax())


def choose_token__temperature_ignored(logits, temperature, u):
    """draw together"""
    return _choose(logits, min(temperature, 1), u) if temperature else int(logits.argmax())


def choose_token__multiplied(logits, temperature, u):
    """draw together"""
    return _choose(logits * np.float32(temperature), 1, u) if temperature else int(logits.argmax())


def choose_token__after_the_softmax(logits, temperature, u):
    """before the softmax"""
    if temperature == 0:
        return int(logits.argmax())
    weights = np.exp(logits.astype(float) - logits.max())
    p = weights / weights.sum() / temperature
    return int(np.searchsorted(np.cumsum(p / p.sum()), u, side="right"))


def choose_token__sorted(logits, temperature, u):
    """not sorted"""
    if temperature == 0:
        return int(logits.argmax())
    order = np.argsort(-logits)
    weights = np.exp((logits[order] - logits.max()) / temperature)
    return int(order[np.searchsorted(np.cumsum(weights / weights.sum()), u, side="right")])


def choose_token__no_maximum(logits, temperature, u):
    """is infinite"""
    if temperature == 0:
        return int(logits.argmax())
    with np.errstate(over="ignore", invalid="ignore"):
        weights = np.exp(logits / np.float32(temperature))
        ends = np.cumsum(weights / weights.sum())
    return int(np.searchsorted(ends, u, side="right"))


def choose_token__zero_means_one(logits, temperature, u):
    """nothing to divide by"""
    return _choose(logits, temperature or 1, u)


# saved_share


def saved_share__all_rows(n_tokens, layers, output):
    """300"""
    return output / (layers + output)


def saved_share__of_what_is_left(n_tokens, layers, output):
    """300"""
    return (n_tokens - 1) * output / (n_tokens * layers + output)


def saved_share__what_remains(n_tokens, layers, output):
    """300"""
    return 1 - (n_tokens - 1) * output / (n_tokens * (layers + output))


def saved_share__of_the_logits_alone(n_tokens, layers, output):
    """300"""
    return (n_tokens - 1) / n_tokens


# sure_prompt


def sure_prompt__anything_may_follow():
    """leaves little choice"""
    return "And then, all of a sudden, the"


def sure_prompt__too_short():
    """at least four"""
    return "Yes"


def sure_prompt__the_notebooks_own():
    """write one of your own"""
    return model_files.choose().prompt


def sure_prompt__no_text():
    """a prompt is a str"""
    return 42
