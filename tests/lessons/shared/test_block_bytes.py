"""A block as bytes: right about every byte of every format, and told without colours too."""

import html
import re

import numpy as np
import pytest
from lesson_cases import some_block

import minfer_lib as mf
from minfer_lib.lessons import Block

ALL = list(mf.FORMATS)


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
def test_bits_are_those_of_the_byte(name):
    raw = some_block(name)
    block = Block(name, raw)
    for byte in range(raw.size):
        digits = re.findall(r">([01])</td>", block.bits([byte]).html)
        assert "".join(digits) == f"{raw[byte]:08b}"


def test_the_picture_has_a_text():
    shown = Block("Q6_K", some_block("Q6_K")).dump(208)
    assert 'role="img"' in shown.html and html.escape(shown.alt) in shown.html
    assert "d (scale), 2 bytes at 208" in shown.alt and "Byte 208 is selected: d = " in shown.alt
