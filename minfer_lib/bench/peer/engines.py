"""An engine in a process of its own: its memory and its start are then its own too, and its threads nobody else's."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from minfer_lib.errors import MinferError, UnsupportedError

OURS, THEIRS = "minfer", "llama.cpp"
_WORKER = Path(__file__).with_name("worker.py")
_ROOT = Path(__file__).resolve().parents[3]


def require_peer() -> None:
    """UnsupportedError without llama-cpp-python."""
    if importlib.util.find_spec("llama_cpp") is None:
        raise UnsupportedError(
            "llama-cpp-python is not installed, so there is nothing to compare with. "
            'Install it with: pip install -c requirements.lock -e ".[peer]" (it compiles for some ten minutes).'
        )


class Engine:
    """`with Engine(OURS, path, threads=2, context=512) as engine:`; `.seconds` from its start to its first token.

    switches: environment variables of the process, such as {"MINFER_NO_AMX": "1"}.
    Raises MinferError where the engine cannot run the model.
    """

    def __init__(
        self, name: str, path: Path, threads: int, context: int, switches: Mapping[str, str] | None = None
    ) -> None:
        search = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-P", str(_WORKER), name, str(path), str(threads), str(context)]
        start = time.perf_counter()
        self._process = subprocess.Popen(
            command, env=os.environ | {"PYTHONPATH": search} | dict(switches or {}), text=True, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            self._answer()
        except BaseException:
            self.close()
            raise
        self.seconds = time.perf_counter() - start

    def decode(self, n_tokens: int) -> float:
        """tokens/s, one by one from an empty context."""
        return self._ask("decode", n_tokens)

    def decode_for(self, seconds: float) -> float:
        """tokens/s of so many seconds, one by one from an almost empty context; at least one token is made."""
        return self._ask("decode_for", seconds)

    def prefill(self, n_tokens: int) -> float:
        """tokens/s of a prompt of so many tokens, in an empty context."""
        return self._ask("prefill", n_tokens)

    def resident(self) -> int:
        """Bytes that the process has in memory, the pages of the mapped model among them."""
        return self._ask("resident", 0)

    def _ask(self, what: str, amount: float) -> Any:
        with suppress(BrokenPipeError):  # it has ended: there is no answer either
            print(json.dumps([what, amount]), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> Any:
        line = self._process.stdout.readline()
        if not line:
            raise MinferError(f"the process of {self._process.args[3]} ended with status {self._process.wait()}.")
        answer = json.loads(line)
        if isinstance(answer, dict):
            raise MinferError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        with suppress(BrokenPipeError):  # what it never read
            self._process.stdin.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
