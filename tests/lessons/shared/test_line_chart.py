"""Lines over something."""

from minfer_lib.lessons import lines_picture


def test_lines_have_a_text():
    picture = lines_picture([1, 2, 4], {"Q8_0": [40, 34, 28], "Q4_0": [15, 17, 3]}, "outlier", "SNR, dB", "xy")
    assert "SNR, dB over outlier, 1 to 4" in picture.alt
    assert "Q8_0 from 40 to 28" in picture.alt and "Q4_0 from 15 to 3, at most 17" in picture.alt
    assert picture.svg.startswith("<svg ") and 'role="img"' in picture.svg and ">Q4_0<" in picture.svg
