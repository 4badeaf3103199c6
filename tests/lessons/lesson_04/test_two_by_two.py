"""Two rows in one instruction."""

import numpy as np
from lesson_cases import smallest_text

from minfer_lib.lessons import two_by_two_picture


def test_two_by_two_is_the_matrix_product():
    w, a = np.random.default_rng(1).integers(-128, 128, (2, 2, 8)).astype(np.int8)
    picture = two_by_two_picture(w, a)
    for number in (w.astype(int) @ a.astype(int).T).ravel():
        assert f">{number}<".replace("-", "−") in picture.svg
    assert "row 1 times token 0" in picture.alt
    assert smallest_text(picture.svg) >= 11
