"""Where the time of a token goes: the session's own numbers."""

import minfer_lib as mf
from minfer_lib.engine.timing import PARTS
from minfer_lib.lessons import time_picture


def test_the_time_is_told_part_by_part(tiny):
    session = mf.load_model(tiny(), threads=1).session()
    session.feed([1, 2, 3])
    picture = time_picture(session.timing)
    for part, seconds in session.timing.parts().items():
        assert f"{part} {seconds / session.timing.wall:.1%}" in picture.alt
    assert all(step in picture.svg for step in PARTS["matmul"])
