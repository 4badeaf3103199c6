"""The choice of the next token from the model's logits.

Each stage takes float32 logits and returns logits where the tokens that it rules out are minus infinity, so that
stages can be chained in any order, and plotted. `Sampler` chains them as llama.cpp does. Source: llama.cpp
llama-sampler.cpp.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from minfer_lib.errors import ArgumentError

# float32 logits give probabilities that are right to about 1e-7: less than this must not decide who is in.
_ROUNDING = 1e-6
# A temperature below this is the arg max but for ties, and a division by it could overflow.
_COLD = 1e-6


def _keep(logits: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """The logits at `kept` (indices or a mask), minus infinity elsewhere."""
    result = np.full_like(logits, -np.inf)
    result[kept] = logits[kept]
    return result


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities, f32[vocab]: exp(logit − largest), divided by their sum. Minus infinity becomes zero."""
    weights = np.exp(logits - logits.max())
    return weights / weights.sum(dtype=np.float64).astype(np.float32)


def repeat_penalty(logits: np.ndarray, recent: Sequence[int], penalty: float) -> np.ndarray:
    """Make the tokens in `recent` less likely: a positive logit is divided by `penalty`, a negative one multiplied.

    Both go down: dividing −4 would raise it. A token that occurs twice is penalized once. 1 changes nothing.
    """
    seen = np.unique(np.asarray(recent, np.int64))
    if penalty == 1 or seen.size == 0:
        return logits
    if seen[0] < 0 or seen[-1] >= logits.size:
        raise ArgumentError(f"history has ids from {seen[0]} to {seen[-1]}, but there are {logits.size} logits")
    result = logits.copy()
    result[seen] = np.where(logits[seen] > 0, logits[seen] / penalty, logits[seen] * penalty)
    return result


def top_k(logits: np.ndarray, k: int) -> np.ndarray:
    """Keep the k highest logits; of equals, those with the lowest ids. k <= 0 keeps all."""
    if not 0 < k < logits.size:
        return logits
    candidates = np.argpartition(logits, -k)[-k:]
    lowest = logits[candidates].min()
    above = candidates[logits[candidates] > lowest]
    level = np.flatnonzero(logits == lowest)[: k - above.size]
    return _keep(logits, np.concatenate([above, level]))


def top_p(logits: np.ndarray, p: float) -> np.ndarray:
    """Keep the most likely tokens until their probabilities sum to p, the one that reaches it included. 1 keeps all."""
    if p >= 1:
        return logits
    alive = np.flatnonzero(logits > -np.inf)
    order = alive[np.argsort(-logits[alive], kind="stable")]
    reached = np.cumsum(softmax(logits[order]), dtype=np.float64)
    return _keep(logits, order[: np.count_nonzero(reached < p - _ROUNDING) + 1])


def min_p(logits: np.ndarray, p: float) -> np.ndarray:
    """Keep the tokens at least p times as likely as the likeliest one. 0 keeps all."""
    if p <= 0:
        return logits
    return _keep(logits, logits >= logits.max() + np.float32(math.log(p)))


def temperature(logits: np.ndarray, t: float) -> np.ndarray:
    """Divide by t: above 1 the probabilities draw together, below 1 apart; t <= 0 keeps the highest logit alone."""
    if t < _COLD:
        return _keep(logits, np.array([logits.argmax()]))
    return logits / np.float32(t)


def draw(probabilities: np.ndarray, u: float) -> int:
    """The token in whose share of [0, 1) u falls, when the probabilities are laid end to end by id."""
    alive = np.flatnonzero(probabilities > 0)
    ends = np.cumsum(probabilities[alive], dtype=np.float64)
    return int(alive[min(np.searchsorted(ends, u * ends[-1], side="right"), alive.size - 1)])


def _checked(logits: np.ndarray) -> np.ndarray:
    """The logits as f32[vocab], or an ArgumentError."""
    logits = np.asarray(logits, np.float32)
    if logits.ndim != 1 or logits.size == 0:
        raise ArgumentError(f"logits: one number a token, f32[vocab]; the shape given is {logits.shape}")
    # A maximum is NaN where any number is, and finite where at least one token is possible.
    if not np.isfinite(logits.max()):
        raise ArgumentError("logits hold NaN or infinity, or rule out every token: there is no next token to choose")
    return logits


class Greedy:
    """Always the highest logit; of equals, the lowest id."""

    def __call__(self, logits: np.ndarray, history: Sequence[int] = ()) -> int:
        """Next token id from f32[vocab]. ArgumentError if the logits hold NaN."""
        return int(_checked(logits).argmax())


@dataclass
class Sampler:
    """A random draw from what the stages leave, in llama.cpp's order: penalty, top-k, top-p, min-p, temperature.

    temperature <= 0 takes the highest logit; top_k <= 0, top_p = 1, min_p = 0 and repeat_penalty = 1 switch a stage
    off. The penalty looks at the last `last_n` ids of the history, at all of them if it is −1. Equal seeds draw equal
    tokens. ArgumentError for a parameter out of its range, and for logits that hold NaN.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    last_n: int = 64
    seed: int | None = None
    _random: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        checks = (
            ("temperature", _is_number(self.temperature), "a finite number"),
            ("top_k", _is_integer(self.top_k), "an integer"),
            ("top_p", _is_number(self.top_p) and 0 <= self.top_p <= 1, "between 0 and 1"),
            ("min_p", _is_number(self.min_p) and 0 <= self.min_p <= 1, "between 0 and 1"),
            ("repeat_penalty", _is_number(self.repeat_penalty) and 0.01 <= self.repeat_penalty <= 100, "0.01 to 100"),
            ("last_n", _is_integer(self.last_n) and self.last_n >= -1, "an integer from -1 on"),
            ("seed", self.seed is None or (_is_integer(self.seed) and self.seed >= 0), "None or an integer from 0 on"),
        )
        for name, valid, wanted in checks:
            if not valid:
                raise ArgumentError(f"{name} is {getattr(self, name)!r}, but must be {wanted}")
        self._random = np.random.default_rng(self.seed)

    def __call__(self, logits: np.ndarray, history: Sequence[int] = ()) -> int:
        """Next token id from logits f32[vocab], after the ids in `history`."""
        ids, chances = self._chances(logits, history)
        return int(ids[draw(chances, self._random.random())])

    def probabilities(self, logits: np.ndarray, history: Sequence[int] = ()) -> np.ndarray:
        """The chances of each token, f32[vocab], from which the next one is drawn."""
        ids, chances = self._chances(logits, history)
        result = np.zeros(len(logits), np.float32)
        result[ids] = chances
        return result

    def _chances(self, logits: np.ndarray, history: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """The ids that top-k leaves, in order, and their chances: the later stages need not see the others."""
        logits = _checked(logits)
        logits = repeat_penalty(logits, self._recent(history), self.repeat_penalty)
        logits = top_k(logits, self.top_k)
        ids = np.flatnonzero(logits > -np.inf)
        logits = top_p(logits[ids], self.top_p)
        logits = min_p(logits, self.min_p)
        return ids, softmax(temperature(logits, self.temperature))

    def _recent(self, history: Sequence[int]) -> Sequence[int]:
        if self.last_n == -1:
            return history
        return history[max(0, len(history) - self.last_n) :]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value)


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer))
