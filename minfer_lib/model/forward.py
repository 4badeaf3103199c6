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
from minfer_lib.model.run import OPERATION, RUN, look_at_clock, run_alone, run_piece
from minfer_lib.model.schedule import Schedule, schedule, units_of
from minfer_lib.model.weights import Weights
from minfer_lib.native.claims import piece_job_address
from minfer_lib.native.clock import TICK_NS
from minfer_lib.native.pool import pool

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
        self.config, self.weights, self.threads, self.policy = config, weights, threads, policy
        self._phases = list(phases_of(config, weights))
        self.operations = [Placed(operation, i) for i, phase in self._phases for operation in phase]
        self._memory = Memory(config, cache, threads, PIECE, widths(config))
        for operation, _ in self.operations:
            operation.prepare(self._memory)
        self._records = [operation.bind(self._memory, i or 0) for operation, i in self.operations]
        self._names = list(dict.fromkeys(operation.name for operation, _ in self.operations))
        self._spent = np.zeros(len(self._names), np.int64)  # ticks
        self._prepared = np.zeros((threads, 8), np.int64)  # a cache line a worker
        self._operation_table = self._table()
        self._frequencies = rope_frequencies(config, weights.rope_factors)
        self._run = np.zeros(1, RUN)
        self._run["operations"] = self._operation_table.ctypes.data
        self._run["spent"], self._run["prepared"] = self._spent.ctypes.data, self._prepared.ctypes.data
        self._run["ggml"] = policy == "ggml"
        self._piece_job = piece_job_address(run_piece)
        self._one_token = self._schedule(1, 1)

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
        plan = self._one_token if len(ids) == 1 else self._schedule(len(ids), wanted)
        self._run["phases"] = plan.phases.ctypes.data
        self._prepared[:] = -1
        look_at_clock(self._run.ctypes.data, False)
        pool().run_phases(self._piece_job, self._run.ctypes.data, plan.pieces, self.threads)
        look_at_clock(self._run.ctypes.data, True)
        del kept
        return self._finite(logits)

    def walk(self, ids: list[int], position: int) -> Iterator[tuple[Placed, dict[str, np.ndarray]]]:
        """The same pass one operation at a time, by one worker: after each, the operation and its stages.

        Stages: name -> f32[n, …], views of buffers that later operations overwrite.
        """
        logits, kept = self._begin(ids, position, 1)
        for at, placed in enumerate(self.operations):
            operation, n = placed.operation, 1 if placed.layer is None else len(ids)
            look_at_clock(self._run.ctypes.data, False)
            run_alone(self._run.ctypes.data, at, at + 1, units_of(Phase(operation), self.config, n))
            yield (
                placed,
                {
                    placed.stage(stage): logits if buffer == "logits" else self._memory.floats[buffer][:n]
                    for stage, buffer in operation.stages.items()
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

    def _finite(self, logits: np.ndarray) -> np.ndarray:
        if self._run["bad"][0] or not np.isfinite(logits).all():  # a quantizer sees the first; floats only end here
            raise ArgumentError("the numbers inside the model became NaN or infinite: its weights are damaged.")
        return logits

    def _schedule(self, n_tokens: int, wanted: int) -> Schedule:
        return schedule(self._phases, self.config, n_tokens, wanted, self.threads, self.policy == "ggml")

    def _table(self) -> np.ndarray:
        """OPERATION[n]: the list as compiled code walks it."""
        table = np.zeros(len(self.operations), OPERATION)
        for row, (operation, i), record in zip(table, self.operations, self._records, strict=True):
            row["job"], row["operands"] = operation.address, record.ctypes.data
            row["of_wanted"], row["name"] = i is None, self._names.index(operation.name)
        return table
