"""Pieces of figures that are drawn as SVG: words, boxes, and the frame around them."""

from __future__ import annotations

from collections.abc import Iterable

from minfer_lib.lessons.shared.look import INK, Drawing


def drawing(
    parts: Iterable[str], width: int, height: float, alt: str, *, font_size: int = 12, widest: int | None = None
) -> Drawing:
    """Frame `parts`, SVG elements on width x height pixels, as a figure that says `alt` to those who cannot see it.

    widest: the figure grows with the page up to so many pixels; None: it keeps its size. A narrower page scrolls it
    rather than squeeze its text.
    """
    size = f"width:{width}px;height:{height}px;max-width:none"
    grow = ""
    if widest is not None:
        size, grow = f"min-width:{width}px;max-width:{widest}px", ' width="100%"'
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"{grow} fill="{INK}" '
        f'font-family="sans-serif" font-size="{font_size}" style="{size}">{"".join(parts)}</svg>'
    )
    return Drawing(svg, alt)


def text(
    x: float, y: float, words: object, anchor: str = "start", *, size: int | None = None, opacity: float = 1.0
) -> str:
    """Words (or SVG <tspan>s) on the baseline y, of which x is the "start", "middle" or "end"; size in pixels."""
    more = f' font-size="{size}"' if size else ""
    more += f' opacity="{opacity}"' if opacity != 1 else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{more}>{words}</text>'


def box(x: float, y: float, width: float, height: float, colour: str, opacity: float) -> str:
    """A filled rectangle without an edge."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{colour}" fill-opacity="{opacity}"/>'
