"""One block of 32 values, quantized: the real bytes, what they hold, and how far they are off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import minfer_lib as mf
from minfer_lib.formats.packing import unpack
from minfer_lib.lessons.shared.snr import snr

BLOCK_FORMATS = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")


@dataclass(frozen=True)
class QuantizedBlock:
    """`raw` is what mf.quantize made of x, f32[32]; `values`, f32[32], what mf.dequantize makes of raw."""

    format: str
    x: np.ndarray
    raw: np.ndarray
    values: np.ndarray

    def field(self, name: str) -> np.ndarray:
        """A field of the block by its name, read from the bytes."""
        return self.raw.view(mf.FORMATS[self.format].dtype)[name][0]

    @property
    def d(self) -> float:
        return float(self.field("d"))

    @property
    def m(self) -> float | None:
        """The offset of the _1 formats."""
        return float(self.field("m")) if self.format.endswith("_1") else None

    @property
    def codes(self) -> np.ndarray:
        """int[32], as they are stored: 0 to 15 or 31, and for Q8_0 -127 to 127."""
        qs = self.field("qs")
        if self.format == "Q8_0":
            return qs.astype(int)
        codes = unpack(qs[None], 16, 4)[0].astype(int)
        if self.format.startswith("Q5"):
            codes += 16 * unpack(self.field("qh").reshape(1).view(np.uint8)[None], 1, 1)[0]
        return codes

    @property
    def levels(self) -> np.ndarray:
        """f32, ascending: what this block's codes can decode to. None for Q8_0: its 255 are too many to draw."""
        if self.format == "Q8_0":
            return np.empty(0, np.float32)
        block = self.raw.copy()
        fields = block.view(mf.FORMATS[self.format].dtype)
        fields["qs"] = np.arange(16) * 0x11  # both halves of byte j are j
        if self.format.startswith("Q5"):
            fields["qh"] = 0xFFFF0000  # the fifth bit: 0 in the first half, 1 in the second
        return np.unique(mf.dequantize(self.format, block))

    @property
    def errors(self) -> np.ndarray:
        return self.values - self.x

    @property
    def steps(self) -> np.ndarray:
        """The errors in steps of d; zeros where d is zero."""
        return self.errors / abs(self.d) if self.d else np.zeros_like(self.x)

    @property
    def worst(self) -> int:
        """Which value is furthest off."""
        return int(np.abs(self.errors).argmax())

    @property
    def snr(self) -> float:
        return snr(self.x, self.values)


def quantized(format: str, x: np.ndarray) -> QuantizedBlock:
    """x: f32[32]; format: one of BLOCK_FORMATS."""
    if format not in BLOCK_FORMATS:
        raise mf.ArgumentError(f"{format!r} is not a format of 32-value blocks: those are {', '.join(BLOCK_FORMATS)}.")
    x = np.asarray(x, np.float32)
    if x.shape != (32,):
        raise mf.ArgumentError(f"one block is f32[32]; got shape {x.shape}.")
    raw = mf.quantize(format, x)
    return QuantizedBlock(format, x, raw, mf.dequantize(format, raw))
