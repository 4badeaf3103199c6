"""Every exercise of every notebook: its stub says that it is one, its solution passes, known wrong answers do not.

An exercise NAME is three cells, by their ids: exercise-NAME (the stub), check-NAME (which calls check.NAME) and
hints-NAME (two folded hints, and the folded solution: the only place where it stands).
"""

import ast
import importlib.util
import inspect
import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from minfer_lib.lessons import check

ROOT = Path(__file__).parents[2]
FOLDED = re.compile(r"<details>\s*<summary>(.*?)</summary>(.*?)</details>", re.S)
FENCED = re.compile(r"^```python\n(.*?)^```$", re.S | re.M)


class Exercise(NamedTuple):
    notebook: str
    name: str
    stub: str
    check: str
    hints: str
    imports: str  # all that the notebook imports


def read(path: Path) -> list[Exercise]:
    cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]}
    names = [id_.removeprefix("exercise-") for id_ in cells if id_.startswith("exercise-")]
    imports = imports_of(cells.values()) if names else ""
    parts = ("exercise", "check", "hints")
    return [Exercise(path.stem, n.replace("-", "_"), *(cells[f"{part}-{n}"] for part in parts), imports) for n in names]


def imports_of(sources) -> str:
    lines = []
    for source in sources:
        try:
            tree = ast.parse(source)
        except SyntaxError:  # prose
            continue
        lines += [ast.unparse(node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return "\n".join(lines)


EXERCISES = [exercise for path in sorted((ROOT / "notebooks").glob("*.ipynb")) for exercise in read(path)]
IDS = [f"{e.notebook[:2]}-{e.name}" for e in EXERCISES]


def defined(exercise: Exercise, source: str):
    """The function that the source defines, among what the notebook imports."""
    names: dict = {}
    exec(exercise.imports, names)
    exec(source, names)
    return names[exercise.name]


def solution(exercise: Exercise) -> str:
    (source,) = FENCED.findall(FOLDED.findall(exercise.hints)[-1][1])
    return source


def wrong_answers():
    """(lesson, exercise, function)"""
    for path in sorted((Path(__file__).parent / "wrong_answers").glob("lesson_*.py")):
        spec = importlib.util.spec_from_file_location(f"wrong_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, function in vars(module).items():
            if "__" in name.strip("_") and inspect.isfunction(function):
                yield path.stem.removeprefix("lesson_"), name.partition("__")[0], function


WRONG = list(wrong_answers())


def test_there_are_exercises_and_wrong_answers():
    assert len(EXERCISES) > 0 and len(WRONG) > 0


@pytest.mark.parametrize("exercise", EXERCISES, ids=IDS)
def test_an_exercise_has_two_hints_a_solution_and_its_check(exercise):
    folded = FOLDED.findall(exercise.hints)
    assert len(folded) == 3 and all(text.strip() for _, text in folded)
    assert "olution" in folded[-1][0] and not any(FENCED.search(text) for _, text in folded[:-1])
    assert f"check.{exercise.name}({exercise.name}" in exercise.check
    assert re.search(r"\b\d+ lines?\b", exercise.stub), "a stub says how many lines it takes"


@pytest.mark.parametrize("exercise", EXERCISES, ids=IDS)
def test_stub_and_solution_have_one_signature(exercise):
    stub, right = defined(exercise, exercise.stub), defined(exercise, solution(exercise))
    assert inspect.signature(stub) == inspect.signature(right)


@pytest.mark.parametrize("exercise", EXERCISES, ids=IDS)
def test_a_stub_is_told_that_it_is_one(exercise, capsys):
    getattr(check, exercise.name)(defined(exercise, exercise.stub))
    assert "not written yet" in capsys.readouterr().out


@pytest.mark.parametrize("exercise", EXERCISES, ids=IDS)
def test_the_solution_passes(exercise, capsys):
    getattr(check, exercise.name)(defined(exercise, solution(exercise)))
    assert capsys.readouterr().out.startswith(f"✓ {exercise.name}")


@pytest.mark.parametrize("exercise", EXERCISES, ids=IDS)
def test_two_wrong_answers_at_least_are_known(exercise):
    assert sum((lesson, name) == (exercise.notebook[:2], exercise.name) for lesson, name, _ in WRONG) >= 2


@pytest.mark.parametrize("lesson, name, function", WRONG, ids=[f"{lesson}-{f.__name__}" for lesson, _, f in WRONG])
def test_a_wrong_answer_fails_and_learns_why(lesson, name, function):
    assert (lesson, name) in [(e.notebook[:2], e.name) for e in EXERCISES]
    with pytest.raises(check.CheckFailedError) as failure:
        getattr(check, name)(function)
    assert function.__doc__ in str(failure.value)
