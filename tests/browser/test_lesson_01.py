"""Lesson 1 in a real JupyterLab: it runs, and the block explorer answers to keys, menus and numbers."""

import re

import pytest

pytestmark = pytest.mark.browser

COLD = 300  # seconds: its kernels may not be compiled yet


@pytest.fixture
def expect():
    """Playwright's, which looks again until a thing is so."""
    from playwright.sync_api import expect

    expect.set_options(timeout=30_000)
    return expect


@pytest.fixture
def lesson(lab):
    lab.open("01_block_layouts.ipynb")
    lab.run_all()
    lab.wait_idle(COLD)
    assert lab.errors() == [] and lab.not_run() == []
    yield lab
    assert lab.errors() == []


def test_the_explorer_answers(lesson, expect):
    explorer = lesson.widget("minfer-explorer").nth(1)  # of the real file; the first shows raw blocks
    explorer.scroll_into_view_if_needed()
    picture, detail = explorer.locator(".minfer-dump [role=img]"), explorer.locator(".minfer-detail")

    def shows(*texts: str) -> None:
        """Waits until the picture's text holds `texts`, in that order."""
        expect(picture).to_have_attribute("aria-label", re.compile(".*".join(map(re.escape, texts))))

    def press(key: str) -> None:
        lesson.page.keyboard.press(key)

    shows("one Q4_K block", "Byte 0 is selected: d = ")
    explorer.locator(".noUi-handle").focus()
    before = picture.inner_html()
    press("ArrowRight")
    shows("Byte 1 is selected: d = ")
    assert picture.inner_html() != before
    for _ in range(3):
        press("ArrowRight")
    shows("Byte 4 is selected", "scale 0 = ", "scale 4 = ")
    expect(detail).to_contain_text("byte 4 of 144")
    press("End")
    shows("Byte 143 is selected", "element 255")

    explorer.locator("select").select_option(label="token_embd.weight · Q6_K")
    shows("one Q6_K block", "Byte 0 is selected")
    expect(detail).to_contain_text("byte 0 of 210")
    at = re.search(r"position ([\d,]+)", detail.inner_text())[1]
    row = explorer.locator(".minfer-row input")
    row.fill("7")
    row.press("Enter")
    expect(detail).not_to_contain_text(at)
    assert explorer.locator(".minfer-dump span[title]").count() == 210
    assert explorer.locator(".minfer-dump span[title]").last.get_attribute("title").startswith("byte 209, d: d = ")


def test_predictions_and_solutions_open(lesson, expect):
    predict = lesson.widget("minfer-predict").first
    predict.scroll_into_view_if_needed()
    assert predict.locator(".minfer-reveal").inner_text().strip() == ""
    predict.locator(".minfer-guess input").fill("3")
    predict.locator(".minfer-guess input").press("Tab")
    predict.locator(".minfer-commit").click()
    expect(predict.locator(".minfer-reveal")).to_contain_text("It is")

    solution = lesson.notebook.locator("details", has=lesson.page.get_by_text("Solution", exact=True)).first
    code = solution.locator("pre")
    assert not code.is_visible()
    solution.locator("summary").click()
    expect(code).to_contain_text("def decode_q4_0(block):")
    expect(code).to_be_visible()
