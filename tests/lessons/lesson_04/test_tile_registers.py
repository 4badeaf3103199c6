"""One tile instruction drawn: each cell's products add up, and its words are readable."""

import re

import numpy as np
from lesson_cases import rows_of, smallest_text, texts

from minfer_lib.lessons import TileStepper
from minfer_lib.lessons.shared.wording import shown


def numbers(stepper: TileStepper) -> list[int]:
    """Those in the lanes: of each 16 products the bytes of A, those of B, and their sums."""
    lanes = re.findall(r"<rect [^>]*fill-opacity[^>]*/>(?:<text[^>]*>([−\d]+)</text>)", stepper._picture.value)
    return [int(text.replace("−", "-")) for text in lanes]


def test_every_cell_of_the_product_is_told_and_is_right(block):
    trace, right, stored = block
    assert np.array_equal(right, stored)
    stepper = TileStepper(trace, "tile_dot")
    for row, column in np.ndindex(16, 16):
        stepper._row.value, stepper._column.value = row, column
        cell = shown(right[row, column])
        assert f"C[{row}, {column}] = {cell}: 0 before, {cell} from these 32 products" in stepper.alt


def test_the_lanes_are_the_cells_products(block):
    trace, right, _ = block
    w, a = rows_of("Q4_0")
    stepper = TileStepper(trace, "tile_dot", row=3, column=5)
    lanes = np.split(np.array(numbers(stepper)), [16, 32, 36, 52, 68])
    (a0, b0, sums0), (a1, b1, sums1) = lanes[:3], lanes[3:]
    assert np.array_equal([*a0, *a1], [*(w[3, 2:18] & 15) - 8.0, *(w[3, 2:18] >> 4) - 8.0])
    assert np.array_equal([*b0, *b1], a[5, 2:34].view(np.int8))
    assert [*sums0, *sums1] == [
        int(x @ y) for x, y in zip(np.split(np.r_[a0, a1], 8), np.split(np.r_[b0, b1], 8), strict=True)
    ]
    assert sum((*sums0, *sums1)) == right[3, 5]


def test_tiles_fill_one_after_the_other_and_are_given_back(block):
    stepper = TileStepper(block[0])
    told = []
    for s in stepper.trace.steps:
        stepper.show(s)
        told.append((s.name, stepper._picture.value.count("stroke-dasharray"), "row 0 of A: empty" in stepper.alt))
    assert told == [
        ("tile_shapes", 3, True),
        ("tile_zero", 2, True),
        ("tile_load", 1, False),
        ("tile_load", 0, False),
        ("tile_dot", 0, False),
        ("tile_store", 0, False),
        ("tile_release", 3, True),
    ]


def test_a_super_block_goes_on_in_the_same_sums(super_block):
    stepper, now = TileStepper(super_block, row=7, column=15), {"tmm0": 0, "tmm1": 0}
    for s in super_block.steps:
        stepper.show(s)
        if s.name == "tile_dot":
            before, after = now[s.output.type], int(s.output.value[7, 15])
            told = f"C[7, 15] = {shown(after)}: {shown(before)} before, {shown(after - before)} from these 64 products"
            assert told in stepper.alt and f"C = {s.output.type}" in stepper._picture.value.replace("</tspan>", "")
            assert sum(numbers(stepper)[i] for n in range(4) for i in range(36 * n + 32, 36 * n + 36)) == after - before
            now[s.output.type] = after
    assert min(map(abs, now.values())) > 0


def test_a_step_belongs_to_the_product_of_its_tiles(super_block):
    second = [s for s in super_block.steps if s.name == "tile_zero"][1]
    assert second.output.type == "tmm1" and "A = tmm6" in "".join(
        texts(TileStepper(super_block, second)._picture.value)
    )
    for store in (s for s in super_block.steps if s.name == "tile_store"):
        sums = store.inputs[3].value.view(np.int32)
        assert f"C[0, 9] = {shown(sums[0, 9])}." in TileStepper(super_block, store, column=9).alt


def test_text_is_large_enough_and_inside(block, super_block):
    for trace in (block[0], super_block):
        stepper = TileStepper(trace, row=15, column=15)
        for s in trace.steps:
            svg = stepper.show(s)._picture.value
            width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', svg).groups())
            assert smallest_text(svg) >= 11
            for x, y in re.findall(r'<text x="([\d.]+)" y="([\d.]+)"', svg):
                assert 0 <= float(x) <= width and 10 <= float(y) <= height
