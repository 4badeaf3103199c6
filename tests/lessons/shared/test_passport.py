"""The byte passport: one byte, found again in the file; a line a lesson; kept beside the notebooks."""

import json

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.lessons import Passport


@pytest.fixture
def passport(own):
    return Passport(own)


def test_the_byte_is_where_it_says(passport):
    assert passport.model.read_bytes()[passport.offset] == passport.raw[passport.byte]
    assert passport.tensor.format == "Q4_K" and passport.field == "qs"


def test_codes_and_values_are_the_bytes_own(passport):
    value = int(passport.raw[passport.byte])
    assert passport.codes == [value & 15, value >> 4]
    first, second = passport.columns
    assert second == first + 32 and first // 256 == passport.block
    with mf.read_gguf(passport.source) as gguf:
        name = passport.tensor.name
        row = mf.dequantize("F16", gguf.tensors[name].data.reshape(gguf.tensors[name].shape[0], -1)[passport.row])
    assert np.array_equal(passport.originals, row[[first, second]])
    assert np.abs(passport.values - passport.originals).max() < 0.2 * np.abs(row).max()


def test_lines_are_kept_in_order_and_replaced(own, passport):
    passport.stamp(3, "three").stamp(1, "one").stamp(3, "three again")
    again = Passport(own)
    assert again.lines == {1: "one", 3: "three again"}
    assert repr(again).index("one") < repr(again).index("three again")
    assert "<td" in again._repr_html_() and again.tensor.name in again._repr_html_()


def test_another_byte_is_another_passport(own, passport):
    passport.stamp(1, "one")
    passport.choose("blk.0.attn_q.weight", row=7, block=0, byte=20)
    assert Passport(own).lines == {} and Passport(own).byte == 20
    passport.stamp(1, "new").choose("blk.0.attn_q.weight", row=7, block=0, byte=20)
    assert passport.lines == {1: "new"}, "the same byte again keeps its lines"


@pytest.mark.parametrize(
    "place, message",
    [
        (("nothing", 0, 0, 20), "no tensor 'nothing'"),
        (("blk.0.attn_norm.weight", 0, 0, 20), "in Q4_K"),
        (("blk.0.attn_q.weight", 256, 0, 20), "rows 0 to 255"),
        (("blk.0.attn_q.weight", 0, 1, 20), "blocks 0 to 0"),
        (("blk.0.attn_q.weight", 0, 0, 15), "holds no codes"),
        (("blk.0.attn_q.weight", 0, 0, 144), "bytes 16 to 143"),
    ],
)
def test_only_bytes_of_codes_can_be_chosen(own, passport, place, message):
    passport.stamp(1, "one")
    with pytest.raises(mf.ArgumentError, match=message):
        passport.choose(*place)
    assert Passport(own).lines == {1: "one"}


@pytest.mark.parametrize("kept", ["", "[]", "{", '{"model": "another.gguf"}', '{"model": 3, "lines": []}', "null"])
def test_a_file_that_is_no_passport_of_this_model_is_replaced(own, kept):
    (own / "passport.json").write_text(kept)
    assert Passport(own).lines == {}
    assert json.loads((own / "passport.json").read_text())["byte"] == Passport(own).byte


def test_a_place_that_the_model_does_not_have_is_replaced(own, passport):
    kept = json.loads(passport.path.read_text()) | {"row": 10**6}
    passport.path.write_text(json.dumps(kept))
    assert Passport(own).row != 10**6
    passport.path.write_text(json.dumps(kept | {"row": "5"}))
    assert isinstance(Passport(own).row, int)
