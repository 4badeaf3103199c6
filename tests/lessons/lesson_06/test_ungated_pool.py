"""A pool with its gate is right, and without it breaks, in a process of its own."""

from minfer_lib.lessons.lesson_06.ungated_pool import try_pool


def test_a_pool_with_its_gate_is_right():
    seen = try_pool(gate=True, seconds=0.3)
    assert seen.runs > 0 and (seen.wrong, seen.stuck, seen.crashed) == (0, 0, False)


def test_a_pool_without_its_gate_breaks_and_this_process_lives():
    """How and how often it breaks is chance."""
    for _ in range(10):
        seen = try_pool(gate=False, seconds=0.3)
        if seen.wrong or seen.stuck or seen.crashed:
            return
    raise AssertionError("ten tries, and nothing went wrong")
