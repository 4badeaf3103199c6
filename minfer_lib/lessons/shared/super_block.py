"""One K-quant super-block, taken apart: the two levels of its scales, its codes, and the levels that they can take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.formats.elements import layout, number
from minfer_lib.formats.table import FORMATS

K_QUANTS = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")
_CODE_OFFSET = {"Q3_K": 4, "Q6_K": 32}  # the formats without a min: code - offset is signed
_SCALE_OFFSET = {"Q3_K": 32}


@dataclass(frozen=True)
class SuperBlock:
    """value = d * scale * (code - offset) - dmin * min, with a scale and a min for each group of 16 or 32 weights.

    `raw`: uint8, one super-block of `format`, one of K_QUANTS. Raises ArgumentError otherwise.
    """

    format: str
    raw: np.ndarray

    def __post_init__(self) -> None:
        if self.format not in K_QUANTS:
            raise ArgumentError(f"{self.format!r} is not a K-quant: those are {', '.join(K_QUANTS)}.")
        if np.shape(self.raw) != (FORMATS[self.format].block_bytes,):
            raise ArgumentError(f"one {self.format} super-block is uint8[{FORMATS[self.format].block_bytes}].")

    @cached_property
    def _numbers(self) -> dict[str, np.ndarray]:
        """What the block stores by name, each in order of its index; d and dmin as the bits of an f16."""
        pieces = sorted((part for byte in layout(self.format) for part in byte), key=lambda part: part.shift)
        parts = {(part.number, part.index): part for part in pieces}  # the highest piece knows whether it is signed
        found: dict[str, list[int]] = {}
        for name, index in sorted(parts):
            found.setdefault(name, []).append(number(self.format, self.raw, parts[name, index]))
        return {name: np.array(values) for name, values in found.items()}

    def _half(self, name: str) -> np.float32:
        bits = self._numbers.get(name, np.zeros(1, int))
        return np.float32(bits.astype(np.uint16).view(np.float16)[0])

    @property
    def d(self) -> np.float32:
        return self._half("d")

    @property
    def dmin(self) -> np.float32:
        """0 for the formats without a min."""
        return self._half("dmin")

    @property
    def scales(self) -> np.ndarray:
        """int[groups], signed where the format's are."""
        return self._numbers["scale"] - _SCALE_OFFSET.get(self.format, 0)

    @property
    def mins(self) -> np.ndarray:
        """int[groups]; zeros for the formats without a min."""
        return self._numbers.get("min", np.zeros_like(self.scales))

    @property
    def offset(self) -> int:
        """What is subtracted from every code."""
        return _CODE_OFFSET.get(self.format, 0)

    @property
    def codes(self) -> np.ndarray:
        """int[groups, weights of a group], as they are stored."""
        return self._numbers["code"].reshape(len(self.scales), -1)

    @property
    def levels(self) -> np.ndarray:
        """f32[groups, 4 to 64]: what a code of each group can decode to, by code."""
        return self._decoded(np.arange(1 << int(self.format[1])))

    @property
    def values(self) -> np.ndarray:
        """f32[groups, weights of a group]: mf.dequantize's."""
        return self._decoded(self.codes)

    def _decoded(self, codes: np.ndarray) -> np.ndarray:
        steps = self.d * self.scales.astype(np.float32)[:, None]
        lows = self.dmin * self.mins.astype(np.float32)[:, None]
        return steps * (codes - self.offset).astype(np.float32) - lows
