"""The geometry explorer without a browser: its numbers are the formula's, its picture has every lane and unit."""

import html
import re

import pytest

from minfer_lib.gpu.geometry import GPUS, OLD, SEED, Geometry, Launch
from minfer_lib.lessons import GeometryExplorer
from minfer_lib.lessons.lesson_07.geometry_explorer import LAYOUTS, shapes
from minfer_lib.lessons.lesson_07.gpu_geometry import flight_picture, geometry_picture, thread_told


@pytest.fixture
def explorer():
    return GeometryExplorer()


def texts(svg):
    return [html.unescape(found) for found in re.findall(r"<text[^>]*>(.*?)</text>", svg)]


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
    assert min(map(float, re.findall(r'font-size="([\d.]+)"', picture.svg))) >= 11


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


def test_it_begins_with_the_seeds_example(explorer):
    assert explorer.geometry == Geometry(3584, 18944, SEED)
    assert "<b>917,504 threads</b>" in explorer._said.value and "<b>0 idle</b>" in explorer._said.value


def test_the_old_kernel_has_28672_threads(explorer):
    explorer._layout.value = LAYOUTS["the old kernel"]
    assert explorer.geometry == Geometry(3584, 18944, OLD, 256)
    assert "<b>28,672 threads</b>" in explorer._said.value


@pytest.mark.parametrize("name", shapes())
def test_every_shape_can_be_chosen(explorer, name):
    explorer._shape.value = shapes()[name]
    assert (explorer.geometry.n_out, explorer.geometry.n_in) == shapes()[name]
    assert shapes()["7B attn_k"] == (512, 3584) and shapes()["7B output"] == (152064, 3584)


def test_every_control_is_a_picture_of_its_own(explorer):
    changes = {"rows": 512, "columns": 3584, "warps": 4, "block_rows": 4, "unit": 256, "block": 3, "thread": 9}
    for name, value in changes.items():
        before = explorer._picture.value
        explorer.choose(**{name: value})
        assert explorer._picture.value != before, name
    for name, value in {"gpu": "H200", "waits": 16, "latency": 400}.items():
        before = explorer._flight.value
        explorer.choose(**{name: value})
        assert explorer._flight.value != before, name


def test_the_sliders_stay_within_the_launch(explorer):
    explorer.choose(block=3583, thread=255)
    explorer.choose(warps=1, block_rows=8)
    assert explorer._block.value == explorer.geometry.blocks - 1 == 447 and explorer._thread.value == 31


def test_columns_are_whole_super_blocks(explorer):
    assert explorer.choose(columns=700).n_in == 512


@pytest.mark.parametrize("warps", (1, 2, 4, 8, 16))
@pytest.mark.parametrize("rows", (1, 2, 4, 8))
def test_all_launches_that_can_be_chosen_exist(explorer, warps, rows):
    assert explorer.choose(warps=warps, block_rows=rows).launch == Launch(warps, rows)


def test_littles_law_is_drawn(explorer):
    gpu, geometry = GPUS["GB10"], Geometry(3584, 18944, OLD, 256)
    drawn = texts(flight_picture(geometry, gpu, 4).svg)
    on_their_way = 28_672 * geometry.utilization * 4
    assert f"{on_their_way / 1e6:,.3g} MB" in drawn
    most = min(gpu.gigabytes_per_second, on_their_way / gpu.latency / 1e9)
    assert f"at most {most:,.0f} of 253 GB/s, on the GB10" in drawn
    explorer.choose(gpu="H200")
    assert abs(explorer._latency.value - 1e9 * GPUS["H200"].latency) <= 5


def test_a_page_without_a_kernel_gets_the_pictures(explorer):
    static = explorer._repr_mimebundle_()["text/html"]
    assert static.count("<svg") == 2 and static.count('role="img"') == 2
    assert "917,504 threads" in repr(explorer) and "Bars: " in repr(explorer)
