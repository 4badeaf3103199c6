"""Who looks at whom: a number for each pair of tokens."""

import numpy as np

from minfer_lib.lessons import attention_picture


def test_attention_has_a_number_for_each_pair_that_can_be():
    shares = np.array([[1, 0, 0], [0.25, 0.75, 0], [0.1, 0.7, 0.2]], np.float32)
    picture = attention_picture(shares, ["'a'", "' costs $5'", "'c'"])
    assert "'c' takes most from ' costs $5', 70%" in picture.alt
    assert picture.svg.count("%") >= 6 and "25%" in picture.svg and "$5" in picture.svg
