"""The output in memory, token-major and the other way round."""

import numpy as np
from lesson_cases import smallest_text

from minfer_lib.lessons import layout_picture


def test_the_layouts_agree_only_where_positions_do():
    assert layout_picture(1, 4).svg.count("✕") == 0
    assert layout_picture(4, 1).svg.count("✕") == 0
    picture = layout_picture(2, 3)
    read = np.arange(6).reshape(2, 3)
    wrong = int(np.count_nonzero(read.ravel() != read.T.ravel()))
    assert picture.svg.count("✕") == wrong == 4 and f"{wrong} of 6 positions" in picture.alt
    assert smallest_text(picture.svg) >= 11
