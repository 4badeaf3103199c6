"""A matrix spread over a GPU's threads: the grid's blocks, one block's lanes, one row's units, and who takes which."""

from __future__ import annotations

from minfer_lib.gpu.geometry import WARP, Geometry, Gpu, Place
from minfer_lib.lessons.shared import svg
from minfer_lib.lessons.shared.look import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, Drawing
from minfer_lib.lessons.shared.wording import counted

_WIDTH, _LABEL = 800, 148
_BLOCK, _MOST = 15, 40  # of the grid: pixels a block; how many are drawn
_LANE, _LINE = 20, 19  # of a block: pixels a lane, a warp
_UNIT, _PER_LINE, _UNITS = 6, 128, 18  # of a row: pixels 32 values, how many of them a line; height of a line
_ROWS = (BLUE, GREEN, PURPLE, SKY)  # colours of a block's rows; their numbers stand beside them


def geometry_picture(geometry: Geometry, block: int, thread: int) -> Drawing:
    """From the grid down to the units of one thread."""
    place = geometry.place(block, thread)
    parts = _grid(geometry, block)
    top = 62
    parts.append(svg.text(0, top, f"thread block {block}: {counted(geometry.launch.warps, 'warp')} of {WARP} lanes"))
    parts.append(svg.text(_WIDTH, top, "in a lane: how many units of a row it takes", "end", opacity=0.8))
    parts += _lanes(geometry, place, top + 8)
    top += 8 + _LINE * geometry.launch.warps + 26
    parts.append(svg.text(0, top, _row_title(geometry, place)))
    parts += _row(geometry, place, top + 8)
    height = top + 8 + _UNITS * -(-geometry.n_in // (32 * _PER_LINE)) + 4
    return svg.drawing(parts, _WIDTH, height, f"{_told(geometry)} {thread_told(geometry, place)}", font_size=13)


def thread_told(geometry: Geometry, place: Place) -> str:
    """ "Thread 37 of thread block 0 is lane 5 of warp 1. It takes 3 units of row 0: 37 = (super-block 4, …) …"."""
    who = f"Thread {place.thread} of thread block {place.block} is lane {place.lane} of warp {place.warp}."
    if not place.units:
        return f"{who} It is idle: {_why_idle(geometry, place)}."
    rows = f"row{'s' * (len(place.rows) > 1)} {', '.join(map(str, place.rows))}"
    first = ", ".join(unit_told(geometry, unit) for unit in place.units[:4])
    more = " …" if len(place.units) > 4 else ""
    return f"{who} It takes {counted(len(place.units), 'unit')} of {rows}: {first}{more}."


def unit_told(geometry: Geometry, unit: int) -> str:
    """Where in a row of super-blocks a unit lies."""
    if geometry.unit_values == 256:
        return f"super-block {unit}"
    return f"{unit} = (super-block {unit // 8}, sub-block {unit % 8})"


def _why_idle(geometry: Geometry, place: Place) -> str:
    if not place.rows:
        return f"there are only {geometry.n_out:,} rows"
    return f"a row has {geometry.units} units, and {geometry.launch.row_threads} threads share it"


def _grid(geometry: Geometry, block: int) -> list[str]:
    """The first blocks and the last one, each a square; the chosen one is filled."""
    n = geometry.blocks
    shown = list(range(min(n, _MOST)))
    rows = counted(geometry.launch.rows, "row")
    parts = [svg.text(0, 14, f"grid: {n:,} thread blocks, {rows} each")]
    if block not in shown:
        shown[-2:] = [-1, block]
    for at, number in enumerate(shown):
        x = at * (_BLOCK + 3)
        if number < 0:
            parts.append(svg.text(x + _BLOCK / 2, 36, "…", "middle"))
            continue
        fill, opacity = (ORANGE, 0.9) if number == block else (GREY, 0.35)
        parts.append(
            f'<rect x="{x}" y="24" width="{_BLOCK}" height="{_BLOCK}" fill="{fill}" fill-opacity="{opacity}"/>'
        )
    if n > len(shown):
        parts.append(svg.text(len(shown) * (_BLOCK + 3) + 2, 36, f"… {n:,}"))
    return parts


def _lanes(geometry: Geometry, place: Place, top: int) -> list[str]:
    parts = []
    for warp in range(geometry.launch.warps):
        y = top + warp * _LINE
        first = geometry.place(place.block, warp * WARP)
        parts.append(svg.text(_LABEL - 8, y + 14, f"warp {warp}, {_rows(first.rows)}", "end"))
        for lane in range(WARP):
            here = geometry.place(place.block, warp * WARP + lane)
            parts += _lane(here, _LABEL + lane * _LANE + lane // 8 * 3, y, here.thread == place.thread)
    return parts


def _rows(rows: tuple[int, ...]) -> str:
    if not rows:
        return "no row"
    return f"row {rows[0]:,}" if len(rows) == 1 else f"rows {rows[0]:,}–{rows[-1]:,}"


def _lane(here: Place, x: int, y: int, chosen: bool) -> list[str]:
    size = f'x="{x}" y="{y}" width="{_LANE - 2}" height="{_LINE - 2}"'
    edge = f' stroke="{ORANGE}" stroke-width="3"' if chosen else ""
    if not here.units:
        edge = edge or f' stroke="{GREY}" stroke-dasharray="2 3"'
        return [f'<rect {size} fill="none"{edge}/>']
    colour = _ROWS[here.rows[0] % len(_ROWS)]
    label = svg.text(x + (_LANE - 2) / 2, y + 13, str(len(here.units)), "middle", size=11)
    return [f'<rect {size} fill="{colour}" fill-opacity=".4"{edge}/>', label]


def _row_title(geometry: Geometry, place: Place) -> str:
    if not place.rows:
        return f"this warp has no row: the matrix has {geometry.n_out:,}"
    unit = "super-blocks of 256 values" if geometry.unit_values == 256 else "units of 32 values, eight a super-block"
    return f"row {place.rows[0]:,}: {geometry.units:,} {unit}; the chosen lane's are filled, its warp's are edged"


def _row(geometry: Geometry, place: Place, top: int) -> list[str]:
    """Units as boxes, a gap after each super-block; the chosen thread's filled, its warp's edged."""
    if not place.rows:
        return []
    first = place.warp * WARP
    warp = {u for lane in range(WARP) for u in geometry.place(place.block, first + lane).units}
    wide = geometry.unit_values // 32
    paths: dict[str, list[str]] = {"others": [], "warp": [], "lane": []}
    for unit in range(geometry.units):
        line, at = divmod(unit * wide, _PER_LINE)
        x, width = at * _UNIT, wide * _UNIT - 1.5 - (at % 8 == 8 - wide)
        box = f"M{x} {top + line * _UNITS}h{width}v{_UNITS - 4}H{x}z"
        paths["lane" if unit in place.units else "warp" if unit in warp else "others"].append(box)
    looks = {
        "others": f'fill="{GREY}" fill-opacity=".25"',
        "warp": f'fill="{SKY}" fill-opacity=".5" stroke="{BLUE}"',
        "lane": f'fill="{RED}" stroke="{RED}"',
    }
    return [f'<path d="{"".join(boxes)}" {looks[name]}/>' for name, boxes in paths.items() if boxes]


def _told(geometry: Geometry) -> str:
    launch = geometry.launch
    return (
        f"A matrix of {geometry.n_out:,} rows of {geometry.n_in:,} values, {counted(launch.rows, 'row')} a block: "
        f"{geometry.blocks:,} thread blocks of {counted(launch.warps, 'warp')}, {geometry.threads:,} threads. A row "
        f"has {geometry.units} units for {launch.row_threads} threads, {geometry.idle_threads} of them idle."
    )


def flight_picture(geometry: Geometry, gpu: Gpu, bytes_a_thread: int) -> Drawing:
    """Little's law: bytes that the resident threads wait for, beside those that keep the memory busy."""
    resident = min(geometry.threads, gpu.resident_threads)
    have, need = resident * geometry.utilization * bytes_a_thread, gpu.bytes_in_flight
    rate = gpu.attainable(geometry, bytes_a_thread)
    longest, left, width = max(have, need), 190, 460
    parts = []
    for y, name, value, look in (
        (0, "needed to keep it busy", need, f'fill="none" stroke="{GREY}" stroke-width="1.5"'),
        (28, "on their way", have, f'fill="{BLUE}" fill-opacity=".6"'),
    ):
        parts.append(svg.text(left - 10, y + 16, name, "end"))
        parts.append(f'<rect x="{left}" y="{y + 2}" width="{width * value / longest:.1f}" height="20" {look}/>')
        parts.append(svg.text(left + width * value / longest + 8, y + 17, f"{value / 1e6:,.3g} MB"))
    told = f"at most {rate:,.0f} of {gpu.gigabytes_per_second:,.0f} GB/s, on the {gpu.name}"
    parts.append(svg.text(left, 74, f"<tspan font-weight='bold'>{told}</tspan>"))
    alt = (
        f"Bars: {need / 1e6:.3g} MB must be on their way to keep the memory of the {gpu.name} busy; {resident:,} "
        f"resident threads wait for {have / 1e6:.3g} MB: {told}."
    )
    return svg.drawing(parts, _WIDTH, 82, alt, font_size=13)
