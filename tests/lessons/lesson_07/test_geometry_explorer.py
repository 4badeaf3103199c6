"""The geometry explorer without a browser: its numbers are the formula's."""

import pytest

from minfer_lib.gpu.geometry import GPUS, OLD, SEED, Geometry, Launch
from minfer_lib.lessons import GeometryExplorer
from minfer_lib.lessons.lesson_07.geometry_explorer import LAYOUTS, shapes


@pytest.fixture
def explorer():
    return GeometryExplorer()


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


def test_a_page_without_a_kernel_gets_the_pictures(explorer):
    static = explorer._repr_mimebundle_()["text/html"]
    assert static.count("<svg") == 2 and static.count('role="img"') == 2
    assert "917,504 threads" in repr(explorer) and "Bars: " in repr(explorer)


def test_another_gpu_has_its_own_latency(explorer):
    explorer.choose(gpu="H200")
    assert abs(explorer._latency.value - 1e9 * GPUS["H200"].latency) <= 5
