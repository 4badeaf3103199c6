"""A matrix over a GPU's threads: the picture has every lane and every unit, and Little's law its numbers."""

import re

import pytest
from lesson_cases import smallest_text, texts

from minfer_lib.gpu.geometry import GPUS, OLD, SEED, Geometry, Launch
from minfer_lib.lessons.lesson_07.gpu_geometry import flight_picture, geometry_picture, thread_told


def drawn_lanes(svg, warps):
    """The number in each lane of the block, "" where it is idle; in order."""
    lanes = re.findall(r'<rect x="(\d+)" y="(\d+)" width="18" height="17"[^>]*/>(?:<text[^>]*>(\d+)</text>)?', svg)
    assert len(lanes) == 32 * warps
    return [count for _, _, count in sorted(lanes, key=lambda lane: (int(lane[1]), int(lane[0])))]


GEOMETRIES = [
    (Geometry(3584, 18944, SEED), 7, 44),
    (Geometry(3584, 18944, OLD, 256), 447, 63),
    (Geometry(3584, 3584, SEED), 3583, 255),  # an idle thread
    (Geometry(510, 3584, Launch(4, 4)), 127, 100),  # no row
    (Geometry(9, 768, Launch(8, 2)), 4, 0),
    (Geometry(6, 512, Launch(2, 4, 2)), 1, 5),
    (Geometry(1, 256, Launch(16, 1)), 0, 7),
]


@pytest.mark.parametrize("geometry, block, thread", GEOMETRIES, ids=str)
def test_every_lane_and_every_unit_is_drawn(geometry, block, thread):
    picture = geometry_picture(geometry, block, thread)
    places = [geometry.place(block, t) for t in range(geometry.launch.threads)]
    want = [str(len(place.units)) if place.units else "" for place in places]
    assert drawn_lanes(picture.svg, geometry.launch.warps) == want
    boxes = sum(path.count("M") for path in re.findall(r'<path d="([^"]*)"', picture.svg))
    assert boxes == (geometry.units if places[thread].rows else 0)
    assert f"{geometry.threads:,} threads" in picture.alt and thread_told(geometry, places[thread]) in picture.alt
    assert smallest_text(picture.svg) >= 11


def test_the_chosen_threads_units_are_filled():
    geometry = Geometry(3584, 18944, SEED)
    svg = geometry_picture(geometry, 0, 44).svg
    filled, edged = (re.search(rf'<path d="([^"]*)" {look}', svg)[1] for look in ('fill="#D55E00"', 'fill="#56B4E9"'))
    assert filled.count("M") == 3 and edged.count("M") == 3 * 32 - 3
    told = geometry_picture(geometry, 0, 44).alt
    assert "44 = (super-block 5, sub-block 4), 300 = (super-block 37, sub-block 4)" in told


def test_idle_threads_are_told_why():
    assert "It is idle: a row has 112 units, and 256 threads share it." in geometry_picture(*GEOMETRIES[2]).alt
    assert "It is idle: there are only 510 rows." in geometry_picture(*GEOMETRIES[3]).alt


def test_littles_law_is_drawn():
    gpu, geometry = GPUS["GB10"], Geometry(3584, 18944, OLD, 256)
    drawn = texts(flight_picture(geometry, gpu, 4).svg)
    on_their_way = 28_672 * geometry.utilization * 4
    assert f"{on_their_way / 1e6:,.3g} MB" in drawn
    most = min(gpu.gigabytes_per_second, on_their_way / gpu.latency / 1e9)
    assert f"at most {most:,.0f} of 253 GB/s, on the GB10" in drawn
