"""One Q4_0 block and the Q8_0 block that it meets, laid one above the other: bytes, codes, products, one number."""

from __future__ import annotations

import numpy as np

from minfer_lib.formats.table import FORMATS
from minfer_lib.lessons.shared import svg
from minfer_lib.lessons.shared.look import BLUE, GREY, ORANGE, Drawing
from minfer_lib.lessons.shared.wording import shown

_LEFT, _COLUMN, _ROW, _RIGHT = 130, 38, 24, 76  # of names, a column, a row, the sums
_WIDTH = _LEFT + 16 * _COLUMN + _RIGHT
_BYTES, _BANDS = 44, (124, 236)  # tops of the bytes and of the two halves
_HEIGHT = _BANDS[1] + 3 * (_ROW + 3) + 60


def pair_picture(w: np.ndarray, a: np.ndarray) -> Drawing:
    """w: uint8[18], a Q4_0 block; a: uint8[34], a Q8_0 block -> how the dot product of the two comes about."""
    weights, activations = (np.asarray(raw, np.uint8) for raw in (w, a))
    d_w, qs = weights.view(FORMATS["Q4_0"].dtype)[0]
    d_a, codes = activations.view(FORMATS["Q8_0"].dtype)[0]
    d_w, d_a, codes = np.float32(d_w), np.float32(d_a), codes.astype(int)
    centred = np.concatenate([qs & 15, qs >> 4]).astype(int) - 8
    products = centred * codes
    isum, sums = int(products.sum()), [int(products[:16].sum()), int(products[16:].sum())]
    value = np.float32(isum) * d_w * d_a
    parts = [*_head(weights, d_w), *_head(activations, d_a, row=1), *_weight_bytes(qs)]
    for half in range(2):
        part = slice(16 * half, 16 * half + 16)
        parts += _band(half, centred[part], codes[part], products[part], sums[half])
    fold = f"isum = {_sum(sums)} = {shown(isum)}"
    result = f"({shown(isum)} · {_real(d_w)}) · {_real(d_a)} = {_real(value)}"
    y = _HEIGHT - 32
    parts.append(svg.text(_LEFT, y, f"{fold}, an integer, exact"))
    parts.append(svg.text(_LEFT, y + 22, f"(isum · d_w) · d_a = {result}, the only floats"))
    told = (
        f"A Q4_0 block, scale {_real(d_w)}, above a Q8_0 block, scale {_real(d_a)}. Low halves of bytes 0 to 15, "
        f"less 8: {_list(centred[:16])}; they meet codes 0 to 15: {_list(codes[:16])}; the products add up to "
        f"{shown(sums[0])}. High halves: {_list(centred[16:])}; they meet codes 16 to 31: {_list(codes[16:])}; "
        f"{shown(sums[1])}. Together {shown(isum)}, times the scales {_real(value)}."
    )
    return svg.drawing(parts, _WIDTH, _HEIGHT, told, font_size=13, widest=1000)


def _head(raw: np.ndarray, d: np.float32, row: int = 0) -> list[str]:
    """A block's name and its scale, the two bytes and the number."""
    name = ("Q4_0, 18 bytes", "Q8_0, 34 bytes")[row]
    x, y = _LEFT + 232 * row, 4
    box = f'<rect x="{x + 112}" y="{y}" width="46" height="20" fill="{ORANGE}" fill-opacity=".3"/>'
    line = f'<rect x="{x + 112}" y="{y + 20}" width="46" height="2" fill="{ORANGE}"/>'
    bytes_ = svg.text(x + 135, y + 15, raw[:2].tobytes().hex(" "), "middle")
    return [svg.text(x, y + 15, f"{name}: d", "start"), box, line, bytes_, svg.text(x + 164, y + 15, f"= {_real(d)}")]


def _weight_bytes(qs: np.ndarray) -> list[str]:
    """The sixteen bytes of codes; each hex digit is one code, the low one at the right and in the darker half."""
    parts = [svg.text(_LEFT - 8, _BYTES + 16, "Q4_0 byte qs[j]", "end"), svg.text(_LEFT - 8, _BYTES + 40, "j", "end")]
    for j, byte in enumerate(qs):
        x, half = _LEFT + j * _COLUMN, _COLUMN / 2 - 1
        for digit, opacity, at in ((byte >> 4, 0.15, x + 1), (byte & 15, 0.4, x + 1 + half)):
            parts.append(svg.box(at, _BYTES, half, _ROW, BLUE, opacity))
            parts.append(svg.text(at + half / 2, _BYTES + 16, f"{digit:x}", "middle"))
        parts.append(svg.text(x + _COLUMN / 2, _BYTES + 40, str(j), "middle"))
    return parts


def _band(half: int, weights: np.ndarray, codes: np.ndarray, products: np.ndarray, total: int) -> list[str]:
    """Three rows: the codes of one half of the bytes, the activation codes under them, the products."""
    top, which = _BANDS[half], ("low", "high")[half]
    first = 16 * half
    parts = [svg.text(_LEFT, top - 7, f"elements {first} to {first + 15}: the {which} halves")]
    rows = (
        (f"Q4_0 {which} half − 8", weights, BLUE, (0.4, 0.15)[half]),
        (f"× Q8_0 qs[{'j' if not half else 'j + 16'}]", codes, BLUE, 0.25),
        ("= product", products, GREY, 0.25),
    )
    for i, (name, numbers, colour, opacity) in enumerate(rows):
        y = top + i * (_ROW + 3)
        parts.append(svg.text(_LEFT - 8, y + 16, name, "end"))
        for j, number in enumerate(numbers):
            parts.append(svg.box(_LEFT + j * _COLUMN + 1, y, _COLUMN - 2, _ROW, colour, opacity))
            parts.append(svg.text(_LEFT + (j + 0.5) * _COLUMN, y + 16, shown(number), "middle"))
    at = _LEFT + 16 * _COLUMN + 6
    return [*parts, svg.text(at, top + 2 * (_ROW + 3) + 16, f"Σ {shown(total)}")]


def _real(number: float) -> str:
    return f"{number:.6g}".replace("-", "−")


def _sum(sums: list[int]) -> str:
    return f"{shown(sums[0])} {'−' if sums[1] < 0 else '+'} {abs(sums[1])}"


def _list(numbers: np.ndarray) -> str:
    return ", ".join(shown(number) for number in numbers)
