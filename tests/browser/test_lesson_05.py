"""Lesson 5 in a real JupyterLab: it runs, its figures are there, and the search answers to keys and to play."""

import re

import pytest

pytestmark = pytest.mark.browser

COLD = 300  # seconds: its kernels may not be compiled yet
FIGURES = (
    "Level ladders of a Q2_K super-block",
    "Level ladders of a Q4_K super-block",
    "Level ladders of a Q3_K super-block",
    "Signal to noise against bits",
    "Rise of the perplexity",
)


def test_lesson_05_runs_and_its_search_answers(lab):
    from playwright.sync_api import expect

    expect.set_options(timeout=30_000)
    lab.open("05_kquant_min_term.ipynb")
    lab.run_all()
    lab.wait_idle(COLD)
    assert lab.errors() == [] and lab.not_run() == []

    for text in FIGURES:
        figure = lab.notebook.locator(f'svg[role="img"][aria-label^="{text}"]')
        figure.scroll_into_view_if_needed()
        assert figure.count() == 1 and figure.bounding_box()["width"] > 300

    player = lab.widget("minfer-search")
    player.scroll_into_view_if_needed()
    picture = player.locator(".minfer-tries svg")

    def shows(i: int) -> None:
        expect(picture).to_have_attribute("aria-label", re.compile(rf"^Try {i} of 21: "))
        expect(player.locator(".minfer-told")).to_contain_text(f"Try {i} of 21")

    shows(0)
    first = picture.inner_html()
    player.locator(".minfer-try .noUi-handle").focus()
    lab.page.keyboard.press("ArrowRight")
    shows(1)
    assert picture.inner_html() != first
    lab.page.keyboard.press("End")
    shows(21)
    lab.page.keyboard.press("Home")
    shows(0)

    player.locator(".jupyter-widgets-play button, .widget-play button").first.click()
    expect(picture).to_have_attribute("aria-label", re.compile(r"^Try [2-9] of 21: "))
    assert lab.errors() == []
