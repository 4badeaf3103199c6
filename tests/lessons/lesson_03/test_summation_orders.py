"""Sums of the same terms in many orders."""

import numpy as np

from minfer_lib.lessons import orders_picture


def test_orders_are_counted():
    exact, one = 1.0, np.float32(1)
    above = np.nextafter(one, np.float32(2))
    picture = orders_picture(np.array([one, one, above]), above, exact)
    assert "3 sums" in picture.alt and "2 different" in picture.alt
    assert "from 0 to 1 units" in picture.alt and "promised order is at 1." in picture.alt
