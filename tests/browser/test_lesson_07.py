"""Lesson 7 in a real JupyterLab: it runs; the geometry explorer and the warp stepper answer to mouse and keys."""

import re

import pytest

pytestmark = pytest.mark.browser

COLD = 300  # seconds: its kernels may not be compiled yet


def test_lesson_07_runs_and_its_widgets_answer(lab):
    from playwright.sync_api import expect

    lab.open("07_mmvq_geometry.ipynb")
    lab.run_all()
    lab.wait_idle(COLD)
    assert lab.errors() == [] and lab.not_run() == []

    explorer = lab.widget("minfer-geometry")
    explorer.scroll_into_view_if_needed()
    said, told = lab.widget("minfer-geometry-said"), lab.widget("minfer-geometry-told")
    picture = lab.widget("minfer-geometry-picture").locator("svg")
    expect(said).to_contain_text("917,504 threads")
    lab.widget("minfer-geometry-layout").locator("select").select_option(label="the old kernel")
    expect(said).to_contain_text("28,672 threads")
    expect(picture).to_have_attribute("aria-label", re.compile("448 thread blocks of 2 warps"))
    lab.widget("minfer-geometry-layout").locator("select").select_option(label="seed 3")
    expect(said).to_contain_text("917,504 threads")
    lab.widget("minfer-geometry-shape").locator("select").select_option(label="7B attn_q")
    expect(said).to_contain_text("144 idle")
    handle = lab.widget("minfer-geometry-thread").locator(".noUi-handle")
    handle.focus()
    lab.page.keyboard.press("ArrowRight")
    expect(told).to_contain_text("Thread 38 of thread block 0 is lane 6 of warp 1")
    lab.page.keyboard.press("End")
    expect(told).to_contain_text("It is idle: a row has 112 units")
    lab.widget("minfer-geometry-warps").get_by_text("4", exact=True).click()
    expect(said).to_contain_text("128 threads")
    lab.widget("minfer-geometry-block-rows").get_by_text("4", exact=True).click()
    expect(said).to_contain_text("896 thread blocks")
    flight = lab.widget("minfer-geometry-flight").locator("svg")
    before = flight.get_attribute("aria-label")
    lab.widget("minfer-geometry-waits").get_by_text("32", exact=True).click()
    expect(flight).not_to_have_attribute("aria-label", before)
    box = picture.bounding_box()
    assert box["x"] + box["width"] <= lab.page.viewport_size["width"], "all lanes are on the page"

    stepper = lab.widget("minfer-stepper").last  # the first one steps through the quantizer
    stepper.scroll_into_view_if_needed()
    at, lanes = stepper.locator(".minfer-told"), stepper.locator(".minfer-lanes svg")
    number = int(re.search(r"(\d+) of \d+", at.inner_text())[1])

    def moved_to(n: int) -> str:
        """Waits until step n is told, which comes after its picture; the picture in words."""
        expect(at).to_contain_text(re.compile(rf"^\s*{n} of"))
        return lanes.get_attribute("aria-label")

    seen = [moved_to(number)]
    stepper.get_by_text("next").click()
    seen.append(moved_to(number + 1))
    handle = stepper.locator(".minfer-step .noUi-handle")
    handle.focus()
    lab.page.keyboard.press("ArrowRight")
    seen.append(moved_to(number + 2))
    assert len(set(seen)) == 3, "each step has a picture of its own"
    stepper.get_by_text("previous").click()
    assert moved_to(number + 1) == seen[1]
    stepper.locator(".minfer-warp select").select_option(label="warp 4")
    expect(at).to_contain_text("block 0, warp 4")
    handle.focus()
    lab.page.keyboard.press("End")
    expect(at).to_contain_text(re.compile(r"^\s*(\d+) of \1 "))
    play = stepper.locator(".minfer-play button").first
    lab.page.keyboard.press("Home")
    moved_to(1)
    play.click()
    moved_to(2)
    play.click()
    source = stepper.locator(".minfer-source")
    assert lanes.bounding_box()["x"] > source.bounding_box()["x"] + 200, "the lanes stand at the right of the source"
    tree = lab.notebook.locator('svg[role="img"][aria-label^="The sum over 32 lanes"]')
    assert tree.count() == 1 and tree.bounding_box()["width"] > 300
    assert lab.errors() == []
