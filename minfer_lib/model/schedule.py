"""Who shares what in a pass: the phases of the list, and into how many pieces each is cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minfer_lib.matmul.chunks import ggml_chunks
from minfer_lib.model.config import Config
from minfer_lib.model.operation import Phase
from minfer_lib.model.run import PHASE
from minfer_lib.native.claims import MOST_PIECES

ROWS_TOGETHER = 16  # rows of a matrix are handed out by whole tiles


@dataclass(frozen=True)
class Schedule:
    """PHASE[n] of a pass with some number of tokens, and int64[n + 1]: how many pieces each has, then a 0."""

    phases: np.ndarray
    pieces: np.ndarray


def units_of(phase: Phase, config: Config, n: int) -> int:
    """How many units a phase has with n tokens."""
    operation = phase[0]
    units, together = operation.units(config), operation.tokens_together(config)
    return units if operation.unit == "row" else units * (n // together + n % together)


def schedule(
    phases: list[tuple[int | None, Phase]], config: Config, n_tokens: int, wanted: int, workers: int, ggml: bool
) -> Schedule:
    """The schedule of a pass over (layer, phase) in order; those without a layer see the wanted tokens only."""
    rows, pieces, first, own = [], [], 0, 0
    for layer, phase in phases:
        n = wanted if layer is None else n_tokens
        end = first + len(phase)
        alone = n == 1 and phase[0].unit == "token"  # every worker does it for itself, before the phase that follows
        if n > 0 and not alone:
            units, step = units_of(phase, config, n), ROWS_TOGETHER if phase[0].unit == "row" else 1
            at_once = phase.at_once if n > 1 and phase.at_once else units
            rows.append((own, first, end, units, step, at_once))
            pieces.append(_pieces(units, step, workers, ggml))
            own = end
        first = end
    return Schedule(np.array(rows, PHASE), np.array([*pieces, 0], np.int64))


def _pieces(units: int, step: int, workers: int, ggml: bool) -> int:
    if ggml and step > 1:
        return int(ggml_chunks(units, 1, workers)[0])
    return min(-(-units // step), workers, MOST_PIECES)  # more pieces cost more claims than they even out
