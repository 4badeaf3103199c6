"""A preset as a map: one square a matrix, its row what the matrix does, its column the layer, its colour the format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby

from minfer_lib.errors import ArgumentError
from minfer_lib.lessons.shared import svg
from minfer_lib.lessons.shared.look import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, Drawing

_COLOURS = {"2": SKY, "3": PURPLE, "4": BLUE, "5": GREEN, "6": ORANGE, "8": RED}  # by the bits of a code
_KINDS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
_MATRIX = re.compile(rf"blk\.(\d+)\.({'|'.join(_KINDS)})\.weight")
_CELL, _LEFT, _TOP, _LINE = 20, 84, 20, 24


def preset_map(formats: Mapping[str, str]) -> Drawing:
    """formats: tensor name -> format, of a whole model; tensors outside the layers are left out."""
    found: dict[str, dict[int, str]] = {}
    for name, format_ in formats.items():
        if match := _MATRIX.fullmatch(name):
            found.setdefault(match[2], {})[int(match[1])] = format_
    if not found:
        raise ArgumentError("there is no layer in these formats: a name reads blk.0.attn_q.weight.")
    n_layers = 1 + max(layer for row in found.values() for layer in row)
    kinds = [kind for kind in _KINDS if kind in found]
    parts = [svg.text(_LEFT + (i + 0.5) * _CELL, _TOP - 6, str(i), "middle") for i in range(n_layers)]
    for line, kind in enumerate(kinds):
        y = _TOP + line * _LINE
        parts.append(svg.text(_LEFT - 8, y + 16, kind, "end"))
        parts += [_square(_LEFT + layer * _CELL, y, format_) for layer, format_ in found[kind].items()]
    height = _TOP + len(kinds) * _LINE + 4
    legend = sorted({f for row in found.values() for f in row.values()})
    parts += [_key(i, height, format_) for i, format_ in enumerate(legend)]
    width = max(_LEFT + n_layers * _CELL + 4, _LEFT + 78 * len(legend))
    height += _LINE + 4
    told = "; ".join(f"{kind}: {_runs(found[kind])}" for kind in kinds)
    return svg.drawing(parts, width, height, f"Format of each matrix in {n_layers} layers. {told}.")


def _square(x: float, y: float, format_: str) -> str:
    digit = format_[1] if format_[0] == "Q" else ""
    colour = _COLOURS.get(digit, GREY)
    box = (
        f'<rect x="{x + 1}" y="{y}" width="{_CELL - 2}" height="{_LINE - 3}" rx="3" fill="{colour}" fill-opacity=".3" '
        f'stroke="{colour}" stroke-width="{1.5 if digit in "68" else 0.7}"/>'
    )
    return box + svg.text(x + _CELL / 2, y + 16, digit or format_[0], "middle")


def _key(i: int, y: float, format_: str) -> str:
    return _square(_LEFT + 78 * i, y, format_) + svg.text(_LEFT + 78 * i + _CELL + 4, y + 16, format_)


def _runs(row: Mapping[int, str]) -> str:
    """ "Q6_K in layers 0 to 3 and 6, else Q4_K": every format but the commonest with its layers."""
    by_format: dict[str, list[int]] = {}
    for layer, format_ in sorted(row.items()):
        by_format.setdefault(format_, []).append(layer)
    common = max(by_format, key=lambda format_: len(by_format[format_]))
    told = [f"{format_} in layers {_spans(layers)}" for format_, layers in by_format.items() if format_ != common]
    return ", ".join([*told, f"else {common}" if told else f"all {common}"])


def _spans(layers: list[int]) -> str:
    spans = [[layer for _, layer in group] for _, group in groupby(enumerate(layers), lambda pair: pair[1] - pair[0])]
    return ", ".join(str(s[0]) if len(s) == 1 else f"{s[0]} to {s[-1]}" for s in spans)
