"""The one look of all figures: colours, sizes, light and dark, and text for those who cannot see them."""

from __future__ import annotations

import html
import io
from contextlib import AbstractContextManager
from typing import NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's colours: told apart under every common colour-blindness
ORANGE, SKY, GREEN, BLUE, RED, PURPLE, GREY = (
    "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#888888",
)  # fmt: skip

INK = "var(--jp-content-font-color1, currentColor)"  # the page's own text colour, in SVG and HTML


class Role(NamedTuple):
    """How the bytes of one kind of field are shown in every notebook: a colour, and lines that tell it without one."""

    what: str
    colour: str
    lines: str  # CSS borders


ROLES = {
    "scale": Role("scale", ORANGE, "border-bottom:3px solid"),
    "min": Role("min", GREEN, "border-bottom:3px double"),
    "scales": Role("sub-scales", RED, "border-bottom:3px solid;border-top:1px solid"),
    "codes": Role("codes", BLUE, "border-bottom:2px dotted"),
    "high": Role("high bits", PURPLE, "border-bottom:3px dashed"),
    "sums": Role("sums of codes", GREY, "border-bottom:1px solid;border-top:1px solid"),
    "unused": Role("unused", "transparent", "border-bottom:1px none"),
}
FIELD_ROLES = {  # a field's name in FORMATS, or what elements.layout calls a number -> its role
    "d": "scale", "m": "min", "dmin": "min", "min": "min", "scales": "scales", "scale": "scales", "qs": "codes",
    "ql": "codes", "code": "codes", "value": "codes", "qh": "high", "hmask": "high", "s": "sums", "sum": "sums",
    "bsums": "sums", "zero": "unused",
}  # fmt: skip


def role_css(role: Role) -> str:
    """Style of an HTML element: the role's colour as a light ground, under the page's own ink, and its lines."""
    ground = "none" if role.colour == "transparent" else f"{role.colour}40"
    return f"background:{ground};{role.lines};border-color:{role.colour}"


PLOT_INK = "#010203"  # stands for INK while matplotlib draws
_STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "minfer",  # the same picture is the same bytes
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": PLOT_INK,
    "axes.edgecolor": PLOT_INK,
    "axes.labelcolor": PLOT_INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": PLOT_INK,
    "ytick.color": PLOT_INK,
}


def style() -> AbstractContextManager:
    """`with style():` everything that matplotlib makes inside has the course's look."""
    return matplotlib.rc_context(_STYLE)


def new_axes(width: float, height: float) -> Axes:
    """The axes of an empty figure of that many inches. No pyplot: nothing global, nothing to close."""
    return Figure((width, height), layout="constrained").add_subplot()


class Drawing:
    """A finished figure: SVG text, with `alt` as its text for those who cannot see it."""

    def __init__(self, svg: str, alt: str) -> None:
        self.alt = alt
        self.svg = svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(alt, quote=True)}" ', 1)

    def _repr_html_(self) -> str:
        return f'<div style="max-width:100%;overflow-x:auto">{self.svg}</div>'

    def __repr__(self) -> str:
        return self.alt


class Picture(Drawing):
    """A matplotlib figure as inline SVG in the page's colours."""

    def __init__(self, figure: Figure, alt: str) -> None:
        out = io.StringIO()
        with style():
            figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
        svg = out.getvalue()
        super().__init__(svg[svg.index("<svg") :].replace(PLOT_INK, INK), alt)
