"""What is measured beside llama.cpp: the same file, the same threads, turn by turn in one run.

Only ratios mean anything: the machine is the same for both, and how busy it is changes from second to second.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from minfer_lib.bench.peer.engines import OURS, THEIRS, Engine, require_peer
from minfer_lib.bench.speed import CeilingProbe, bytes_per_token
from minfer_lib.engine.session import load_model
from minfer_lib.engine.warmup import warmup
from minfer_lib.quantize.preset import PRESETS
from minfer_lib.simd.isa import has_amx

DECODE, CEILING, PROMPT, NO_AMX = "decode", "weights read", "prompt of {}", "prompt of {}, no AMX"
FIRST_TOKEN, FIRST_EVER, RESIDENT, OVER_FILE = "first token", "first token, no cache", "resident", "over the file"
CONTEXT = 2048


@dataclass(frozen=True)
class Comparison:
    """One quantity of both, round by round: each round's two numbers were measured one after the other."""

    model: str
    preset: str  # the file's own, such as "Q4_K_M"; "" where it does not say
    what: str
    threads: int
    unit: str
    ours: list[float]
    theirs: list[float]  # llama.cpp's; for CEILING the read-only probe's; for FIRST_EVER nothing

    @property
    def ratio(self) -> float | None:
        """Ours over theirs, the median of the rounds."""
        if not self.theirs:
            return None
        return median(a / b for a, b in zip(self.ours, self.theirs, strict=True))

    def as_dict(self) -> dict:
        return asdict(self) | {"ratio": self.ratio}


class Compare:
    """`Compare(path).speed(threads)` and `.start_and_memory(threads)`: comparisons, one by one as they are measured.

    rounds: how often each is measured. Raises UnsupportedError without the extra "peer".
    """

    def __init__(self, path: Path, rounds: int = 7, probe: CeilingProbe | None = None) -> None:
        require_peer()
        self.path, self.rounds = path, rounds
        model = load_model(path)
        warmup(model)  # the engine's own process then finds all compiled
        self.context = min(CONTEXT, model.config.context)
        self._gigabytes = bytes_per_token(model) / 1e9
        self.probe = probe or CeilingProbe(bytes_per_token(model))
        file_type = model.gguf.metadata.get("general.file_type")
        self.preset = next((name for name, preset in PRESETS.items() if preset.file_type == file_type), "")

    def speed(self, threads: int, n_decode: int = 48, prompts: Sequence[int] = (32, 256)) -> Iterator[Comparison]:
        """Decode from an empty context, and what it reads; then prompts of so many tokens, those that fit."""
        prompts = [n for n in prompts if n <= self.context]
        n_decode = min(n_decode, self.context - 1)
        with self._engine(OURS, threads) as ours, self._engine(THEIRS, threads) as theirs:
            mine, other, ceiling = self._in_turn(
                lambda: ours.decode(n_decode),
                lambda: theirs.decode(n_decode),
                lambda: self.probe.gigabytes_per_second(threads),
            )
            yield self._row(DECODE, threads, "tokens/s", mine, other)
            yield self._row(CEILING, threads, "GB/s", [rate * self._gigabytes for rate in mine], ceiling)
            for n in prompts:
                pair = self._in_turn(lambda n=n: ours.prefill(n), lambda n=n: theirs.prefill(n))
                yield self._row(PROMPT.format(n), threads, "tokens/s", *pair)
            if prompts and has_amx():
                with self._engine(OURS, threads, MINFER_NO_AMX="1") as without:
                    pair = self._in_turn(lambda: without.prefill(prompts[-1]), lambda: theirs.prefill(prompts[-1]))
                yield self._row(NO_AMX.format(prompts[-1]), threads, "tokens/s", *pair)

    def start_and_memory(self, threads: int) -> Iterator[Comparison]:
        """From nothing to the first token, without any compiled kernel too; then the memory of a full context."""
        seconds, memory = {OURS: [], THEIRS: []}, {OURS: [], THEIRS: []}
        for _ in range(self.rounds):
            for name, spans in seconds.items():
                with self._engine(name, threads) as engine:
                    spans.append(engine.seconds)
        yield self._row(FIRST_TOKEN, threads, "s", *seconds.values())
        with (
            tempfile.TemporaryDirectory() as empty,
            self._engine(OURS, threads, NUMBA_CACHE_DIR=empty) as engine,
        ):
            yield self._row(FIRST_EVER, threads, "s", [engine.seconds], [])
        for name, sizes in memory.items():
            with self._engine(name, threads) as engine:
                engine.prefill(self.context)
                engine.decode(1)
                sizes.append(engine.resident() / 1e6)
        yield self._row(RESIDENT, threads, "MB", *memory.values())
        file = self.path.stat().st_size / 1e6  # each has read all of it
        yield self._row(OVER_FILE, threads, "MB", *([size - file for size in sizes] for sizes in memory.values()))

    def _engine(self, name: str, threads: int, **switches: str) -> Engine:
        return Engine(name, self.path, threads, self.context, switches)

    def _in_turn(self, *calls: Callable[[], float]) -> list[list[float]]:
        """Each call's results, round by round. A round before them is not counted: pages come from the disk once."""
        rounds = [[call() for call in calls] for _ in range(1 + self.rounds)]
        return [list(results) for results in zip(*rounds[1:], strict=True)]

    def _row(self, what: str, threads: int, unit: str, ours: list[float], theirs: list[float]) -> Comparison:
        return Comparison(self.path.name, self.preset, what, threads, unit, ours, theirs)
