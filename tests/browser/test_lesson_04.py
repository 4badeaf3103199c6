"""Lesson 4 in a real JupyterLab: it runs, and the register stepper answers to buttons, keys and its player."""

import re

import pytest

pytestmark = pytest.mark.browser

COLD = 300  # seconds: its kernels may not be compiled yet
FIGURES = (
    "Bars, Q4_0 weights in GB/s",
    "Two rows of eight weights",
    "Times on a logarithmic axis",
    "Line chart of GB/s",
)


def test_lesson_04_runs_and_its_stepper_steps(lab):
    from playwright.sync_api import expect

    lab.open("04_simd_dot.ipynb")
    lab.run_all()
    lab.wait_idle(COLD)
    assert lab.errors() == [] and lab.not_run() == []

    for text in FIGURES:
        figure = lab.notebook.locator(f'svg[role="img"][aria-label^="{text}"]')
        figure.scroll_into_view_if_needed()
        assert figure.count() == 1 and figure.bounding_box()["width"] > 300

    stepper = lab.widget("minfer-stepper").filter(has_text="dot_q4_0_avx2").first
    stepper.scroll_into_view_if_needed()
    told, source = stepper.locator(".minfer-told"), stepper.locator(".minfer-source")
    registers = stepper.locator(".minfer-registers svg")
    handle = stepper.locator(".minfer-step .noUi-handle")
    expect(told).to_contain_text("17 of 50")

    def shows(number: int) -> tuple[str, str]:
        """Waits for that step; its picture in words, and the marked line."""
        expect(told).to_contain_text(re.compile(rf"^\s*{number} of 50"))
        expect(handle).to_have_attribute("aria-valuenow", re.compile(rf"^{number}(\.0)?$"))
        return registers.get_attribute("aria-label"), source.get_by_text("▶").first.inner_text()

    def moved_to(number: int) -> None:
        now = shows(number)
        assert now not in seen, "the picture is another one"
        seen.append(now)

    seen = [shows(17)]
    stepper.get_by_text("next").click()
    moved_to(18)
    stepper.get_by_text("next").click()
    moved_to(19)
    stepper.get_by_text("previous").click()
    assert shows(18) == seen[1]

    handle.focus()
    lab.page.keyboard.press("ArrowRight")
    lab.page.keyboard.press("ArrowRight")
    moved_to(20)
    lab.page.keyboard.press("ArrowLeft")
    assert shows(19) == seen[2]
    play = stepper.locator(".minfer-play button").first
    play.click()
    expect(told).to_contain_text(re.compile(r"^\s*21 of 50"), timeout=30_000)  # on from 19
    play.click()  # pause
    handle.focus()
    lab.page.keyboard.press("Home")
    moved_to(1)

    box, page_width = registers.bounding_box(), lab.page.viewport_size["width"]
    assert box["x"] > source.bounding_box()["x"] + 200, "the registers stand at the right of the source"
    assert box["x"] + box["width"] <= page_width, "all lanes are on the page"

    flagged = lab.widget("minfer-stepper").filter(has_text="lane 5: the result did not fit").first
    flagged.scroll_into_view_if_needed()
    expect(flagged.locator(".minfer-registers svg path")).to_have_count(1)
    operate_tiles(lab)
    assert lab.errors() == []


def operate_tiles(lab) -> None:
    """Choose cells by keys, then go through the instructions: the picture follows."""
    from playwright.sync_api import expect

    stepper = lab.widget("minfer-stepper").filter(has_text="sums_32_amx").first
    stepper.scroll_into_view_if_needed()
    told, tiles = stepper.locator(".minfer-told"), stepper.locator(".minfer-registers svg")
    expect(told).to_contain_text("5 of 7")

    def shows(pattern: str) -> None:
        expect(tiles).to_have_attribute("aria-label", re.compile(pattern))

    shows(r"8,192 multiply-adds; row 3 of A.* column 5 of B.* C\[3, 5\] = .* from these 32 products")
    stepper.locator(".minfer-row .noUi-handle").focus()
    lab.page.keyboard.press("ArrowRight")
    shows(r"row 4 of A.* C\[4, 5\] = ")
    stepper.locator(".minfer-column .noUi-handle").focus()
    lab.page.keyboard.press("End")
    shows(r"column 15 of B.* C\[4, 15\] = ")
    lab.page.keyboard.press("ArrowLeft")
    shows(r"C\[4, 14\] = ")

    stepper.get_by_text("previous").click()
    expect(told).to_contain_text("tileloadd")
    shows(r"memory → tmm5 .* C\[4, 14\] = 0\.")
    stepper.get_by_text("previous").click()
    shows(r"memory → tmm4 .* column 14 of B: empty")
    for name in ("tileloadd", "tdpbssd", "tilestored"):
        stepper.get_by_text("next").click()
        expect(told).to_contain_text(name)
    shows(r"tmm0 → memory .* row 4 of A: ")

    box, page_width = tiles.bounding_box(), lab.page.viewport_size["width"]
    assert box["width"] >= 480 and box["x"] + box["width"] <= page_width, "the tiles are on the page, and not shrunk"

    full = lab.widget("minfer-stepper").filter(has_text="sums_256_amx").first
    full.scroll_into_view_if_needed()
    expect(full.locator(".minfer-registers svg")).to_have_attribute(
        "aria-label", re.compile(r"16,384 multiply-adds.* from these 64 products")
    )
