"""The byte passport: one byte of weights, followed through the course. Each lesson adds what it knows about it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.formats.decode import dequantize
from minfer_lib.formats.elements import BitField, field_of, layout, number
from minfer_lib.formats.gguf import Tensor, read_gguf, row_tensor
from minfer_lib.formats.table import FORMATS
from minfer_lib.lessons.shared.course_model import course_model
from minfer_lib.lessons.shared.html_table import Table

FILE = "passport.json"
PRESET = "Q4_K_M"
_PLACE = ("tensor", "row", "block", "byte")


class Passport:
    """One byte of the course's model as Q4_K_M: where it is, what it holds, and the lines that lessons stamped.

    It is kept in `folder`, beside the notebooks. Without a file there, or where that file is about another model, the
    passport is a new one, of a byte in the middle of the first Q4_K matrix that feeds a layer's output (ffn_down).
    `choose` takes another byte; the lines were about the old one, so they are then gone.
    """

    def __init__(self, folder: str | Path = ".") -> None:
        self.path = Path(folder) / FILE
        self.model, self.source = course_model(PRESET), course_model()
        with read_gguf(self.model) as gguf:
            self._tensors = gguf.tensors
        self.tensor: Tensor | None = None
        self.row = self.block = self.byte = 0
        self.lines: dict[int, str] = {}  # lesson -> its line
        if not self._read():
            self.choose(*self._default())

    def choose(self, tensor: str, row: int, block: int, byte: int) -> Passport:
        """Follow byte `byte` of block `block` in row `row`. ArgumentError unless it is there and holds Q4_K codes."""
        self._check(tensor, row, block, byte)
        if self._place != (tensor, row, block, byte):
            self.tensor, self.row, self.block, self.byte, self.lines = self._tensors[tensor], row, block, byte, {}
        self._write()
        return self

    def stamp(self, lesson: int, line: str) -> Passport:
        """Add lesson's line, or replace the one that it added before."""
        self.lines[lesson] = line
        self._write()
        return self

    @property
    def _place(self) -> tuple[str, int, int, int]:
        return self.tensor.name if self.tensor else "", self.row, self.block, self.byte

    @property
    def offset(self) -> int:
        """The byte's position in the file `model`."""
        bytes_ = FORMATS[self.tensor.format].block_bytes
        row_bytes = row_tensor(self.tensor).shape[1]
        return self.tensor.offset + self.row * row_bytes + self.block * bytes_ + self.byte

    @property
    def raw(self) -> np.ndarray:
        """The byte's whole block, uint8."""
        bytes_ = FORMATS[self.tensor.format].block_bytes
        return row_tensor(self.tensor)[self.row, self.block * bytes_ :][:bytes_]

    @property
    def parts(self) -> tuple[BitField, ...]:
        """What the byte's bits hold: for Q4_K two codes."""
        return layout(self.tensor.format)[self.byte]

    @property
    def field(self) -> str:
        return field_of(self.tensor.format, self.byte).name

    @property
    def codes(self) -> list[int]:
        return [number(self.tensor.format, self.raw, part) for part in self.parts]

    @property
    def columns(self) -> list[int]:
        """Which weights of the row the byte holds: the activations that they meet have the same numbers."""
        return [self.block * FORMATS[self.tensor.format].block_values + part.index for part in self.parts]

    @property
    def values(self) -> np.ndarray:
        """f32[2]: those weights, decoded."""
        return dequantize(self.tensor.format, self.raw)[[part.index for part in self.parts]]

    @property
    def originals(self) -> np.ndarray:
        """f32[2]: the same weights in the model that was quantized."""
        with read_gguf(self.source) as gguf:
            tensor = gguf.tensors[self.tensor.name]
        return dequantize(tensor.format, row_tensor(tensor)[self.row])[self.columns]

    def _default(self) -> tuple[str, int, int, int]:
        name = next(n for n, t in self._tensors.items() if t.format == "Q4_K" and "ffn_down" in n)
        n_rows, n_in = self._tensors[name].shape
        row = FORMATS["Q4_K"]
        qs = next(f for f in row.fields if f.name == "qs")
        return name, n_rows // 2, n_in // row.block_values // 2, qs.offset + 37

    def _check(self, tensor: str, row: int, block: int, byte: int) -> None:
        found: Tensor | None = self._tensors.get(tensor)
        if found is None or found.format != "Q4_K":
            raise ArgumentError(f"{self.model.name} has no tensor {tensor!r} in Q4_K; choose one that is stored so.")
        n_blocks = found.shape[-1] // FORMATS["Q4_K"].block_values
        if not (0 <= row < found.shape[0] and 0 <= block < n_blocks):
            raise ArgumentError(f"{tensor} has rows 0 to {found.shape[0] - 1} and blocks 0 to {n_blocks - 1} in each.")
        qs = next(f for f in FORMATS["Q4_K"].fields if f.name == "qs")
        if not qs.offset <= byte < qs.offset + qs.count:
            raise ArgumentError(
                f"byte {byte} holds no codes; those are bytes {qs.offset} to {qs.offset + qs.count - 1}."
            )

    def _read(self) -> bool:
        """Whether the file holds a passport of this model; if so it is this one."""
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            if kept["model"] != self.model.name:
                return False
            place = [kept[key] for key in _PLACE]
            self._check(*place)
            self.lines = {int(lesson): str(line) for lesson, line in kept["lines"].items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return False
        self.tensor, self.row, self.block, self.byte = self._tensors[place[0]], *place[1:]
        return True

    def _write(self) -> None:
        place = dict(zip(_PLACE, self._place, strict=True))
        kept = {"model": self.model.name, **place, "lines": dict(sorted(self.lines.items()))}
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(kept, indent=1, ensure_ascii=False), encoding="utf-8")
        os.replace(part, self.path)

    def _table(self) -> Table:
        place = "{}, row {}, block {}, byte {}".format(*self._place)
        lines = [(f"lesson {lesson}", line) for lesson, line in sorted(self.lines.items())]
        return Table(("the byte", f"{place} of {self.model.name}"), lines)

    def __repr__(self) -> str:
        return repr(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()
