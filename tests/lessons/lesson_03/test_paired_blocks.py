"""Two blocks, one above the other: what is drawn is what the kernel computes."""

import re

import numpy as np
from lesson_cases import smallest_text

import minfer_lib as mf
from minfer_lib.lessons import pair_picture

W = np.frombuffer(bytes.fromhex("00b4" + "213a7fc4059ed86b1ef2904cb7a35d08"), np.uint8)
A = mf.quantize_activations("Q8_0", np.linspace(-3, 1, 32, dtype=np.float32))


def numbers(text: str) -> list[int]:
    return [int(n.replace("−", "-")) for n in text.split(", ")]


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
    assert picture.svg.count(">21<") == 0 and smallest_text(picture.svg) >= 11
    for product in np.multiply(weights, codes):
        assert f">{product}<".replace("-", "−") in picture.svg
