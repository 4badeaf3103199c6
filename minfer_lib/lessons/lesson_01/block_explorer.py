"""The block explorer: any block of any tensor as bytes, and what each byte means."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import NamedTuple

import ipywidgets as widgets
import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.formats.elements import field_of, layout
from minfer_lib.formats.gguf import Gguf
from minfer_lib.formats.table import FORMATS
from minfer_lib.lessons.shared.block_bytes import Block, kind_of, purpose
from minfer_lib.lessons.shared.page_box import PageBox

_COUNTED = ("rows", "blocks a row", "bytes a block")


class Source(NamedTuple):
    """What can be chosen: rows of blocks."""

    format: str
    rows: np.ndarray  # uint8[n_rows, row_bytes]
    offset: int | None  # of the first byte in its file; None: not in a file


class BlockExplorer(PageBox):
    """Choose tensor, row and block; the byte slider (arrow keys) decodes a byte, and so does hovering over one.

    what: an open GGUF file, or format name -> uint8 array of whole blocks, for blocks that are in no file.
    show() does what the controls do; `.alt` says in words what is shown.
    """

    def __init__(self, what: Gguf | Mapping[str, np.ndarray], tensor: str | None = None) -> None:
        self._sources = _sources(what)
        self._quiet = False
        options = [(f"{name} · {s.format}" if name != s.format else name, name) for name, s in self._sources.items()]
        label = "tensor" if isinstance(what, Gguf) else "format"
        wide = widgets.Layout(width="98%", max_width="640px")
        self._tensor = widgets.Dropdown(options=options, value=tensor or options[0][1], description=label, layout=wide)
        self._row = widgets.BoundedIntText(description="row", min=0, layout=widgets.Layout(width="170px"))
        self._block = widgets.BoundedIntText(description="block", min=0, layout=widgets.Layout(width="170px"))
        self._byte = widgets.IntSlider(description="byte", min=0, layout=wide)
        self._limits, self._dump, self._detail = widgets.Label(), widgets.HTML(), widgets.HTML()
        for widget, name in (
            (self._tensor, "tensor"),
            (self._row, "row"),
            (self._block, "block"),
            (self._byte, "byte"),
            (self._dump, "dump"),
            (self._detail, "detail"),
        ):
            widget.add_class(f"minfer-{name}")
        self._tensor.observe(lambda change: self._changed(row=0, block=0, byte=0), "value")
        self._row.observe(lambda change: self._changed(), "value")
        self._block.observe(lambda change: self._changed(), "value")
        self._byte.observe(lambda change: self._changed(), "value")
        for widget in (self._dump, self._detail):  # on a narrow page they shrink, and scroll inside
            widget.layout = widgets.Layout(min_width="0", max_width="98%", overflow="auto")
        picture = widgets.Box(
            [self._dump, self._detail], layout=widgets.Layout(flex_flow="row wrap", grid_gap="8px 32px")
        )
        super().__init__([self._tensor, widgets.HBox([self._row, self._block, self._limits]), self._byte, picture])
        self.add_class("minfer-explorer")
        self._changed()

    def show(self, tensor: str | None = None, row: int = 0, block: int = 0, byte: int = 0) -> BlockExplorer:
        """Go to a byte. ArgumentError where there is none."""
        tensor = tensor or self._tensor.value
        if tensor not in self._sources:
            raise ArgumentError(f"there is no {tensor!r} here; there are {', '.join(list(self._sources)[:5])} ….")
        source = self._sources[tensor]
        size = FORMATS[source.format].block_bytes
        limits = {"row": (row, len(source.rows)), "block": (block, source.rows.shape[1] // size), "byte": (byte, size)}
        for what, (value, end) in limits.items():
            if not 0 <= value < end:
                raise ArgumentError(f"{tensor} has no {what} {value}: they go from 0 to {end - 1}.")
        self._quiet, self._tensor.value = True, tensor
        self._quiet = False
        self._changed(row, block, byte)
        return self

    def _changed(self, row: int | None = None, block: int | None = None, byte: int | None = None) -> None:
        """Set the controls that are given, keep all inside what there is, and draw once."""
        if self._quiet:
            return
        self._quiet = True
        source = self._sources[self._tensor.value]
        size = FORMATS[source.format].block_bytes
        ends = (len(source.rows), source.rows.shape[1] // size, size)
        for widget, value, end in zip((self._row, self._block, self._byte), (row, block, byte), ends, strict=True):
            widget.max = end - 1
            if value is not None:
                widget.value = value
        for widget, end in ((self._row, ends[0]), (self._block, ends[1])):
            widget.layout.display = "none" if end == 1 else None
        self._limits.value = " · ".join(f"{end:,} {what}" for end, what in zip(ends, _COUNTED, strict=True) if end > 1)
        self._quiet = False
        self._draw(source, size)

    def _draw(self, source: Source, size: int) -> None:
        row, first, byte = self._row.value, self._block.value * size, self._byte.value
        block = Block(source.format, source.rows[row, first : first + size])
        picture = block.dump(byte)
        self.alt = f"{self._tensor.value}, row {row}, block {self._block.value}. {picture.alt}"
        self._dump.value = picture.html
        at = None if source.offset is None else source.offset + row * source.rows.shape[1] + first + byte
        self._detail.value = _detail(block, byte, at)

    def _page(self) -> str:
        name = f"<p><b>{html.escape(self._tensor.label)}</b>, row {self._row.value}, block {self._block.value}</p>"
        return name + self._dump.value + self._detail.value


def _detail(block: Block, byte: int, at: int | None) -> str:
    """The chosen byte: where it is, its bits, and what they hold."""
    field = field_of(block.name, byte)
    where = f"byte {byte} of {block.row.block_bytes}" + ("" if at is None else f", position {at:,} in the file")
    told = "".join(f"<li>{html.escape(text)}</li>" for text in block.told(byte))
    return (
        f'<div role="status" aria-live="polite" style="line-height:1.5;font-size:14px"><b>{where}</b><br>'
        f"field {field.name}: {purpose(block.name, field)}, {kind_of(field)}{block.bits([byte]).html}"
        f'<ul style="margin:4px 0;padding-left:1.2em">{told}</ul>{_values(block, byte)}</div>'
    )


def _values(block: Block, byte: int) -> str:
    """What the values that share a scale are: the first few of them."""
    shared = {e for part in layout(block.name)[byte] if len(part.elements) > 1 for e in part.elements}
    if not shared:
        return ""
    shown = ", ".join(f"{block.values[e]:.4g}" for e in sorted(shared)[:4])
    return f"their values: {shown}, … ({len(shared)} of them)"


def _sources(what: Gguf | Mapping[str, np.ndarray]) -> dict[str, Source]:
    if isinstance(what, Gguf):
        return {
            name: Source(t.format, t.data.reshape(-1, FORMATS[t.format].row_bytes(t.shape[-1])), t.offset)
            for name, t in what.tensors.items()
            if t.data.size
        }
    sources = {}
    for name, raw in what.items():
        if name not in FORMATS or raw.dtype != np.uint8 or not raw.size or raw.size % FORMATS[name].block_bytes:
            raise ArgumentError(
                f"{name!r} needs a format's name and its whole blocks as uint8; got {raw.size} {raw.dtype}."
            )
        sources[name] = Source(name, raw.reshape(1, -1), None)
    return sources
