"""Model and Session: what load_model returns. Ties the model's arithmetic to its tokenizer and samplers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from minfer_lib.engine.timing import Timing
from minfer_lib.engine.token_ids import known_ids
from minfer_lib.errors import ArgumentError, ContextFullError, UnsupportedError
from minfer_lib.formats.gguf import Gguf, read_gguf
from minfer_lib.matmul.api import check_threads
from minfer_lib.matmul.product import Matrix
from minfer_lib.model.config import read_config
from minfer_lib.model.forward import PIECE, Forward, Placed, phases_of
from minfer_lib.model.kv_cache import KvCache
from minfer_lib.model.linear import MatMul
from minfer_lib.model.weights import read_weights
from minfer_lib.text import Greedy, Tokenizer

DEFAULT_CONTEXT = 4096

Sampler = Callable[[np.ndarray, Sequence[int]], int]  # (logits f32[n_vocab], ids so far) -> the next id


class Stop(Protocol):
    """What `stop` may be: a threading.Event, or anything with is_set()."""

    def is_set(self) -> bool: ...


def load_model(
    path: str | Path,
    threads: int | None = None,
    context: int | None = None,
    device: str = "cpu",
    policy: str = "even",
) -> Model:
    """The model in the GGUF file at `path`, mapped, not copied.

    threads: None for one a core. context: how many tokens a session holds; None: the file's own, at most 4096.
    policy: into which pieces the rows of a matrix are cut for the threads to claim: "even", a range of whole tiles for
    each thread, or "ggml", ggml's chunks. The bits are the same.
    Raises ModelMissingError, GgufError, UnsupportedError (a format, architecture or device not built), ArgumentError.
    """
    if device != "cpu":
        raise UnsupportedError(f"device {device!r} is not built yet; there is 'cpu'.")
    threads = check_threads(threads)
    gguf = read_gguf(path)
    return Model(gguf, threads, context, policy)


class Model:
    """`.config`, `.weights`, `.tokenizer`, `.context`, `.threads`, and sessions that run on them."""

    def __init__(self, gguf: Gguf, threads: int, context: int | None, policy: str = "even") -> None:
        if policy not in ("even", "ggml"):
            raise ArgumentError(f"policy is 'even' or 'ggml', not {policy!r}.")
        self.gguf, self.threads, self.policy = gguf, threads, policy
        self.config = read_config(gguf.metadata)
        self.weights = read_weights(gguf, self.config)
        if context is None:
            context = min(self.config.context, DEFAULT_CONTEXT)
        if not isinstance(context, int) or isinstance(context, bool) or not 1 <= context <= self.config.context:
            raise ArgumentError(f"context is a whole number from 1 to {self.config.context}, not {context!r}.")
        self.context = context

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Raises UnsupportedError where the file has no vocabulary, or one that is not built."""
        return Tokenizer(self.gguf.metadata)

    def session(self) -> Session:
        return Session(self)

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        """f32[n_vocab] after the last of `ids`, in a fresh context."""
        return self.session().feed(ids)

    def generate(
        self,
        ids: Sequence[int],
        max_tokens: int = 64,
        sampler: Sampler | None = None,
        overflow: str = "error",
        stop: Stop | None = None,
    ) -> Iterator[int]:
        """Continue `ids` in a fresh session: see Session.generate."""
        return self.session().generate(ids, max_tokens, sampler, overflow, stop)

    def operations(self) -> list[Placed]:
        """Everything that happens to a token, in order: the list of `model/layer.py` for each layer."""
        return [Placed(operation, i) for i, phase in phases_of(self.config, self.weights) for operation in phase]

    def matrices(self) -> list[Matrix]:
        """Every matrix that one token multiplies, in order: seven a layer, and the output."""
        products = [operation for operation, _ in self.operations() if isinstance(operation, MatMul)]
        return [matrix for product in products for matrix in product.matrices.values()]

    def __repr__(self) -> str:
        return f"Model({self.gguf.path.name!r}, {self.config.n_layers} layers, {self.threads} threads)"


class Session:
    """One conversation: the tokens so far, and their keys and values."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.ids: list[int] = []
        self._busy = threading.Lock()
        self._fed, self._feeding, self._sampling = 0, 0.0, 0.0  # tokens so far; seconds of passes and of sampling
        self.cache = KvCache(model.config, model.context)
        self._forward = Forward(model.config, model.weights, self.cache, model.threads, model.policy)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time: two would write into the same buffers. ArgumentError for the second."""
        if not self._busy.acquire(blocking=False):
            raise ArgumentError("this session is at work on another thread; give each thread a session of its own.")
        try:
            yield
        finally:
            self._busy.release()

    @property
    def position(self) -> int:
        """How many tokens the context holds."""
        return len(self.ids)

    def feed(self, ids: Sequence[int]) -> np.ndarray:
        """Append `ids` -> f32[n_vocab], the logits after the last.

        Raises ArgumentError (no ids, or one out of range), ContextFullError; then nothing has been appended.
        """
        with self._alone():
            ids = self._check(ids)
            for piece in _pieces(ids):
                logits = self._pass(piece)
        return logits[0]

    def _pass(self, ids: list[int], wanted: int = 1) -> np.ndarray:
        """At most PIECE ids appended -> f32[wanted, n_vocab], the logits after the last `wanted` of them. Timed."""
        start = time.perf_counter()
        logits = self._forward(ids, self.position, wanted)
        self.ids += ids
        self._fed += len(ids)
        self._feeding += time.perf_counter() - start
        return logits

    @property
    def timing(self) -> Timing:
        """Where the time of this session has gone so far."""
        forward = self._forward
        return Timing(self._fed, forward.seconds, forward.kinds, self._sampling, self._feeding + self._sampling)

    def walk(self, ids: Sequence[int]) -> Iterator[tuple[Placed, dict[str, np.ndarray]]]:
        """As feed, one operation at a time: after each, the operation and what it left to be seen.

        The second is its stages, full name ("blk.0.q") -> f32[n_tokens, …], as views of buffers that later operations
        overwrite. A walk that is not gone to its end appends nothing. Raises what feed raises.
        """
        with self._alone():
            ids, start = self._check(ids), self.position
            for piece in _pieces(ids):
                yield from self._forward.walk(piece, start)
                start += len(piece)
            self.ids += ids

    def trace(self, ids: Sequence[int]) -> dict[str, np.ndarray]:
        """As feed, keeping what every stage computed: name -> f32[n_tokens, …] ("logits": the last token's alone)."""
        ids = self._check(ids)
        kept: dict[str, list[np.ndarray]] = {"embedding": [self.model.weights.embed(ids)]}
        for _, stages in self.walk(ids):
            for name, array in stages.items():
                kept.setdefault(name, []).append(array.copy())
        last_only = ("output_norm", "logits")
        return {name: rows[-1] if name in last_only else np.concatenate(rows) for name, rows in kept.items()}

    def log_probabilities(self, ids: Sequence[int], first: int = 1) -> np.ndarray:
        """Append `ids` -> f64[len(ids) - first]: the natural log of the probability of ids[first], ids[first + 1] …

        Each is judged by the logits after the token before it, so first >= 1. Raises as feed does.
        """
        with self._alone():
            ids = self._check(ids)
            if not 1 <= first <= len(ids):
                raise ArgumentError(f"first is a whole number from 1 to the number of ids, {len(ids)}; not {first!r}.")
            found, done = [], 0
            for piece in _pieces(ids):
                wanted = min(len(piece), max(0, done + len(piece) - (first - 1)))  # the last tokens of the piece
                logits = self._pass(piece, wanted=wanted).astype(np.float64)
                done += len(piece)
                following = ids[done - wanted + 1 : done + 1]  # one less at the end: nothing follows the last
                rows = logits[: len(following)]
                highest = rows.max(axis=1)
                total = np.log(np.exp(rows - highest[:, None]).sum(axis=1)) + highest
                found.append(rows[np.arange(len(following)), following] - total)
        return np.concatenate(found)

    def rewind(self, position: int) -> None:
        """Forget every token from `position` on."""
        with self._alone():
            if not 0 <= position <= self.position:
                raise ArgumentError(f"cannot rewind to {position}: the session holds {self.position} tokens.")
            del self.ids[position:]

    def reset(self) -> None:
        """Forget everything."""
        self.rewind(0)

    def keep_common(self, ids: Sequence[int]) -> list[int]:
        """Keep the tokens that the context shares with `ids` from the start, forget those after them.

        -> what is left of `ids` to feed: one token at least, since its logits are wanted.
        """
        ids = self._known(ids)
        shared = next((i for i, (a, b) in enumerate(zip(self.ids, ids, strict=False)) if a != b), self.position)
        self.rewind(min(shared, len(ids) - 1))
        return ids[self.position :]

    def generate(
        self,
        ids: Sequence[int],
        max_tokens: int = 64,
        sampler: Sampler | None = None,
        overflow: str = "error",
        stop: Stop | None = None,
    ) -> Iterator[int]:
        """Feed `ids`, then yield token after token.

        Ends at an end-of-generation token (not yielded), after max_tokens, or when `stop` is set.

        sampler: None for the arg max. overflow: "error" raises ContextFullError when the context is full; "slide" drops
        the older half and goes on. Arguments are checked here, before the first token is asked for.
        """
        if overflow not in ("error", "slide"):
            raise ArgumentError(f"overflow is 'error' or 'slide', not {overflow!r}.")
        if not isinstance(max_tokens, int) or max_tokens < 0:
            raise ArgumentError(f"max_tokens is a whole number >= 0, not {max_tokens!r}.")
        ids = self._known(ids) if overflow == "slide" else self._check(ids)
        return self._generate(ids, max_tokens, sampler or Greedy(), overflow, stop)

    def _generate(
        self, ids: list[int], max_tokens: int, sampler: Sampler, overflow: str, stop: Stop | None
    ) -> Iterator[int]:
        ends = self._end_ids()
        for _ in range(max_tokens):
            if overflow == "slide" and self.position + len(ids) > self.model.context:
                ids = self._slide(ids)
            for piece in _pieces(ids):
                if stop is not None and stop.is_set():
                    return
                logits = self.feed(piece)
            start = time.perf_counter()
            token = sampler(logits, self.ids)
            self._sampling += time.perf_counter() - start
            if token in ends:
                return
            yield token
            ids = [token]

    def _slide(self, ids: list[int]) -> list[int]:
        """Empty the context; the newest half of what it held with `ids` after it, to be fed again."""
        newest = (self.ids + ids)[-max(1, self.model.context // 2) :]
        self.reset()
        return newest

    def _end_ids(self) -> frozenset[int]:
        if self.model.gguf.metadata.get("tokenizer.ggml.model") in (None, "no_vocab"):
            return frozenset()
        return self.model.tokenizer.end_ids

    def _known(self, ids: Sequence[int]) -> list[int]:
        """`ids` as a list; ArgumentError unless they are one token or more of the vocabulary."""
        return known_ids(ids, self.model.weights.n_vocab)

    def _check(self, ids: Sequence[int]) -> list[int]:
        """As _known, and ContextFullError where they do not fit."""
        ids = self._known(ids)
        room = self.model.context - self.position
        if len(ids) > room:
            raise ContextFullError(
                f"{len(ids)} more tokens do not fit: the context holds {self.model.context}, {self.position} taken. "
                "Load the model with a larger context=, or generate with overflow='slide'."
            )
        return ids


def _pieces(ids: list[int]) -> Iterator[list[int]]:
    return (ids[at : at + PIECE] for at in range(0, len(ids), PIECE))
