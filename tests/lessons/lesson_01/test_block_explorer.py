"""The block explorer without a browser: usable without eyes or mouse."""

import re

import numpy as np
import pytest
from lesson_cases import some_block

import minfer_lib as mf
from minfer_lib.lessons import BlockExplorer

ALL = list(mf.FORMATS)


def test_no_text_is_smaller_than_eleven_pixels():
    explorer = BlockExplorer({name: some_block(name) for name in ALL})
    for name in ALL:
        shown = explorer.show(name)._repr_mimebundle_()["text/html"]
        assert min(map(int, re.findall(r"font(?:-size)?:\s*(\d+)px", shown))) >= 11


@pytest.fixture
def explorer(tiny):
    return BlockExplorer(mf.read_gguf(tiny(format="Q5_1", width=64)))


def control(explorer, name):
    def walk(widget):
        yield widget
        for child in getattr(widget, "children", ()):
            yield from walk(child)

    return next(w for w in walk(explorer) if f"minfer-{name}" in w._dom_classes)


def test_it_opens_on_the_first_byte_of_a_file(explorer):
    assert explorer.alt.startswith("token_embd.weight, row 0, block 0. Hex dump of one Q5_1 block")


def test_the_slider_moves_the_frame_and_decodes(explorer):
    before = control(explorer, "dump").value, control(explorer, "detail").value
    control(explorer, "byte").value = 9
    after = control(explorer, "dump").value, control(explorer, "detail").value
    assert before[0] != after[0] and before[1] != after[1]
    assert "byte 9 of 24" in after[1] and "Byte 9 is selected" in explorer.alt


def test_the_bytes_are_the_files_own(tiny):
    path = tiny(format="Q8_0", width=64)
    explorer = BlockExplorer(mf.read_gguf(path)).show("blk.1.attn_k.weight", row=3, block=1, byte=5)
    at = int(re.search(r"position ([\d,]+) in the file", control(explorer, "detail").value)[1].replace(",", ""))
    framed = re.search(r"outline[^>]*>([0-9a-f]{2})<", control(explorer, "dump").value)[1]
    assert path.read_bytes()[at] == int(framed, 16)


def test_another_tensor_starts_at_its_beginning(explorer):
    control(explorer, "row").value = 5
    control(explorer, "byte").value = 23
    control(explorer, "tensor").value = "blk.0.attn_norm.weight"
    assert explorer.alt.startswith("blk.0.attn_norm.weight, row 0, block 0. Hex dump of one F32 block, 4 bytes")
    assert control(explorer, "byte").max == 3 and control(explorer, "row").layout.display == "none"


def test_controls_stay_inside(explorer):
    control(explorer, "row").value = 10**6
    assert control(explorer, "row").value == control(explorer, "row").max


def test_show_refuses_what_is_not_there(explorer):
    for wrong in ({"row": 10**6}, {"block": 2}, {"byte": 24}, {"byte": -1}):
        with pytest.raises(mf.ArgumentError, match=f"no {next(iter(wrong))}"):
            explorer.show("token_embd.weight", **wrong)
    with pytest.raises(mf.ArgumentError, match="no 'nothing'"):
        explorer.show("nothing")


def test_raw_blocks_of_any_format():
    explorer = BlockExplorer({name: some_block(name) for name in ALL})
    for name in ALL:
        for byte in (0, mf.FORMATS[name].block_bytes - 1):
            explorer.show(name, byte=byte)
            assert f"one {name} block" in explorer.alt and f"Byte {byte} is selected" in explorer.alt
            assert "in the file" not in control(explorer, "detail").value


@pytest.mark.parametrize("name, size", [("Q9_9", 18), ("Q4_0", 17), ("Q4_0", 0)])
def test_raw_blocks_are_checked(name, size):
    with pytest.raises(mf.ArgumentError, match=name):
        BlockExplorer({name: np.zeros(size, np.uint8)})


def test_strange_scales_do_not_break_it():
    """Infinite, NaN and tiny scales are in damaged files; all bytes 0xff and all zero must show too."""
    for name in ALL:
        for fill in (0x00, 0x7C, 0xFF):
            BlockExplorer({name: np.full(mf.FORMATS[name].block_bytes, fill, np.uint8)})


def test_a_page_without_a_kernel_shows_the_block(explorer):
    explorer.show("token_embd.weight", byte=6)
    bundle = explorer._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert control(explorer, "dump").value in bundle["text/html"]
    assert control(explorer, "detail").value in bundle["text/html"]
