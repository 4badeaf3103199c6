"""How fast kernels are: the bars say their numbers."""

from minfer_lib.bench.dot_kernels import KernelSpeed
from minfer_lib.lessons import speeds_picture


def test_the_bars_say_their_numbers():
    speeds = [KernelSpeed("Q4_0", isa, 1, cache, memory, 36.5) for isa, cache, memory in (("b", 20, 10.5), ("a", 1, 1))]
    picture = speeds_picture(speeds)
    for text in (">10.5<", ">20<", "reading alone, 36.5"):
        assert text in picture.svg
    assert "b 20 from the cache, 10.5 from memory" in picture.alt
