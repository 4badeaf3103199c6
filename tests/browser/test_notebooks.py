"""The notebooks as a learner meets them: opened in JupyterLab, run from top to bottom, used with the mouse."""

import re

import nbformat
import pytest

pytestmark = pytest.mark.browser

COLD = 300  # seconds for a notebook whose kernels may not be compiled yet


def run(lab, name: str) -> None:
    lab.open(name)
    lab.run_all()
    lab.wait_idle(COLD)
    assert lab.errors() == []
    assert lab.not_run() == []


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found, f"no {pattern} in {text!r}"
    return int(found[1])


def test_start_here_runs(lab):
    run(lab, "00_start_here.ipynb")


def test_full_model_decode_runs_streams_and_stops(lab):
    run(lab, "08_full_model_decode.ipynb")
    text, speed = lab.widget("minfer-text"), lab.widget("minfer-speed")
    start, stop = lab.widget("minfer-run"), lab.widget("minfer-stop")
    box = lab.widget("minfer-generate")
    box.scroll_into_view_if_needed()

    box.locator(".minfer-prompt textarea").fill("A very long story. Once upon a time, in a village by the sea,")
    before = text.inner_text()
    start.click()
    lab.page.wait_for_function(  # text appears, and then more of it: it streams
        """([css, before]) => {
            const now = document.querySelector(css).innerText;
            window.minferSeen ??= new Set();
            if (now.trim() && now !== before) window.minferSeen.add(now.length);
            return window.minferSeen.size >= 2;
        }""",
        arg=[".minfer-text", before],
    )
    stop.click()
    lab.page.wait_for_function("css => document.querySelector(css).disabled === false", arg=".minfer-run")
    cell = lab.notebook.locator(".jp-CodeCell", has=lab.page.locator(".minfer-generate"))
    asked = number(r"max_tokens=(\d+)", cell.locator(".cm-content").inner_text())
    assert "stopped" in speed.inner_text()
    assert 0 < number(r"(\d+) tokens", speed.inner_text()) < asked
    stopped_at = text.inner_text()

    start.click()  # it can be started again after a stop, and the page is still alive
    lab.page.wait_for_function(
        "([css, before]) => document.querySelector(css).innerText !== before", arg=[".minfer-text", stopped_at]
    )
    stop.click()
    lab.page.wait_for_function("css => document.querySelector(css).disabled === false", arg=".minfer-run")
    assert lab.errors() == []


def test_this_harness_would_notice(lab, server):
    """A cell that fails is seen, and so are those after it that never ran."""
    cells = [nbformat.v4.new_code_cell(source) for source in ("1 / 1", "1 / 0", "2 / 1")]
    cells.insert(1, nbformat.v4.new_markdown_cell("a long text\n\n" * 200))
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), server.work / "bad.ipynb")
    lab.open("bad.ipynb")
    lab.run_all()
    lab.wait_idle()
    assert len(lab.errors()) == 1 and "ZeroDivisionError" in lab.errors()[0]
    assert lab.not_run() == ["2 / 1"]
