"""Lesson 2 in a real JupyterLab: it runs, and the playground answers to keys and buttons."""

import re

import pytest

pytestmark = pytest.mark.browser

COLD = 300  # seconds: its kernels may not be compiled yet


def test_lesson_02_runs_and_its_playground_answers(lab):
    lab.open("02_q8_0_quantization.ipynb")
    lab.run_all()
    lab.wait_idle(COLD)
    assert lab.errors() == [] and lab.not_run() == []

    block, numbers = lab.widget("minfer-block"), lab.widget("minfer-numbers")
    lab.widget("minfer-playground").scroll_into_view_if_needed()

    def changed_by(act) -> str:
        """Does `act`, waits until the picture is another one, and returns its text."""
        before = block.inner_html()
        act()
        lab.page.wait_for_function(
            "([css, before]) => document.querySelector(css).innerHTML !== before", arg=[".minfer-block", before]
        )
        return block.locator("svg").get_attribute("aria-label")

    before = block.locator("svg").get_attribute("aria-label")
    handle = lab.widget("minfer-value-3").locator(".noUi-handle")
    value = handle.get_attribute("aria-valuetext")
    handle.focus()
    by_key = changed_by(lambda: lab.page.keyboard.press("End"))
    assert by_key != before and handle.get_attribute("aria-valuetext") != value

    by_format = changed_by(lambda: lab.widget("minfer-format").get_by_text("Q4_0", exact=True).click())
    assert by_format.startswith("A block of 32 values as Q4_0")
    assert "18 bytes" in numbers.inner_text()

    by_preset = changed_by(lambda: lab.widget("minfer-playground").get_by_text("zeros", exact=True).click())
    assert re.search(r"d -?0\. Codes 8(, 8){31}\.", by_preset)
    assert handle.get_attribute("aria-valuetext") == "0"
    assert lab.errors() == []
