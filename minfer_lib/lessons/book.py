"""The course as static pages: every notebook run, its outputs kept. To read them needs no kernel and no network.

python -m minfer_lib.lessons.book notebooks book
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter
from nbconvert.preprocessors import ExecutePreprocessor
from tqdm.auto import tqdm

from minfer_lib.errors import ArgumentError, MinferError

TIMEOUT = 600  # seconds a cell; the first that uses a kernel may compile it
_WIDGET = "application/vnd.jupyter.widget-view+json"
_NO_SCRIPTS = dict.fromkeys(
    ("require_js_url", "jquery_url", "mathjax_url", "mermaid_js_url", "widget_renderer_url"), ""
)
_START = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={0}"><a href="{0}">{0}</a>\n'


def write_book(notebooks: Path, folder: Path) -> list[Path]:
    """Run copies of every notebook in `notebooks`, in order, and write folder/NAME.html; index.html leads to the first.

    Raises ArgumentError where there are none, MinferError for a cell that fails.
    """
    names = sorted(path.name for path in notebooks.glob("*.ipynb"))
    if not names:
        raise ArgumentError(f"there are no notebooks in {notebooks}.")
    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    with tempfile.TemporaryDirectory() as copies:
        for name in names:
            shutil.copy(notebooks / name, copies)
        for name in tqdm(names, desc="notebooks", unit="page"):
            page = folder / f"{Path(name).stem}.html"
            page.write_text(_page(Path(copies) / name), encoding="utf-8")
            pages.append(page)
    (folder / "index.html").write_text(_START.format(pages[0].name), encoding="utf-8")
    return pages


def _page(path: Path) -> str:
    notebook = nbformat.read(path, as_version=4)
    execute = ExecutePreprocessor(timeout=TIMEOUT, store_widget_state=False)
    try:
        execute.preprocess(notebook, {"metadata": {"path": str(path.parent)}})
    except CellExecutionError as error:
        raise MinferError(f"{path.name} has a cell that fails, so there is no page of it:\n{error}") from None
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output.data.pop(_WIDGET, None)  # the widget's static picture stays
    html, _ = HTMLExporter(**_NO_SCRIPTS).from_notebook_node(notebook, {"metadata": {"name": path.stem}})
    html = re.sub(r'<script src="">\s*</script>', "", html)
    return re.sub(r'(href="[\w./-]+)\.ipynb"', r'\1.html"', html)


if __name__ == "__main__":
    for written in write_book(Path(sys.argv[1]), Path(sys.argv[2])):
        print(written)
