"""The lessons' names: each stands for what some notebook uses, and each file has a test of its own name."""

import ast
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from minfer_lib import lessons
from minfer_lib.lessons import check

ROOT = Path(__file__).parents[2]
LESSONS = ROOT / "minfer_lib" / "lessons"
FILES = [
    path.relative_to(LESSONS)
    for path in sorted(LESSONS.rglob("*.py"))
    if path.name not in ("__init__.py", "checks.py", "check.py")  # checks: tests/notebooks/test_exercises.py
]


@pytest.mark.parametrize("path", FILES, ids=str)
def test_each_file_has_a_test_of_its_name(path):
    assert (Path(__file__).parent / path.parent / f"test_{path.name}").is_file()


def used(module: str) -> set[str]:
    """The names that the notebooks take from a module: those in code, and those in prose as `module.name`."""
    names = set()
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            names |= set(re.findall(rf"\b{module}\.(\w+)", "".join(cell["source"])))
    return names


@pytest.mark.parametrize("module", [lessons, check], ids=["lessons", "check"])
def test_the_notebooks_use_each_name_and_no_other(module):
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    listed = [alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert len(listed) == len(set(listed))
    assert not any(isinstance(getattr(module, name), ModuleType) for name in listed), "a function has its file's name"
    assert set(listed) - {"CheckFailedError"} == used(module.__name__.rpartition(".")[2])
