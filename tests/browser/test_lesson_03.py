"""Lesson 3 in a real JupyterLab: it runs, its figures are there, a prediction is answered and a solution unfolds."""

import re

import pytest

pytestmark = pytest.mark.browser

COLD = 300  # seconds: its kernels may not be compiled yet
FIGURES = ("A Q4_0 block", "Histogram of 1,000 sums", "2 tokens, 3 outputs each", "Times on a logarithmic axis")


def test_lesson_03_runs_and_answers(lab):
    from playwright.sync_api import expect

    lab.open("03_scalar_dot.ipynb")
    lab.run_all()
    lab.wait_idle(COLD)
    assert lab.errors() == [] and lab.not_run() == []

    for text in FIGURES:
        figure = lab.notebook.locator(f'svg[role="img"][aria-label^="{text}"]')
        figure.scroll_into_view_if_needed()
        assert figure.count() == 1 and figure.bounding_box()["width"] > 300

    predict = lab.widget("minfer-predict").first
    predict.scroll_into_view_if_needed()
    guess, reveal = predict.locator(".minfer-guess input"), predict.locator(".minfer-reveal")
    assert reveal.inner_text().strip() == ""
    guess.fill("4096")
    guess.press("Tab")
    lab.page.keyboard.press("Enter")  # Tab went to the button
    expect(reveal).to_contain_text("It is 12,288", timeout=30_000)
    expect(guess).to_be_disabled()

    solutions = lab.notebook.locator("details", has=lab.page.get_by_text(re.compile("^Solution$")))
    assert solutions.count() == 4
    code = solutions.first.locator("pre")
    assert not code.is_visible()
    solutions.first.locator("summary").click()
    expect(code).to_contain_text("def dot_q4_0_q8_0(w, a):")
    assert lab.errors() == []
