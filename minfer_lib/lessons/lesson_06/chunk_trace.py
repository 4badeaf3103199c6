"""Which thread computed which rows, and when: the rows as squares, and a timeline under them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from minfer_lib.lessons.shared import svg
from minfer_lib.lessons.shared.look import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY, Drawing
from minfer_lib.matmul.trace import Trace

_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED, "#B0A000", GREY)  # a thread's; its number stands beside it
_SQUARE, _PER_LINE, _ROWS = 24, 16, 64  # of a square: pixels, how many a line, rows of the matrix
_TOP, _LEGEND, _WIDTH = 24, 412, 800
_LABEL, _RIGHT = 64, 24  # of the timeline


def trace_picture(trace: Trace, until: float | None = None) -> Drawing:
    """A trace of one token's product, or of a simulated one; `until`: as it stood after so many nanoseconds."""
    end = trace.nanoseconds
    now = end if until is None else until
    cut, rows = trace.plan, _ROWS
    while cut.rows > rows * _PER_LINE * 16:
        rows *= 2
    lines = -(-cut.rows // (rows * _PER_LINE))
    grid_height = max(lines * _SQUARE, 20 * min(cut.threads, 16) + 4)
    top = _TOP + grid_height + 30
    step = 24 if cut.threads <= 4 else 15
    height = top + step * cut.threads + 40
    parts = [svg.text(0, 14, f"a square: {rows} rows; {_PER_LINE} a line")]
    parts += [_outline(cut.rows, rows), *_squares(trace, rows, now), *_legend(trace, now)]
    parts += _timeline(trace, top, step, now, end)
    return svg.drawing(parts, _WIDTH, height, _told(trace, now), font_size=13)


def colour(thread: int) -> str:
    return _COLOURS[thread % len(_COLOURS)]


def _slices(first: int, last: int, rows: int) -> list[tuple[float, int, float]]:
    """Rows [first, last) as x, line, width in squares, cut where a line ends."""
    per_line = rows * _PER_LINE
    edges = [first, *range((first // per_line + 1) * per_line, last, per_line), last]
    return [(a % per_line / rows, a // per_line, (b - a) / rows) for a, b in pairwise(edges)]


def _outline(n_rows: int, rows: int) -> str:
    """Where the chunks are that nobody has taken."""
    path = "".join(_box(x, line, width, 1.5) for x, line, width in _slices(0, n_rows, rows))
    return f'<path d="{path}" fill="{GREY}" fill-opacity=".13"/>'


def _box(x: float, line: int, width: float, gap: float) -> str:
    w, h = width * _SQUARE - 2 * gap, _SQUARE - 2 * gap
    return f"M{x * _SQUARE + gap:.4g} {_TOP + line * _SQUARE + gap:.4g}h{max(w, 1):.4g}v{h:g}h-{max(w, 1):.4g}z"


def _squares(trace: Trace, rows: int, now: float) -> list[str]:
    """A path a thread for what is done, one for what it computes, and the thread's number in each."""
    parts = []
    for thread in range(trace.plan.threads):
        done, doing, marks = [], [], []
        for chunk, _, start, end in trace.of(thread).tolist():
            r0, r1, c0, c1 = trace.plan.bounds(chunk)
            if start > now or r0 == r1 or c0 == c1:
                continue
            for x, line, width in _slices(r0, r1, rows):
                (done if end <= now else doing).append(_box(x, line, width, 1.5))
                if width * _SQUARE >= 12:
                    marks.append(svg.text((x + width / 2) * _SQUARE, _TOP + line * _SQUARE + 17, str(thread), "middle"))
        shade = colour(thread)
        parts.append(f'<path d="{"".join(done)}" fill="{shade}" fill-opacity=".42" stroke="{shade}"/>')
        if doing:
            parts.append(f'<path d="{"".join(doing)}" fill="none" stroke="{shade}" stroke-width="2.5"/>')
        parts += marks
    return parts


def _legend(trace: Trace, now: float) -> list[str]:
    """What each thread has done so far."""
    parts = [svg.text(_LEGEND + 30 + at, 14, name) for at, name in ((0, "thread"), (64, "chunks"), (144, "rows"))]
    parts.append(svg.text(_LEGEND + 348, 14, "finished at", "end"))
    for thread in range(trace.plan.threads):
        y = _TOP + 20 * thread
        own = trace.of(thread)
        done = own[own["end"] <= now]
        rows = sum((r1 - r0) * (c1 - c0) for r0, r1, c0, c1 in map(trace.plan.bounds, done["chunk"].tolist()))
        shade = colour(thread)
        parts.append(
            f'<rect x="{_LEGEND}" y="{y + 2}" width="22" height="15" fill="{shade}" fill-opacity=".42" '
            f'stroke="{shade}"/>'
        )
        over = len(own) == 0 or len(done) == len(own)
        last = f"{(own['end'].max() if len(own) else 0) / 1000:,.0f} µs" if over else "…"
        for at, shown, anchor in ((36, thread, "start"), (140, len(done), "end"), (214, f"{rows:,}", "end"),
                                  (348, last, "end")):  # fmt: skip
            parts.append(svg.text(_LEGEND + at, y + 14, str(shown), anchor))
    return parts


def _timeline(trace: Trace, top: float, step: float, now: float, end: float) -> list[str]:
    """A line a thread, a box a chunk; the thin line is time in which it waits."""
    scale = (_WIDTH - _LABEL - _RIGHT) / end
    bottom, bar = top + step * trace.plan.threads, step - 4
    parts = [svg.text(_LABEL, top - 8, "each chunk in time; a thin line is waiting")]
    for thread in range(trace.plan.threads):
        y = top + thread * step
        own = trace.of(thread)
        boxes = [
            f"M{_LABEL + start * scale:.5g} {y:g}h{max((min(stop, now) - start) * scale - 0.6, 0.4):.4g}v{bar}"
            f"h-{max((min(stop, now) - start) * scale - 0.6, 0.4):.4g}z"
            for start, stop in own[["start", "end"]].tolist()
            if start < now
        ]
        parts.append(svg.text(_LABEL - 8, y + bar / 2 + 5, f"thread {thread}", "end"))
        parts.append(
            f'<path d="M{_LABEL} {y + bar / 2:g}h{now * scale:.5g}" stroke="{GREY}"/>'
            f'<path d="{"".join(boxes)}" fill="{colour(thread)}"/>'
        )
    parts += _axis(bottom, end, scale)
    if now < end:
        parts.append(f'<path d="M{_LABEL + now * scale:.5g} {top - 4}V{bottom}" stroke="{INK}" stroke-width="1.5"/>')
    return parts


def _axis(bottom: float, end: float, scale: float) -> list[str]:
    """Ticks at round numbers of microseconds, about six of them."""
    rough = end / 6000
    unit = 10 ** np.floor(np.log10(rough))
    tick = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough)
    parts = [f'<path d="M{_LABEL} {bottom}h{end * scale:.5g}" stroke="{INK}"/>']
    for i in range(int(end / 1000 / tick) + 1):
        x = _LABEL + i * tick * 1000 * scale
        parts.append(f'<path d="M{x:.5g} {bottom}v5" stroke="{INK}"/>')
        parts.append(svg.text(x, bottom + 19, f"{i * tick:,g}", "middle"))
    parts.append(svg.text(_WIDTH - _RIGHT, bottom + 34, "µs", "end"))
    return parts


def _told(trace: Trace, now: float) -> str:
    cut, done = trace.plan, trace.chunks["end"] <= now
    shares = []
    for thread in range(cut.threads):
        own = trace.of(thread)["chunk"].tolist()
        first = ", ".join(map(str, own[:6])) + (" …" if len(own) > 6 else "")
        shares.append(f"thread {thread} took {len(own)}" + (f": {first}" if own else ""))
    return (
        f"{cut.rows:,} rows in {cut.chunks} chunks, {int(done.sum())} of them done after {now / 1000:,.0f} of "
        f"{trace.nanoseconds / 1000:,.0f} µs. {'; '.join(shares)}."
    )
