"""The order of a tile's outputs."""

import re

from minfer_lib.lessons.lesson_06.tile_order import tile_picture


def test_a_tile_is_numbered_column_after_column():
    picture = tile_picture(16, 16, 2304, 4352)
    assert [int(n) for n in re.findall(r">(\d+)</text>", picture.svg)] == list(range(1, 257))
    assert "256 outputs" in picture.alt and "16 rows of 2,304 bytes meet one column of 4,352" in picture.alt
