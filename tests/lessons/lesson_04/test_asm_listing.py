"""Machine code beside its Python: the loop of a kernel, whole."""

import html

import pytest

from minfer_lib.dot.q4_0 import dot4_q4_0_avx512vnni, dot_q4_0_avx2, dot_q4_0_neon
from minfer_lib.lessons import Listing, loop_of
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
