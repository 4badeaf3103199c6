"""What runs in an engine's own process: it loads a model, makes one token, then measures what it is asked for.

A script, started by engines.py. Nothing of the other engine may be imported here, or its memory would be counted too.
Requests and answers are lines of JSON: `["decode", 48]` -> the result; a MinferError -> `{"error": message}`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

DECODED = 32  # tokens in a context, at most, while decoding against the clock


class Minfer:
    """This project's engine."""

    def __init__(self, path: str, threads: int, context: int) -> None:
        import minfer_lib

        self._model = minfer_lib.load_model(path, threads=threads, context=context)
        self._model.session().feed([0])

    def decode(self, n_tokens: int) -> float:
        """tokens/s, one by one from an empty context."""
        from minfer_lib.bench.speed import decode_tokens_per_second

        return decode_tokens_per_second(self._model, n_tokens)

    def decode_for(self, seconds: float) -> float:
        """tokens/s of so many seconds."""
        session = self._model.session()
        return _tokens_per_second(seconds, self._model.weights.n_vocab, session.reset, lambda ids: session.feed(ids))

    def prefill(self, n_tokens: int) -> float:
        """tokens/s of a prompt of so many tokens, in an empty context."""
        from minfer_lib.bench.speed import prefill_tokens_per_second

        return prefill_tokens_per_second(self._model, n_tokens)


class LlamaCpp:
    """llama.cpp, as llama-cpp-python builds it."""

    def __init__(self, path: str, threads: int, context: int) -> None:
        import llama_cpp

        self._model = llama_cpp.Llama(path, n_ctx=context, n_threads=threads, n_threads_batch=threads, verbose=False)
        self._model.eval([0])
        self._n_vocab = self._model.n_vocab()

    def decode(self, n_tokens: int) -> float:
        self._model.reset()
        self._model.eval([0])
        start = time.perf_counter()
        for token in range(n_tokens):
            self._model.eval([token % self._n_vocab])
        return n_tokens / (time.perf_counter() - start)

    def decode_for(self, seconds: float) -> float:
        return _tokens_per_second(seconds, self._n_vocab, self._model.reset, self._model.eval)

    def prefill(self, n_tokens: int) -> float:
        ids = [token % self._n_vocab for token in range(n_tokens)]
        self._model.reset()
        start = time.perf_counter()
        self._model.eval(ids)
        return n_tokens / (time.perf_counter() - start)


def _tokens_per_second(seconds: float, n_vocab: int, empty: Callable, feed: Callable) -> float:
    """Tokens one by one until the time is over, the context emptied every DECODED of them: at least one."""
    n_tokens, start = 0, time.perf_counter()
    spent = 0.0
    while spent < seconds:
        if n_tokens % DECODED == 0:
            empty()
        feed([n_tokens % n_vocab])
        n_tokens += 1
        spent = time.perf_counter() - start
    return n_tokens / spent


def resident() -> int:
    """Bytes of this process that are in memory, the pages of the mapped model among them."""
    import psutil

    return psutil.Process().memory_info().rss


def main(engine: str, path: str, threads: str, context: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not become an answer

    def answer(value: object) -> None:
        print(json.dumps(value), file=answers, flush=True)

    try:
        running = {"minfer": Minfer, "llama.cpp": LlamaCpp}[engine](path, int(threads), int(context))
        answer("ready")
        for line in sys.stdin:
            what, amount = json.loads(line)
            answer(resident() if what == "resident" else getattr(running, what)(amount))
    except Exception as error:
        answer({"error": f"{engine} on {Path(path).name}: {type(error).__name__}: {error}"})


if __name__ == "__main__":
    main(*sys.argv[1:])
