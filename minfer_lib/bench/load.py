"""How fast is it when the machine is not idle? Beside programs that keep a core busy, and several decoders at once.

Every round measures everything once, so that what is compared was measured within the same minute.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from minfer_lib.bench.peer.compare import DECODE, FIRST_TOKEN, PROMPT
from minfer_lib.bench.peer.engines import OURS, THEIRS, Engine, require_peer
from minfer_lib.bench.tables import spread
from minfer_lib.engine.session import load_model
from minfer_lib.engine.warmup import warmup

BUSY, DECODERS = (0, 1, 2, 4), (1, 2, 4)
TOGETHER, SLOWEST = "decoders, together", "decoders, the slowest"
CONTEXT, N_PROMPT = 512, 256

# It says when it runs. It ends when whoever started it is gone: then its input is closed.
_BUSY_PROGRAM = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
print("busy", flush=True)
while True: pass
"""


@dataclass(frozen=True)
class LoadRow:
    """One quantity, round by round. The numbers at the same place of two rows were measured in the same round."""

    what: str
    busy: int  # programs beside it
    decoders: int  # processes of the engine at work
    unit: str
    ours: list[float]
    theirs: list[float]  # llama.cpp's; empty without it
    ours_over_alone: float  # over the same with no busy program and one decoder; the median of the rounds
    theirs_over_alone: float | None

    @property
    def ratio(self) -> float | None:
        """Ours over theirs, the median of the rounds."""
        return _ratio(self.ours, self.theirs)

    def as_dict(self) -> dict:
        return asdict(self) | {"ratio": self.ratio}


def _ratio(above: Sequence[float], below: Sequence[float]) -> float | None:
    if not above or not below:
        return None
    return median(a / b for a, b in zip(above, below, strict=True))


@contextmanager
def busy_programs(count: int) -> Iterator[list[subprocess.Popen]]:
    """So many processes that each keep a core busy, ended however the block ends."""
    programs: list[subprocess.Popen] = []
    try:
        for _ in range(count):
            command = [sys.executable, "-c", _BUSY_PROGRAM]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            programs.append(subprocess.Popen(command, **pipes))
        for program in programs:
            program.stdout.readline()
        yield programs
    finally:
        for program in programs:
            program.kill()
        for program in programs:
            program.communicate()  # waits for its end, and closes the pipes


class Load:
    """`with Load(path, threads) as load: load.round(); …; load.rows()`.

    peer: measure llama.cpp too, in turn. Raises UnsupportedError where it is not installed.
    busy, decoders: how many programs and decoders; the first number of each is what the others are compared with.
    seconds: of decode, each time that it is measured.
    """

    def __init__(
        self, path: Path, threads: int, peer: bool = False, busy: Sequence[int] = BUSY,
        decoders: Sequence[int] = DECODERS, seconds: float = 1.0,
    ) -> None:  # fmt: skip
        if peer:
            require_peer()
        self.path, self.threads, self.busy, self.decoders, self.seconds = path, threads, busy, decoders, seconds
        self.names = [OURS, THEIRS] if peer else [OURS]
        model = load_model(path, threads=threads)
        warmup(model)  # the engines' own processes then find all compiled
        self.context = min(CONTEXT, model.config.context)
        self.n_prompt = min(N_PROMPT, self.context)
        # what, busy programs, decoders -> engine -> its number of each round
        self._found: dict[tuple[str, int, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def __enter__(self) -> Load:
        with ExitStack() as stack:
            self._engines = {
                name: [stack.enter_context(self._engine(name)) for _ in range(max(self.decoders))]
                for name in self.names
            }
            self._threads = stack.enter_context(ThreadPoolExecutor(max(self.decoders)))
            self._ends = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ends.close()

    def _engine(self, name: str) -> Engine:
        return Engine(name, self.path, self.threads, self.context)

    def round(self) -> None:
        """Measure everything once. The engines take turns in who is first."""
        self.names.reverse()
        for busy in self.busy:
            with busy_programs(busy):
                for name in self.names:
                    self._beside(busy, name)
        for decoders in self.decoders:
            for name in self.names:
                self._at_once(decoders, name)

    def _beside(self, busy: int, name: str) -> None:
        engine = self._engines[name][0]
        self._note(DECODE, busy, 1, name, engine.decode_for(self.seconds))
        self._note(PROMPT.format(self.n_prompt), busy, 1, name, engine.prefill(self.n_prompt))
        with self._engine(name) as started:
            self._note(FIRST_TOKEN, busy, 1, name, started.seconds)

    def _at_once(self, decoders: int, name: str) -> None:
        """All decode for the same time, so that none is alone at the end."""
        engines = self._engines[name][:decoders]
        rates = list(self._threads.map(lambda engine: engine.decode_for(self.seconds), engines))
        self._note(TOGETHER, 0, decoders, name, sum(rates))
        self._note(SLOWEST, 0, decoders, name, min(rates))

    def _note(self, what: str, busy: int, decoders: int, name: str, number: float) -> None:
        self._found[what, busy, decoders][name].append(number)

    def rows(self) -> list[LoadRow]:
        """What the rounds so far have found."""
        whats = dict.fromkeys(what for what, _, _ in self._found)
        keys = sorted(self._found, key=lambda key: list(whats).index(key[0]))  # by what; else as they were measured
        alone: dict[str, dict[str, list[float]]] = {}
        rows = []
        for what, busy, decoders in keys:
            found = self._found[what, busy, decoders]
            over = [_ratio(found[name], alone.setdefault(what, found)[name]) for name in (OURS, THEIRS)]
            unit = "s" if what == FIRST_TOKEN else "tokens/s"
            rows.append(LoadRow(what, busy, decoders, unit, found[OURS], found[THEIRS], *over))
        return rows


def load_table(path: Path, threads: int, rounds: int = 5, peer: bool = False, **options) -> dict:
    """Print the table of a Load and return it. options: those of Load."""
    print(f"{path.name}, threads: {threads}; the median of {rounds} rounds, and how far they spread")
    with Load(path, threads, peer, **options) as load:
        for done in range(rounds):
            load.round()
            print(f"round {done + 1} of {rounds}", file=sys.stderr, flush=True)
        rows = load.rows()
    print(
        f"{'what':22} {'busy':>4} {'decoders':>8} {'minfer':>20} {'/ alone':>7} {'llama.cpp':>20} {'/ alone':>7} "
        f"{'unit':9} {'ratio':>5}"
    )
    for row in rows:
        alone, other, ratio = (_number(n) for n in (row.ours_over_alone, row.theirs_over_alone, row.ratio))
        print(
            f"{row.what:22} {row.busy:4} {row.decoders:8} {spread(row.ours):>20} {alone:>7} {spread(row.theirs):>20} "
            f"{other:>7} {row.unit:9} {ratio:>5}"
        )
    return {"model": path.name, "threads": threads, "load": [row.as_dict() for row in rows]}


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
