"""The tile stepper without a browser: it shows the engine's own tiles, and each cell's products add up."""

import html
import re

import numpy as np
import pytest
from numba import njit

import minfer_lib as mf
from minfer_lib.dot.q4_0 import dot_q4_0_avx2
from minfer_lib.errors import ArgumentError
from minfer_lib.lessons import RegisterStepper, TileStepper, tile_operands
from minfer_lib.lessons.shared.wording import shown
from minfer_lib.matmul.tile_sums import SHAPES_32, SHAPES_256, sums_32_amx, sums_256_amx
from minfer_lib.simd.amx import tile_release, tile_shapes
from minfer_lib.simd.step import step

VALUES, TOKENS = (np.random.default_rng(seed).normal(0, 1, (16, 256)).astype(np.float32) for seed in (1, 2))


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    a = mf.quantize_activations(mf.FORMATS[name].activation, TOKENS.ravel())
    return mf.quantize(name, VALUES.ravel()).reshape(16, -1), a.reshape(16, -1)


def a_block(codes, panel, sums):
    tile_shapes(SHAPES_32, 0)
    sums_32_amx(codes, panel, 0, sums)
    tile_release()


def a_super_block(codes, panel, sums):
    tile_shapes(SHAPES_256, 0)
    sums_256_amx(codes, panel, 0, sums)
    tile_release()


@pytest.fixture
def block():
    """(trace of a Q4_0 block, what its cells must be)"""
    w, a = rows_of("Q4_0")
    sums = np.zeros(1024, np.uint8)
    trace = step(njit(a_block), *tile_operands("Q4_0", w, a), sums)
    codes = np.concatenate([w[:, 2:18] & 15, w[:, 2:18] >> 4], axis=1).astype(int) - 8
    return trace, codes @ a[:, 2:34].view(np.int8).astype(int).T, sums.view(np.int32).reshape(16, 16)


@pytest.fixture
def super_block():
    return step(njit(a_super_block), *tile_operands("Q4_K", *rows_of("Q4_K")), np.zeros(2048, np.uint8))


def texts(svg: str) -> list[str]:
    return [html.unescape(re.sub("<.*?>", "", found)) for found in re.findall(r"<text[^>]*>(.*?)</text>", svg)]


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


def test_the_step_names_memory_and_counts_multiply_adds(block, super_block):
    stepper = TileStepper(block[0], "tile_load")
    assert {"memory → tmm4", "from byte 0 of 512 on,", "rows 32 bytes apart"} <= {*texts(stepper._picture.value)}
    assert "tmm0 → memory" in stepper.show("tile_store").alt and "<b>tile_store</b>" in stepper._title.value
    assert "8,192 multiply-adds" in stepper.show("tile_dot").alt and "tdpbssd" in stepper._title.value
    assert "16,384 multiply-adds" in TileStepper(super_block, "tile_dot").alt


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
            assert min(map(float, re.findall(r'font-size="([\d.]+)"', svg))) >= 11
            for x, y in re.findall(r'<text x="([\d.]+)" y="([\d.]+)"', svg):
                assert 0 <= float(x) <= width and 10 <= float(y) <= height


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


@pytest.mark.parametrize("name", ["Q4_0", "Q5_1", "Q8_0"])
def test_operands_of_a_block(name):
    w, a = rows_of(name)
    codes, panel = tile_operands(name, w, a)
    values = mf.dequantize(name, w[:, : mf.FORMATS[name].block_bytes].ravel()).reshape(16, 32)
    blocks = np.ascontiguousarray(w[:, : mf.FORMATS[name].block_bytes]).view(mf.FORMATS[name].dtype)[:, 0]
    d, m = (blocks[f].astype(np.float32) if f in blocks.dtype.names else np.zeros(16) for f in ("d", "m"))
    assert np.allclose(codes.view(np.int8).reshape(16, 32) * d[:, None] + m[:, None], values, atol=1e-5)
    fours = panel[: 8 * 64].reshape(8, 16, 4)
    assert np.array_equal(fours.transpose(1, 0, 2).reshape(16, 32), a[:, 2:34])


def test_operands_of_a_super_block():
    w, a = rows_of("Q6_K")
    codes, panel = tile_operands("Q6_K", w, a)
    high, low = (codes[4096 * i : 4096 * (i + 1)].view(np.int8).reshape(4, 16, 64).astype(int) for i in range(2))
    scaled = (64 * high + low).transpose(1, 0, 2).reshape(16, 256)
    d = w.view(mf.FORMATS["Q6_K"].dtype)["d"].astype(np.float32)
    assert np.allclose(scaled * d, mf.dequantize("Q6_K", w.ravel()).reshape(16, 256), atol=1e-5)
    assert np.array_equal(panel[:4096].reshape(64, 16, 4).transpose(1, 0, 2).reshape(16, 256), a[:, 2:258])
