"""The tile stepper without a browser: it shows the engine's own tiles."""

import pytest
from lesson_cases import rows_of, texts

from minfer_lib.dot.q4_0 import dot_q4_0_avx2
from minfer_lib.errors import ArgumentError
from minfer_lib.lessons import RegisterStepper, TileStepper
from minfer_lib.simd.step import step


def test_the_step_names_memory_and_counts_multiply_adds(block, super_block):
    stepper = TileStepper(block[0], "tile_load")
    assert {"memory → tmm4", "from byte 0 of 512 on,", "rows 32 bytes apart"} <= {*texts(stepper._picture.value)}
    assert "tmm0 → memory" in stepper.show("tile_store").alt and "<b>tile_store</b>" in stepper._title.value
    assert "8,192 multiply-adds" in stepper.show("tile_dot").alt and "tdpbssd" in stepper._title.value
    assert "16,384 multiply-adds" in TileStepper(super_block, "tile_dot").alt


def test_it_walks_as_the_register_stepper_does(block):
    stepper = TileStepper(block[0])
    stepper._on.click()
    assert stepper.step.name == "tile_zero" and "sums_32_amx" in stepper._title.value
    assert "▶" in stepper._source.value and "tile_zero(tmm0)" in stepper._source.value
    static = stepper._repr_mimebundle_()["text/html"]
    assert 'role="img"' in static and repr(stepper) == stepper.alt


def test_other_traces(block):
    w, a = rows_of("Q4_0")
    with pytest.raises(ArgumentError, match="no tiles"):
        TileStepper(step(dot_q4_0_avx2, w[0], 0, a[0], 0, 1))
    by_name = RegisterStepper(block[0], "tile_dot")  # tiles are told by their names there
    assert "tile_dot(tmm0, tmm4, tmm5)" in by_name.alt
