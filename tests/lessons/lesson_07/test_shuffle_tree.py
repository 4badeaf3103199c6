"""The sum over a warp as a tree."""

from lesson_cases import texts

from minfer_lib.lessons import shuffle_tree
from minfer_lib.lessons.lesson_07.warp_lanes import lane_value


def test_the_tree_is_five_shuffles(trace):
    shuffles = [s for s in trace.of(0) if s.sources is not None]
    picture = shuffle_tree(shuffles)
    assert "5 shuffles, down by 16, 8, 4, 2, 1" in picture.alt
    filled = picture.svg.count('r="5" fill="#')
    assert filled == 32 + 16 + 8 + 4 + 2 + 1 and picture.svg.count("<circle") == 6 * 32
    assert picture.svg.count("<path") == 2 * 31
    (last,) = shuffles[-1].changed.values()
    assert texts(picture.svg)[-1] == lane_value(last[0])
