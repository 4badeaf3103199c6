"""The block explorer and its pictures: right about every byte of every format, and usable without eyes or mouse."""

import html
import re

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.formats.elements import layout
from minfer_lib.lessons import Block, BlockExplorer
from minfer_lib.lessons.shared.look import FIELD_ROLES, ROLES

ALL = list(mf.FORMATS)


def some_block(name: str) -> np.ndarray:
    """Codes and scales of ordinary size."""
    x = np.random.default_rng(2).normal(0, 1, 256).astype(np.float32)
    row = mf.FORMATS[name]
    if name in ("F32", "F16"):
        return x.astype(row.fields[0].dtype)[:1].view(np.uint8)
    if name == "BF16":
        return x[:1].view(np.uint8)[2:]
    make = mf.quantize_activations if name in ("Q8_K", "Q8_0_PAD40") else mf.quantize
    return make(name, x)[: row.block_bytes]


def titles(markup: str) -> list[str]:
    return [html.unescape(title) for title in re.findall(r'title="(.*?)"', markup)]


@pytest.mark.parametrize("name", ALL)
def test_every_byte_is_shown_and_has_a_title(name):
    raw = some_block(name)
    markup = Block(name, raw).dump().html
    assert re.findall(r'title="[^"]*"[^>]*>([0-9a-f]{2})<', markup) == [f"{byte:02x}" for byte in raw]
    assert [int(re.match(r"byte (\d+), ", title)[1]) for title in titles(markup)] == list(range(raw.size))


@pytest.mark.parametrize("name", ALL)
def test_what_a_byte_tells_of_elements_is_what_the_decoder_says(name):
    raw = some_block(name)
    values, told_of = mf.dequantize(name, raw), set()
    block = Block(name, raw)
    for byte in range(raw.size):
        for text in block.told(byte):
            if match := re.search(r"element (\d+), .*value (\S+)$", text):
                element = int(match[1])
                told_of.add(element)
                assert match[2] == f"{values[element]:.5g}"
    assert told_of == set(range(values.size))


def test_a_code_is_told_with_its_number():
    block = Block("Q4_0", np.frombuffer(bytes.fromhex("0038" + "f0" * 16), np.uint8))
    assert block.told(2) == ["bits 3–0: element 0, code 0, value -4", "bits 7–4: element 16, code 15, value 3.5"]
    assert block.told(0) == ["d = 0.5, for all 32 elements"]


def test_scales_mins_and_sums_are_told():
    q4_k, q8_k = Block("Q4_K", some_block("Q4_K")), Block("Q8_K", some_block("Q8_K"))
    assert re.fullmatch(r"bits 7–6: scale 4 = \d+, for elements 128 to 159", q4_k.told(4)[1])
    assert re.fullmatch(r"bits 7–4: min 7 = \d+, for elements 224 to 255", q4_k.told(15)[1])
    assert re.fullmatch(r"sum 15 = -?\d+, of the codes of elements 240 to 255", q8_k.told(305)[0])
    assert q8_k.told(258) == ["always zero"]


@pytest.mark.parametrize("name", ALL)
def test_every_field_has_a_role_with_a_colour_and_lines_of_its_own(name):
    for field in mf.FORMATS[name].fields:
        assert FIELD_ROLES[field.name] in ROLES
    for parts in layout(name):
        assert all(part.number in FIELD_ROLES for part in parts)


def test_roles_differ_in_colour_and_in_lines():
    assert len({role.colour for role in ROLES.values()}) == len(ROLES)
    assert len({role.lines for role in ROLES.values()}) == len(ROLES)


@pytest.mark.parametrize("name", ALL)
def test_bits_are_those_of_the_byte(name):
    raw = some_block(name)
    block = Block(name, raw)
    for byte in range(raw.size):
        digits = re.findall(r">([01])</td>", block.bits([byte]).html)
        assert "".join(digits) == f"{raw[byte]:08b}"


def test_no_text_is_smaller_than_eleven_pixels():
    explorer = BlockExplorer({name: some_block(name) for name in ALL})
    for name in ALL:
        shown = explorer.show(name)._repr_mimebundle_()["text/html"]
        assert min(map(int, re.findall(r"font(?:-size)?:\s*(\d+)px", shown))) >= 11


def test_the_picture_has_a_text():
    shown = Block("Q6_K", some_block("Q6_K")).dump(208)
    assert 'role="img"' in shown.html and html.escape(shown.alt) in shown.html
    assert "d (scale), 2 bytes at 208" in shown.alt and "Byte 208 is selected: d = " in shown.alt


# The widget


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
