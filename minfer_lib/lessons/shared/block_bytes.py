"""One block as bytes: a hex dump with a line of its own for each field, and single bytes cut into their bits."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from minfer_lib.formats.decode import dequantize
from minfer_lib.formats.elements import BitField, field_of, layout, number
from minfer_lib.formats.table import FORMATS, Field
from minfer_lib.lessons.shared.look import FIELD_ROLES, INK, ROLES, Role, role_css

_LINE = 16  # bytes
_KINDS = {"<f2": "f16", "<f4": "f32", "|u1": "u8", "|i1": "i8", "<u2": "u16", "<i2": "i16", "<u4": "u32", "<i4": "i32"}


class Markup:
    """A finished figure in HTML, with `alt` as its text for those who cannot see it."""

    def __init__(self, markup: str, alt: str) -> None:
        self.html, self.alt = markup, alt

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.alt


class Block:
    """The bytes of one block of format `name`, and what each of them says. `raw`: uint8[block_bytes]."""

    def __init__(self, name: str, raw: np.ndarray) -> None:
        self.name, self.raw = name, np.asarray(raw, np.uint8)
        self.row = FORMATS[name]
        self.values = dequantize(name, self.raw)

    def dump(self, byte: int | None = None) -> Markup:
        """All bytes, sixteen a line, each field in its colour and under its name; `byte` is framed."""
        lines = []
        for field in self.row.fields:
            size = field.dtype.itemsize * field.count
            for first in range(0, size, _LINE):
                here = range(field.offset + first, field.offset + min(first + _LINE, size))
                lines.append(self._line(field, here, byte))
        alt = f"Hex dump of one {self.name} block, {self.row.block_bytes} bytes: " + ", ".join(
            f"{f.name} ({purpose(self.name, f)}), {f.dtype.itemsize * f.count} bytes at {f.offset}"
            for f in self.row.fields
        )
        if byte is not None:
            alt += f". Byte {byte} is selected: {'; '.join(self.told(byte))}"
        grid = f"display:grid;grid-template-columns:max-content max-content repeat({_LINE},1.75em);row-gap:2px"
        markup = (
            f'<div style="overflow-x:auto;max-width:100%"><div role="img" aria-label="{html.escape(alt + ".")}" '
            f'style="{grid};font:13px/1.4 var(--jp-code-font-family,monospace);color:{INK};padding:3px;'
            f'width:max-content">{"".join(lines)}</div></div>'
        )
        return Markup(markup, alt + ".")

    def _line(self, field: Field, here: range, selected: int | None) -> str:
        role = role_of(field.name)
        name = f"<b>{field.name}</b> {purpose(self.name, field)}" if here.start == field.offset else ""
        css = role_css(role)
        cells = [f'<span style="padding-right:1em">{name}</span><span style="{_OFFSET}">{here.start}</span>']
        for i in here:
            frame = f"outline:2px solid {INK};font-weight:700;" if i == selected else ""
            title = html.escape(f"byte {i}, {field.name}: {'; '.join(self.told(i))}")
            cells.append(f'<span title="{title}" style="{_BYTE}{css};{frame}">{self.raw[i]:02x}</span>')
        if len(here) < _LINE:
            cells.append(f'<span style="grid-column:span {_LINE - len(here)}"></span>')
        return "".join(cells)

    def told(self, byte: int) -> list[str]:
        """What the byte's parts are, lowest bits first."""
        return [self._part_told(byte, part) for part in layout(self.name)[byte]]

    def _part_told(self, byte: int, part: BitField) -> str:
        whole = number(self.name, self.raw, part)
        bits = "" if part.n_bits == 8 else f"{_bits(part.low, part.n_bits)}: "
        if part.number == "code":
            piece = f" (bit {part.shift} of it)" if part.n_bits == 1 else ""
            return f"{bits}element {part.index}, code {whole}{piece}, value {self.values[part.index]:.5g}"
        if part.number == "value":
            return f"element 0, value {self.values[0]:.5g}"
        if part.number == "zero":
            return "always zero"
        if part.number in ("scale", "min"):
            return f"{bits}{part.number} {part.index} = {whole}, for elements {_range(part.elements)}"
        if part.number == "sum":
            return f"sum {part.index} = {whole}, of the codes of elements {_range(part.of)}"
        field = field_of(self.name, byte)
        real = self.raw.view(self.row.dtype)[field.name].item()
        goes = f"of the codes of elements {_range(part.of)}" if part.of else f"for all {self.row.block_values} elements"
        return f"{field.name} = {real:.5g}, {goes}"

    def bits(self, bytes_: Sequence[int], caption: str = "") -> Markup:
        """A table with two lines for each of `bytes_`: its bits from 7 down to 0, and what each run of them holds."""
        head = "".join(f'<th style="{_TH};width:3.5em">{bit}</th>' for bit in range(7, -1, -1))
        lines = "".join(self._bit_lines(byte) for byte in bytes_)
        told = "; ".join(f"byte {i} = 0x{self.raw[i]:02x}: {', '.join(self.told(i))}" for i in bytes_)
        title = f'<caption style="text-align:left">{html.escape(caption)}</caption>' if caption else ""
        markup = (
            f'<div style="overflow-x:auto;max-width:100%"><table aria-label="{html.escape(told)}" '
            f'style="border-collapse:separate;border-spacing:1px 0;color:{INK};font-size:13px;margin:0">{title}'
            f'<thead><tr><th style="{_TH}">byte</th><th style="{_TH}">hex</th>{head}</tr></thead>'
            f"<tbody>{lines}</tbody></table></div>"
        )
        return Markup(markup, told)

    def _bit_lines(self, byte: int) -> str:
        first = (
            f'<th rowspan="2" style="{_TH}">{byte}</th><td rowspan="2" style="{_TH};{_CODE}">{self.raw[byte]:02x}</td>'
        )
        digits, labels = [], []
        for part in reversed(layout(self.name)[byte]):
            role = ROLES["high"] if part.number == "code" and part.shift else role_of(part.number)
            ground = role_css(role).partition(";")[0]
            for bit in range(part.low + part.n_bits - 1, part.low - 1, -1):
                digits.append(f'<td style="{_TH};{_CODE};{ground};padding-top:4px">{self.raw[byte] >> bit & 1}</td>')
            labels.append(
                f'<td colspan="{part.n_bits}" style="{_LABEL};{role_css(role)}">{_label(part, self.name)}</td>'
            )
        gap = '<td colspan="10" style="height:3px;padding:0"></td>'
        plain = '<tr style="background:none">'  # JupyterLab would shade every other line
        return "".join(f"{plain}{line}</tr>" for line in (first + "".join(digits), "".join(labels), gap))


def role_of(field: str) -> Role:
    return ROLES[FIELD_ROLES[field]]


def purpose(name: str, field: Field) -> str:
    """What a field of format `name` is for, in words."""
    end = field.offset + field.count * field.dtype.itemsize
    if {"scale", "min"} <= {part.number for parts in layout(name)[field.offset : end] for part in parts}:
        return "sub-scales, mins"
    return role_of(field.name).what


def kind_of(field: Field) -> str:
    """A field's type in words: "f16", "16 × u8"."""
    kind = _KINDS[field.dtype.str]
    return kind if field.count == 1 else f"{field.count} × {kind}"


def _label(part: BitField, name: str) -> str:
    """What stands under a part's bits: the number, and which of its bits, if it has more of them elsewhere."""
    if part.number == "zero":
        return "unused"
    what = {"code": f"element {part.index}", "value": "value"}.get(part.number, part.number)
    if part.number in ("scale", "min", "sum"):
        what += f" {part.index}"
    pieces = [p for parts in layout(name) for p in parts if (p.number, p.index) == (part.number, part.index)]
    return what if len(pieces) == 1 or part.n_bits == 1 else f"{what}<br>{_bits(part.shift, part.n_bits)}"


def _bits(low: int, n: int) -> str:
    return f"bit {low}" if n == 1 else f"bits {low + n - 1}–{low}"


def _range(elements: range) -> str:
    return f"{elements[0]} to {elements[-1]}"


_OFFSET = "opacity:.75;padding-right:.7em;text-align:right"
_BYTE = "text-align:center;margin-right:2px;box-sizing:border-box;"
_TH = "text-align:center;font-weight:600;padding:2px 4px"
_LABEL = "text-align:center;font-size:12px;line-height:1.3;padding:0 2px 2px"
_CODE = "font-family:var(--jp-code-font-family,monospace)"
