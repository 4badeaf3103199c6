"""llama.cpp beside us: the same file, the same threads, turn by turn in one run. Needs the extra "peer".

Only ratios mean anything: the machine is the same for both, and how busy it is changes from second to second.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from minfer_lib.bench import decode_tokens_per_second, prefill_tokens_per_second
from minfer_lib.engine import load_model
from minfer_lib.errors import UnsupportedError
from minfer_lib.warmup import warmup


@dataclass(frozen=True)
class Comparison:
    """tokens/s of both, round by round."""

    model: str
    what: str  # "decode" or "prompt of 32"
    threads: int
    ours: list[float]
    theirs: list[float]

    @property
    def ratio(self) -> float:
        """Ours over theirs, the median of the rounds: each round's two numbers were measured one after the other."""
        return median(a / b for a, b in zip(self.ours, self.theirs, strict=True))

    def as_dict(self) -> dict:
        return asdict(self) | {"ratio": self.ratio}


class LlamaCpp:
    """A model in llama.cpp, as llama-cpp-python builds it."""

    def __init__(self, path: Path, threads: int, context: int) -> None:
        if importlib.util.find_spec("llama_cpp") is None:
            raise UnsupportedError(
                "llama-cpp-python is not installed, so there is nothing to compare with. "
                'Install it with: pip install -c requirements.lock -e ".[peer]" (it compiles for some ten minutes).'
            )
        import llama_cpp

        self._model = llama_cpp.Llama(
            str(path), n_ctx=context, n_batch=context, n_threads=threads, n_threads_batch=threads, verbose=False
        )

    def decode_tokens_per_second(self, n_tokens: int) -> float:
        self._model.reset()
        self._model.eval([0])
        start = time.perf_counter()
        for token in range(n_tokens):
            self._model.eval([token])
        return n_tokens / (time.perf_counter() - start)

    def prefill_tokens_per_second(self, n_tokens: int) -> float:
        self._model.reset()
        start = time.perf_counter()
        self._model.eval(list(range(n_tokens)))
        return n_tokens / (time.perf_counter() - start)


def compare(
    path: Path, threads: int, n_decode: int = 48, prompts: Sequence[int] = (32, 256), rounds: int = 7
) -> list[Comparison]:
    """Decode from an empty context, then prompts of so many tokens: what one waits for the first token.

    Both engines in turn, round by round. Raises UnsupportedError without the extra.
    """
    theirs = LlamaCpp(path, threads, context=512)
    ours = load_model(path, threads=threads, context=512)
    warmup(ours)

    def rounds_of(what: str, our: Callable, their: Callable, n: int) -> Comparison:
        our(ours, n), their(n)  # the file's pages come from the disk once
        pairs = [(our(ours, n), their(n)) for _ in range(rounds)]
        return Comparison(path.name, what, threads, [a for a, _ in pairs], [b for _, b in pairs])

    return [
        rounds_of("decode", decode_tokens_per_second, theirs.decode_tokens_per_second, n_decode),
        *(rounds_of(f"prompt of {n}", prefill_tokens_per_second, theirs.prefill_tokens_per_second, n) for n in prompts),
    ]
