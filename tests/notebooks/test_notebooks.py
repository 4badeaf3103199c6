"""Every notebook runs from top to bottom, offline, from a learner's copy, and a warning in a cell is an error."""

import os
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from minfer_lib import model_files
from minfer_lib.lessons import notebook_copies

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CELL_TIMEOUT = 300  # seconds; the first cell that uses a kernel may compile it

# Warnings become errors in the learner's code and in ours. The kernel's own machinery is not what is tested here.
WARNINGS_ARE_ERRORS = """
import warnings
warnings.simplefilter("error")
for _package in ("ipykernel", "IPython", "jupyter_client", "zmq", "tornado", "traitlets", "asyncio"):
    warnings.filterwarnings("default", module=rf"{_package}(\\.|$)")
del _package
"""


@pytest.fixture
def learner(tmp_path):
    """A learner's work/ folder with fresh copies of the notebooks."""
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    notebook_copies.start(tmp_path)
    return tmp_path / "work"


@pytest.fixture
def environment(tmp_path):
    """The kernel's: Jupyter and IPython folders of its own, the model where it is, and nothing fetched."""
    folders = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    own = {name: str(tmp_path / name.lower()) for name in folders}
    offline = {"PIP_NO_INDEX": "1", "HF_HUB_OFFLINE": "1"}
    return os.environ | own | offline | {"MINFER_MODELS": str(model_files.models_dir())}


def execute(path: Path, environment: dict) -> nbformat.NotebookNode:
    """Runs a notebook in its own folder and returns it, without the cell that makes warnings errors."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(WARNINGS_ARE_ERRORS))
    client = NotebookClient(
        notebook, timeout=CELL_TIMEOUT, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute(env=environment)
    del notebook.cells[0]
    return notebook


def check(notebook: nbformat.NotebookNode) -> None:
    """Each code cell ran, and no thread of it died on stderr."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    assert code, "no code cell"
    for cell in code:
        assert cell.execution_count, f"cell {cell.id} did not run:\n{cell.source}"
        for output in cell.outputs:
            assert output.output_type != "error", f"cell {cell.id}: {output}"
            text = output.get("text", "") if output.output_type == "stream" else ""
            assert "Traceback (most recent call last)" not in text, f"cell {cell.id}:\n{text}"


def test_there_are_notebooks():
    assert len(NOTEBOOKS) > 0


@pytest.mark.parametrize("name", [path.name for path in NOTEBOOKS])
def test_notebook_runs_top_to_bottom(name, learner, environment):
    check(execute(learner / name, environment))


@pytest.mark.parametrize(
    "source, message",
    [
        ("import warnings\nwarnings.warn('beware')", "beware"),
        ("import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start(); t.join()", "ZeroDivisionError"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_this_test_would_notice(source, message, tmp_path, environment):
    path = tmp_path / "bad.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)]), path)
    with pytest.raises(Exception, match=message):
        check(execute(path, environment))
