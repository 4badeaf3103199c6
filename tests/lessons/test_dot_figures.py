"""Lesson 3's pictures: what they draw is what the kernel computes, and their text says it."""

import re

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.lessons import ladder_picture, layout_picture, orders_picture, pair_picture

W = np.frombuffer(bytes.fromhex("00b4" + "213a7fc4059ed86b1ef2904cb7a35d08"), np.uint8)
A = mf.quantize_activations("Q8_0", np.linspace(-3, 1, 32, dtype=np.float32))


def numbers(text: str) -> list[int]:
    return [int(n.replace("−", "-")) for n in text.split(", ")]


def readable(svg: str) -> bool:
    sizes = re.findall(r'font-size="([\d.]+)"', svg) + re.findall(r"font: ([\d.]+)px", svg)
    return bool(sizes) and min(map(float, sizes)) >= 11


def test_a_pair_of_blocks_is_drawn_as_the_kernel_reads_it():
    picture = pair_picture(W, A)
    lists = [numbers(found) for found in re.findall(r": (−?\d+(?:, −?\d+){15});", picture.alt)]
    weights, codes = lists[0] + lists[2], lists[1] + lists[3]
    d_w, d_a = (float(raw[:2].view("<f2")[0]) for raw in (W, A))
    assert np.array_equal(np.array(weights) * d_w, mf.dequantize("Q4_0", W))
    assert np.array_equal(codes, A[2:].view(np.int8))
    isum = int(np.dot(weights, codes))
    shown = f"{mf.dot('Q4_0', W, A, 'scalar'):.6g}".replace("-", "−")
    assert f"Together {isum}, times the scales {shown}.".replace("-", "−") in picture.alt
    assert picture.svg.count(">21<") == 0 and readable(picture.svg)
    for product in np.multiply(weights, codes):
        assert f">{product}<".replace("-", "−") in picture.svg


def test_the_layouts_agree_only_where_positions_do():
    assert layout_picture(1, 4).svg.count("✕") == 0
    assert layout_picture(4, 1).svg.count("✕") == 0
    picture = layout_picture(2, 3)
    read = np.arange(6).reshape(2, 3)
    wrong = int(np.count_nonzero(read.ravel() != read.T.ravel()))
    assert picture.svg.count("✕") == wrong == 4 and f"{wrong} of 6 positions" in picture.alt
    assert readable(picture.svg)


def test_orders_are_counted():
    exact, one = 1.0, np.float32(1)
    above = np.nextafter(one, np.float32(2))
    picture = orders_picture(np.array([one, one, above]), above, exact)
    assert "3 sums" in picture.alt and "2 different" in picture.alt
    assert "from 0 to 1 units" in picture.alt and "promised order is at 1." in picture.alt


@pytest.mark.parametrize("times", [{"only": 3.0}, {"slow": 200.0, "fast": 0.04}])
def test_a_ladder_names_its_steps(times):
    picture = ladder_picture(times, "ns")
    assert all(f"{name} {value:.3g}" in picture.alt for name, value in times.items())
    assert all(f">{name}<" in picture.svg for name in times)
    assert ("5,000×" in picture.svg) == ("fast" in times)
