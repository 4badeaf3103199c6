"""One operation on registers, drawn: every lane of every kernel set."""

import numpy as np
import pytest
from lesson_cases import smallest_text, texts, trace_of

from minfer_lib.dot.registry import DOTS
from minfer_lib.lessons.shared.register_picture import meaning, step_picture
from minfer_lib.lessons.shared.wording import shown

KERNELS = [(name, isa) for name, isa in DOTS if name in ("Q4_0", "Q5_1", "Q8_0") and isa != "scalar"]


@pytest.mark.parametrize("name, isa", KERNELS)
def test_every_step_of_every_kernel_is_drawn_with_all_its_lanes(name, isa):
    trace = trace_of(name, isa)
    for s in trace.steps:
        picture = step_picture(trace, s)
        if s.output is not None and np.ndim(s.output.value):
            lanes = [shown(value) for value in s.output.value]
            drawn = [text for text in texts(picture.svg.split("<line")[1])[2:] if text]
            numbers = [str(k) for k in range(0, len(lanes), 16 // s.output.value.itemsize)]
            assert sorted(drawn) == sorted(lanes + numbers)
            assert f"{s.output.type}: {', '.join(lanes)}" in picture.alt
        assert meaning(s), s.name
        assert smallest_text(picture.svg) >= 11
