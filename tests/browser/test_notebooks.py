"""The notebooks as a learner meets them: opened in JupyterLab, run from top to bottom, used with the mouse."""

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


def test_start_here_runs(lab):
    run(lab, "00_start_here.ipynb")


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
