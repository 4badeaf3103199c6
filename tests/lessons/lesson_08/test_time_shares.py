"""Where the time of a token goes: the session's own numbers."""

import minfer_lib as mf
from minfer_lib.lessons import time_picture


def test_the_time_is_told_kind_by_kind(tiny):
    session = mf.load_model(tiny(), threads=1).session()
    session.feed([1, 2, 3])
    picture = time_picture(session.timing)
    for kind, seconds in session.timing.shares().items():
        assert f"{kind} {seconds / session.timing.wall:.1%}" in picture.alt
    assert all(name in picture.svg for name in session.timing.of_kind("matmul"))
