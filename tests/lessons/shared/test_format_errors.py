"""How far each format is off, against its bits a weight."""

from minfer_lib.lessons import formats_picture


def test_formats_have_a_text():
    picture = formats_picture({"Q4_0": (4.5, 21.4), "Q4_1": (5.0, 22.2), "Q4_K": (4.5, 23.0)})
    assert "Q4_0 4.5 bits 21.4 dB" in picture.alt and "Q4_K 4.5 bits 23.0 dB" in picture.alt
    assert "scale and offset" in picture.svg and "K-quants" in picture.svg
