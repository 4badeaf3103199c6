"""One pass of some tokens through the list: ids -> logits of the last ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.model.config import Config
from minfer_lib.model.kv_cache import KvCache
from minfer_lib.model.layer import layer, output, widths
from minfer_lib.model.memory import Memory
from minfer_lib.model.operation import Operation, Phase
from minfer_lib.model.rope import rope_angles, rope_frequencies
from minfer_lib.model.run import OPERATION, RUN, run_operations
from minfer_lib.model.weights import Weights
from minfer_lib.native.clock import TICK_NS
from minfer_lib.native.pool import job_address, pool

PIECE = 128  # the most tokens of one pass: few enough that a stop or Ctrl-C acts at once


class Placed(NamedTuple):
    """An operation where it stands in the model: its layer, None after the last one."""

    operation: Operation
    layer: int | None

    def stage(self, name: str) -> str:
        """The full name of one of its stages: "blk.0.q"."""
        return name if self.layer is None else f"blk.{self.layer}.{name}"


def phases_of(config: Config, weights: Weights) -> Iterator[tuple[int | None, Phase]]:
    """All phases of the model with their layer, in order."""
    for i, w in enumerate(weights.layers):
        yield from ((i, phase) for phase in layer(config, w))
    yield from ((None, phase) for phase in output(weights))


class Forward:
    """The model's arithmetic over one cache: call it with tokens and the position of the first."""

    def __init__(self, config: Config, weights: Weights, cache: KvCache, threads: int, policy: str = "even") -> None:
        self.config, self.weights, self.threads = config, weights, threads
        phases = list(phases_of(config, weights))
        self.operations = [Placed(operation, i) for i, phase in phases for operation in phase]
        self._memory = Memory(config, cache, threads, PIECE, widths(config))
        for operation, _ in self.operations:
            operation.prepare(self._memory)
        self._records = [operation.bind(self._memory, i or 0) for operation, i in self.operations]
        self._names = list(dict.fromkeys(operation.name for operation, _ in self.operations))
        self._spent = np.zeros(len(self._names), np.int64)  # ticks
        self._counters = np.zeros((len(phases), 8), np.int64)  # a cache line each
        self._table = self._operation_table([phase for _, phase in phases])
        self._frequencies = rope_frequencies(config, weights.rope_factors)
        self._run = np.zeros(1, RUN)
        self._run["operations"], self._run["spent"] = self._table.ctypes.data, self._spent.ctypes.data
        self._run["claim"] = policy == "ggml"
        self._job = job_address(run_operations)

    @property
    def kinds(self) -> dict[str, str]:
        """Name of an operation -> what its time counts as."""
        return {operation.name: operation.kind for operation, _ in self.operations}

    @property
    def seconds(self) -> dict[str, float]:
        """How long the operations of each name took so far, over all layers and passes."""
        return dict(zip(self._names, (self._spent * (TICK_NS / 1e9)).tolist(), strict=True))

    def __call__(self, ids: list[int], position: int, wanted: int = 1) -> np.ndarray:
        """Tokens `ids` at position, position + 1 … -> f32[wanted, n_vocab], the logits after the last `wanted` tokens.

        At most PIECE ids. Fills the cache. Only the wanted rows go through the output matrix: to continue a text, the
        last is enough. Raises ArgumentError where the numbers end in NaN or infinity: the weights are damaged.
        """
        logits, kept = self._begin(ids, position, wanted)
        self._run_range(0, len(self.operations))
        del kept
        return self._finite(logits)

    def walk(self, ids: list[int], position: int) -> Iterator[tuple[Placed, dict[str, np.ndarray]]]:
        """The same pass one operation at a time: after each, the operation and its stages, name -> f32[n, …]."""
        logits, kept = self._begin(ids, position, 1)
        for i, placed in enumerate(self.operations):
            self._run_range(i, i + 1)
            n = len(ids) if placed.layer is not None else len(logits)
            yield (
                placed,
                {
                    placed.stage(stage): logits if buffer == "logits" else self._memory.floats[buffer][:n]
                    for stage, buffer in placed.operation.stages.items()
                },
            )
        del kept
        self._finite(logits)

    def _begin(self, ids: list[int], position: int, wanted: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """Fill in what this pass works on -> logits, and the arrays that must live until it is over."""
        run, config = self._run, self.config
        self._memory.floats["x"][: len(ids)] = self.weights.embed(ids)
        positions = np.arange(position, position + len(ids))
        cos, sin = rope_angles(positions, self._frequencies, config.rope_magnitude)
        logits = np.empty((wanted, self.weights.n_vocab), np.float32)
        self.operations[-1].operation.products["out"] = logits.ctypes.data
        run["n_tokens"], run["wanted"], run["position"], run["bad"] = len(ids), wanted, position, 0
        run["cos"], run["sin"] = cos.ctypes.data, sin.ctypes.data
        return logits, [cos, sin]

    def _run_range(self, first: int, last: int) -> None:
        """Operations [first, last) in one call: Python is not entered between them."""
        self._counters[:] = self.threads  # each worker begins with the chunk of its own number
        self._run["control"], self._run["first"], self._run["last"] = pool().control, first, last
        pool().run(self._job, self._run.ctypes.data, self.threads)

    def _finite(self, logits: np.ndarray) -> np.ndarray:
        if self._run["bad"][0] or not np.isfinite(logits).all():  # a quantizer sees the first; floats only end here
            raise ArgumentError("the numbers inside the model became NaN or infinite: its weights are damaged.")
        return logits

    def _operation_table(self, phases: list[Phase]) -> np.ndarray:
        """OPERATION[n]: the list as compiled code walks it."""
        table = np.zeros(len(self.operations), OPERATION)
        rows = iter(zip(table, self.operations, self._records, strict=True))
        end = 0
        for phase, counter in zip(phases, self._counters, strict=True):
            end += len(phase)
            for operation in phase:
                row, (_, i), record = next(rows)
                row["job"], row["operands"] = operation.address, record.ctypes.data
                row["units"], row["per_token"] = operation.units(self.config), operation.unit != "row"
                row["together"], row["of_wanted"] = operation.tokens_together(self.config), i is None
                row["alone"], row["at_once"] = operation.unit == "token", phase.at_once or 0
                row["phase_end"], row["name"] = end, self._names.index(operation.name)
                row["counter"] = counter.ctypes.data
        return table
