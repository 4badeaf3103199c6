"""How fast is it, and how fast could it be? A token reads every weight once, so memory sets the roof.

The ceiling is a probe that only reads: no decoding can be faster than reading the same bytes. Both are measured in turn
in one run, because machines are shared and their speed drifts.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from statistics import median

import numpy as np

from minfer_lib.engine.session import Model
from minfer_lib.matmul.chunks import even_split
from minfer_lib.native.address import words_at
from minfer_lib.native.jit import kernel
from minfer_lib.native.pool import job_address, pool
from minfer_lib.simd.ops import load, splat, store
from minfer_lib.simd.registers import u32x16

PROBE_BYTES = 256 << 20  # larger than any cache on the way
PASSES = 3  # of the probe, through all its bytes, each time that it is asked
ROUNDS = 5


@kernel
def _read_words(argument, worker, workers):
    """Job: xor of this worker's share of some words into word 2 + worker of the argument. It reads memory, that is all.

    argument: int64[2 + workers], the words' address and how many there are. 256 bytes at a time, into four registers.
    """
    fields = words_at(argument, 2 + workers)
    first, last = even_split(worker, workers, fields[1])
    words = words_at(fields[0] + 8 * first, last - first)
    raw = words.view(np.uint8)
    x0 = x1 = x2 = x3 = splat(u32x16, 0)
    whole = words.size - words.size % 32
    for at in range(0, 8 * whole, 256):
        x0 = x0 ^ load(u32x16, raw, at)
        x1 = x1 ^ load(u32x16, raw, at + 64)
        x2 = x2 ^ load(u32x16, raw, at + 128)
        x3 = x3 ^ load(u32x16, raw, at + 192)
    eight = np.empty(64, np.uint8)
    store(eight, 0, (x0 ^ x1) ^ (x2 ^ x3))
    total = np.int64(0)
    for word in eight.view(np.int64):
        total ^= word
    for word in words[whole:]:
        total ^= word
    fields[2 + worker] = total


class CeilingProbe:
    """The most bytes a second that `threads` threads can read from this machine's memory.

    n_bytes: beside a model, as many as a token of it reads. Where a cache keeps a part of them from token to token, it
    keeps it for the probe too: some servers have hundreds of megabytes.
    """

    def __init__(self, n_bytes: int = PROBE_BYTES) -> None:
        self.words = np.ones(n_bytes // 8, np.int64)  # ones: untouched zero pages would all be the same page

    def gigabytes_per_second(self, threads: int) -> float:
        argument = np.zeros(2 + threads, np.int64)
        argument[:2] = self.words.ctypes.data, self.words.size
        job = job_address(_read_words)
        pool().run(job, argument.ctypes.data, threads)  # what a cache can keep is there afterwards
        start = time.perf_counter()
        for _ in range(PASSES):
            pool().run(job, argument.ctypes.data, threads)
        return PASSES * self.words.nbytes / (time.perf_counter() - start) / 1e9


@dataclass(frozen=True)
class DecodeSpeed:
    """Medians over the rounds of one run."""

    threads: int
    tokens_per_second: float
    gigabytes_per_second: float  # of weights, as the tokens read them
    ceiling_gigabytes_per_second: float

    @property
    def share_of_ceiling(self) -> float:
        return self.gigabytes_per_second / self.ceiling_gigabytes_per_second

    def as_dict(self) -> dict[str, float]:
        return asdict(self) | {"share_of_ceiling": self.share_of_ceiling}


def bytes_per_token(model: Model) -> int:
    """Bytes of weights that one token of decode reads: every matrix once."""
    return sum(matrix.n_out * matrix.row_bytes for matrix in model.matrices())


def decode_tokens_per_second(model: Model, n_tokens: int = 16) -> float:
    """Tokens fed one by one from an empty context; which tokens they are makes no difference to the time."""
    session = model.session()
    session.feed([0])  # the first pass may compile, and takes the map's pages from the disk
    n_tokens = min(n_tokens, model.context - 1)
    start = time.perf_counter()
    for token in range(n_tokens):
        session.feed([token % model.weights.n_vocab])
    return n_tokens / (time.perf_counter() - start)


def prefill_tokens_per_second(model: Model, n_tokens: int = 256) -> float:
    """A prompt of n_tokens tokens, read in an empty context."""
    n_tokens = min(n_tokens, model.context)
    ids = [token % model.weights.n_vocab for token in range(n_tokens)]
    session = model.session()
    start = time.perf_counter()
    session.feed(ids)
    return n_tokens / (time.perf_counter() - start)


def decode_speed(
    model: Model, n_tokens: int = 16, rounds: int = ROUNDS, probe: CeilingProbe | None = None
) -> DecodeSpeed:
    """Decode and ceiling, measured in alternation with the model's threads."""
    probe = probe or CeilingProbe(bytes_per_token(model))
    tokens, ceilings = [], []
    for _ in range(rounds):
        ceilings.append(probe.gigabytes_per_second(model.threads))
        tokens.append(decode_tokens_per_second(model, n_tokens))
    rate = median(tokens)
    return DecodeSpeed(model.threads, rate, rate * bytes_per_token(model) / 1e9, median(ceilings))
