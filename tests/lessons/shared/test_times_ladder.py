"""Times of the same work on a logarithmic axis."""

import pytest

from minfer_lib.lessons import ladder_picture


@pytest.mark.parametrize("times", [{"only": 3.0}, {"slow": 200.0, "fast": 0.04}])
def test_a_ladder_names_its_steps(times):
    picture = ladder_picture(times, "ns")
    assert all(f"{name} {value:.3g}" in picture.alt for name, value in times.items())
    assert all(f">{name}<" in picture.svg for name in times)
    assert ("5,000×" in picture.svg) == ("fast" in times)
