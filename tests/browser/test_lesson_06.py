"""Lesson 6 in a real JupyterLab: it runs; the tracer answers to keys, to its menus and to play."""

import re

import pytest

pytestmark = pytest.mark.browser

COLD = 300  # seconds: its kernels may not be compiled yet


def test_lesson_06_runs_and_its_tracer_answers(lab):
    lab.open("06_thread_chunks.ipynb")
    lab.run_all()
    lab.wait_idle(COLD)
    assert lab.errors() == [] and lab.not_run() == []

    tracer, picture, said = (lab.widget(f"minfer-{name}") for name in ("tracer", "chunks", "said"))
    tracer.scroll_into_view_if_needed()

    def changed_by(act) -> str:
        """Does `act`, waits until the picture is another one, and returns its text."""
        before = picture.inner_html()
        act()
        lab.page.wait_for_function(
            "([css, before]) => document.querySelector(css).innerHTML !== before", arg=[".minfer-chunks", before]
        )
        return picture.locator("svg").get_attribute("aria-label")

    def done() -> int:
        return int(re.search(r"(\d+) of \d+ chunks", said.inner_text())[1])

    assert done() == 192
    handle = lab.widget("minfer-time").locator(".noUi-handle")
    handle.focus()
    changed_by(lambda: lab.page.keyboard.press("Home"))
    lab.page.wait_for_function("css => document.querySelector(css).innerText.includes('0 of 192')", arg=".minfer-said")
    changed_by(lambda: lab.page.keyboard.press("End"))
    lab.page.wait_for_function(
        "css => document.querySelector(css).innerText.includes('192 of 192')", arg=".minfer-said"
    )

    policy = lab.widget("minfer-policy").locator("select")
    policy.focus()
    told = changed_by(lambda: policy.select_option(label="even ranges, as minfer"))
    assert told.startswith("12,288 rows in 2 chunks")
    told = changed_by(lambda: lab.widget("minfer-threads").get_by_text("4", exact=True).click())
    assert told.startswith("12,288 rows in 4 chunks")
    told = changed_by(lambda: policy.select_option(label="claimed chunks, as ggml"))
    assert told.startswith("12,288 rows in 192 chunks") and "thread 3 took" in told
    assert "counter ends at 196" in said.inner_text()
    slow = lab.widget("minfer-slow").locator("select")
    changed_by(lambda: slow.select_option(label="thread 0: 4 times as slow"))

    changed_by(lambda: lab.widget("minfer-play").locator("button").first.click())  # from the end: it begins anew
    lab.page.wait_for_function(  # it goes on by itself
        """css => {
            window.minferSeen ??= new Set();
            window.minferSeen.add(document.querySelector(css).innerText);
            return window.minferSeen.size >= 4;
        }""",
        arg=".minfer-said",
    )
    lab.widget("minfer-play").locator("button").first.click()

    machine = lab.widget("minfer-machine-chunks")
    before = machine.inner_html()
    cores = lab.widget("minfer-machine-slow").locator(".noUi-handle")
    cores.focus()
    lab.page.keyboard.press("ArrowRight")
    lab.page.wait_for_function(
        "([css, before]) => document.querySelector(css).innerHTML !== before", arg=[".minfer-machine-chunks", before]
    )
    assert lab.errors() == []
