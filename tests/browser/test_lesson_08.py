"""Lesson 8 in a real JupyterLab: it runs; text streams and stops, the sliders answer, a chat remembers."""

import re

import pytest

pytestmark = pytest.mark.browser

COLD = 600  # seconds: its kernels may not be compiled yet, and it reads some thousand tokens
GENERATE = ".minfer-generate:not(.minfer-chat)"


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found, f"no {pattern} in {text!r}"
    return int(found[1])


def test_lesson_08_runs_and_its_widgets_answer(lab):
    lab.open("08_full_model_decode.ipynb")
    lab.run_all()
    lab.wait_idle(COLD)
    assert lab.errors() == [] and lab.not_run() == []
    the_text_streams_and_stops(lab)
    the_sliders_answer(lab)
    if lab.widget("minfer-chat").count():  # the small model has no chat template
        a_chat_remembers(lab)
    assert lab.errors() == []


def is_done(lab, panel: str) -> None:
    lab.page.wait_for_function("css => document.querySelector(css).disabled === false", arg=f"{panel} .minfer-run")


def the_text_streams_and_stops(lab):
    box = lab.notebook.locator(GENERATE)
    text, speed = box.locator(".minfer-text"), box.locator(".minfer-speed")
    box.scroll_into_view_if_needed()
    box.locator(".minfer-prompt textarea").fill("A very long story. Once upon a time, in a village by the sea,")
    before = text.inner_text()
    box.locator(".minfer-run").click()
    lab.page.wait_for_function(  # text appears, and then more of it: it streams
        """([css, before]) => {
            const now = document.querySelector(css).innerText;
            window.minferSeen ??= new Set();
            if (now.trim() && now !== before) window.minferSeen.add(now.length);
            return window.minferSeen.size >= 2;
        }""",
        arg=[f"{GENERATE} .minfer-text", before],
    )
    box.locator(".minfer-stop").click()
    is_done(lab, GENERATE)
    cell = lab.notebook.locator(".jp-CodeCell", has=lab.page.locator(GENERATE))
    asked = number(r"max_tokens=(\d+)", cell.locator(".cm-content").inner_text())
    assert "stopped" in speed.inner_text()
    assert 0 < number(r"(\d+) tokens", speed.inner_text()) < asked
    stopped_at = text.inner_text()

    box.locator(".minfer-run").click()  # it can be started again after a stop, and the page is still alive
    lab.page.wait_for_function(
        "([css, before]) => document.querySelector(css).innerText !== before",
        arg=[f"{GENERATE} .minfer-text", stopped_at],
    )
    box.locator(".minfer-stop").click()
    is_done(lab, GENERATE)


def the_sliders_answer(lab):
    picture, left = lab.widget("minfer-candidates"), lab.widget("minfer-left")
    lab.widget("minfer-sampler").scroll_into_view_if_needed()

    def changed_by(slider: str, key: str) -> str:
        before = picture.inner_html()
        lab.widget(f"minfer-{slider}").locator(".noUi-handle").focus()
        lab.page.keyboard.press(key)
        lab.page.wait_for_function(
            "([css, before]) => document.querySelector(css).innerHTML !== before", arg=[".minfer-candidates", before]
        )
        return picture.locator("svg").get_attribute("aria-label")

    assert changed_by("temperature", "Home").count("to 100.0%") == 1  # at temperature 0 one token has every chance
    assert "to 100.0%" not in changed_by("temperature", "End")
    changed_by("min-p", "Home")
    changed_by("top-p", "End")
    changed_by("top-k", "ArrowRight")
    lab.page.wait_for_function(
        "css => document.querySelector(css).innerText.includes('41 after min-p')", arg=".minfer-left"
    )
    assert "41 after top-k" in left.inner_text()


def a_chat_remembers(lab):
    chat = lab.widget("minfer-chat")
    chat.scroll_into_view_if_needed()
    for message, turns in (("Say hello.", 1), ("And again.", 2)):
        chat.locator(".minfer-prompt textarea").fill(message)
        chat.locator(".minfer-run").click()
        lab.page.wait_for_function(
            "([css, turns]) => document.querySelector(css).innerText.split('assistant:').length - 1 === turns",
            arg=[".minfer-chat .minfer-text", turns],
        )
        is_done(lab, ".minfer-chat")
    said = chat.locator(".minfer-text").inner_text()
    assert said.index("Say hello.") < said.index("And again.")
    chat.locator(".minfer-new-chat").click()
    lab.page.wait_for_function("css => !document.querySelector(css).innerText.trim()", arg=".minfer-chat .minfer-text")
