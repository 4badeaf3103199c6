"""One token's way through the engine, each station a door to its notebook."""

from __future__ import annotations

import html
from pathlib import Path
from typing import NamedTuple

from minfer_lib.lessons.figures.look import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY


class Station(NamedTuple):
    title: str
    question: str
    notebook: str  # the one that explains it, if it is there
    colour: str


STATIONS = (
    Station("The file", "What do the bytes mean?", "01_block_layouts", ORANGE),
    Station("Quantize", "Why int8, and what does it cost?", "02_q8_0_quantization", BLUE),
    Station("One number", "What is one output, exactly?", "03_scalar_dot", GREEN),
    Station("Registers", "How does one instruction do 32 products?", "04_simd_dot", PURPLE),
    Station("The min term", "Why do K-quants need the sum of x?", "05_kquant_min_term", SKY),
    Station("Threads", "Which core computed this?", "06_thread_chunks", RED),
    Station("The GPU", "Why was the same math faster?", "07_mmvq_geometry", GREEN),
    Station("A sentence", "How do bytes become text?", "08_full_model_decode", BLUE),
)


class CourseMap:
    """Boxes in reading order. A station whose notebook lies in `folder` is a link."""

    def __init__(self, folder: Path) -> None:
        self.here = {path.stem for path in folder.glob("*.ipynb")}

    def _repr_html_(self) -> str:
        boxes = "".join(self._box(number, station) for number, station in enumerate(STATIONS, 1))
        return f'<nav aria-label="Map of the course" style="display:flex;flex-wrap:wrap;gap:10px">{boxes}</nav>'

    def _box(self, number: int, station: Station) -> str:
        there = station.notebook in self.here
        border = f"solid {station.colour}" if there else f"dashed {GREY}"
        title = f"{number} · {html.escape(station.title)}"
        if there:
            title = f'<a href="{station.notebook}.ipynb">{title}</a>'
        note = "" if there else '<div style="font-size:12px">not in this edition yet</div>'
        return (
            f'<div style="border:2px {border};border-radius:6px;padding:8px;width:150px">'
            f'<div style="font-weight:600">{title}</div>'
            f'<div style="font-size:13px">{html.escape(station.question)}</div>{note}</div>'
        )

    def __repr__(self) -> str:
        return " → ".join(f"{station.title} ({station.notebook})" for station in STATIONS)


def course_map(folder: str | Path = ".") -> CourseMap:
    """The map; notebooks are looked for in `folder`."""
    return CourseMap(Path(folder))
