"""The machine to put together, without a browser."""

from minfer_lib.lessons.lesson_06.any_machine import AnyMachine


def test_any_machine_answers_to_its_controls():
    view = AnyMachine(12288, 2304, 20.0)
    assert view.trace.plan.threads == 14 and "µs" in view._said.value
    claimed = view.trace.nanoseconds
    assert view.choose(policy="even").nanoseconds > 1.5 * claimed
    view.choose(fast=2, slow=0, bandwidth=10)
    assert view.machine.speeds == (20.0, 20.0) and view.trace.nanoseconds >= 2_831_155
    assert "<svg " in view._repr_mimebundle_()["text/html"] and "2 chunks" in repr(view)
