"""Lesson 4's pictures: the listing, the bars, two rows in one instruction."""

import html
import re

import numpy as np
import pytest

from minfer_lib.bench.dot_kernels import KernelSpeed
from minfer_lib.dot.q4_0 import dot4_q4_0_avx512vnni, dot_q4_0_avx2, dot_q4_0_neon
from minfer_lib.lessons import Listing, loop_of, speeds_picture, two_by_two_picture
from minfer_lib.simd.asm import DOT, DOT4, Line, disassembly

KERNELS = [
    (dot_q4_0_avx2, DOT, "avx2", "vpmaddubsw"),
    (dot4_q4_0_avx512vnni, DOT4, "avx512vnni", "vpdpbusd"),
    (dot_q4_0_neon, DOT, "neon", "sdot"),
]


@pytest.mark.parametrize("kernel, signature, isa, product", KERNELS)
def test_the_loop_holds_all_products_of_a_turn_and_no_row_end(kernel, signature, isa, product):
    loop = loop_of(disassembly(kernel, signature, isa))
    assert loop[0].label and loop[-1].instruction.endswith(loop[0].label)
    assert product in [line.mnemonic for line in loop]
    assert not any("return hsum" in line.source for line in loop)
    shown = Listing(loop)
    for text in (html.unescape(shown._repr_html_()), repr(shown)):
        assert all(line.instruction in text and line.source in text for line in loop)


def test_code_without_a_loop_is_shown_whole():
    lines = [Line(f"add x{n}, x1", None, None, None, "") for n in range(3)]
    assert loop_of(lines) == lines


def test_the_bars_say_their_numbers():
    speeds = [KernelSpeed("Q4_0", isa, 1, cache, memory, 36.5) for isa, cache, memory in (("b", 20, 10.5), ("a", 1, 1))]
    picture = speeds_picture(speeds)
    for text in (">10.5<", ">20<", "reading alone, 36.5"):
        assert text in picture.svg
    assert "b 20 from the cache, 10.5 from memory" in picture.alt


def test_two_by_two_is_the_matrix_product():
    w, a = np.random.default_rng(1).integers(-128, 128, (2, 2, 8)).astype(np.int8)
    picture = two_by_two_picture(w, a)
    for number in (w.astype(int) @ a.astype(int).T).ravel():
        assert f">{number}<".replace("-", "−") in picture.svg
    assert "row 1 times token 0" in picture.alt
    assert min(map(float, re.findall(r'font-size="([\d.]+)"', picture.svg))) >= 11
