"""One token's way through the engine, each station a door to its notebook."""

from __future__ import annotations

import html
from pathlib import Path
from typing import NamedTuple

from minfer_lib.lessons.shared.look import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY


class Station(NamedTuple):
    title: str
    question: str
    notebook: str  # the one that explains it, if it is there
    colour: str
    place: tuple[int, int, int, int]  # left, top, width, height, in pixels


STATIONS = (
    Station("The file", "What do the bytes mean?", "01_block_layouts", ORANGE, (232, 292, 698, 56)),
    Station("Quantize", "Why int8, and what does it cost?", "02_q8_0_quantization", BLUE, (248, 54, 150, 84)),
    Station("One number", "What is one output, exactly?", "03_scalar_dot", GREEN, (422, 54, 142, 84)),
    Station("Registers", "How does one instruction do 32 products?", "04_simd_dot", PURPLE, (588, 54, 158, 84)),
    Station("The min term", "Why do K-quants need the sum of x?", "05_kquant_min_term", SKY, (770, 54, 146, 84)),
    Station("Threads", "Which core computed this?", "06_thread_chunks", RED, (422, 158, 237, 70)),
    Station("The GPU", "Why was the same math faster?", "07_mmvq_geometry", GREEN, (679, 158, 237, 70)),
    Station("A sentence", "How do bytes become text?", "08_full_model_decode", BLUE, (4, 54, 150, 174)),
)
_WIDTH, _HEIGHT = 936, 352
_FRAME = (232, 20, 698, 222)  # one matrix product
_ARROWS = (  # x1, y1, x2, y2
    (398, 96, 418, 96),
    (564, 96, 584, 96),
    (746, 96, 766, 96),
    (156, 84, 228, 84),
    (230, 196, 158, 196),
    (580, 290, 580, 246),
)
_WORDS = (
    (_FRAME[0] + 12, 40, "one matrix product: seven in every layer, and one at the end"),
    (164, 76, "tokens"),
    (164, 188, "logits"),
    (590, 272, "weights"),
)


class CourseMap:
    """Boxes along the way of a token. A station whose notebook lies in `folder` is a link."""

    def __init__(self, folder: Path) -> None:
        self.here = {path.stem for path in folder.glob("*.ipynb")}

    def _repr_html_(self) -> str:
        boxes = "".join(self._box(number, station) for number, station in enumerate(STATIONS, 1))
        return (
            '<div style="max-width:100%;overflow-x:auto"><nav aria-label="Map of the course" '
            f'style="position:relative;width:{_WIDTH}px;height:{_HEIGHT}px">{_arrows()}{boxes}</nav></div>'
        )

    def _box(self, number: int, station: Station) -> str:
        there, (left, top, width, height) = station.notebook in self.here, station.place
        border = f"solid {station.colour}" if there else f"dashed {GREY}"
        title = f"{number} · {html.escape(station.title)}"
        if there:
            title = f'<a href="{station.notebook}.ipynb">{title}</a>'
        note = "" if there else '<div style="font-size:12px">not in this edition yet</div>'
        return (
            f'<div style="position:absolute;left:{left}px;top:{top}px;width:{width}px;height:{height}px;'
            f'box-sizing:border-box;border:2px {border};border-radius:6px;padding:6px 8px">'
            f'<div style="font-weight:600">{title}</div>'
            f'<div style="font-size:13px;line-height:1.25">{html.escape(station.question)}</div>{note}</div>'
        )

    def __repr__(self) -> str:
        return " → ".join(f"{station.title} ({station.notebook})" for station in STATIONS)


def _arrows() -> str:
    """What lies under the boxes: the frame of a matrix product, and who hands what to whom."""
    x, y, width, height = _FRAME
    lines = "".join(
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{GREY}" stroke-width="2" marker-end="url(#way)"/>'
        for x1, y1, x2, y2 in _ARROWS
    )
    words = "".join(f'<text x="{x}" y="{y}">{text}</text>' for x, y, text in _WORDS)
    return (
        f'<svg aria-hidden="true" width="{_WIDTH}" height="{_HEIGHT}" style="position:absolute;left:0;top:0" '
        f'fill="{INK}" font-family="sans-serif" font-size="13"><defs><marker id="way" viewBox="0 0 8 8" refX="7" '
        f'refY="4" markerWidth="5" markerHeight="5" orient="auto"><path d="M0 0L8 4L0 8z" fill="{GREY}"/></marker>'
        f'</defs><rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{GREY}" fill-opacity="0.08" '
        f'stroke="{GREY}" stroke-dasharray="3 3"/>{lines}{words}</svg>'
    )


def course_map(folder: str | Path = ".") -> CourseMap:
    """The map; notebooks are looked for in `folder`."""
    return CourseMap(Path(folder))
