"""The project as a whole: its lists of packages agree, its notebooks are clean, its imports go one way."""

import ast
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from minfer_lib import __version__

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "minfer_lib"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


# The packages


def by_name(lines) -> dict[str, Requirement]:
    return {canonicalize_name(requirement.name): requirement for requirement in map(Requirement, lines)}


def test_environment_yml_has_the_ranges_of_pyproject():
    listed = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    conda = by_name(line for line in listed if isinstance(line, str))
    assert conda.pop("python").specifier == Requirement("python" + PROJECT["requires-python"]).specifier
    assert "pip" in conda and {"pip": ["-e ."]} in listed
    del conda["pip"]
    ours = by_name(PROJECT["dependencies"])
    assert {name: r.specifier for name, r in conda.items()} == {name: r.specifier for name, r in ours.items()}


@pytest.mark.parametrize("group", ["dependencies", *PROJECT["optional-dependencies"]])
def test_the_lock_pins_a_version_inside_each_range(group):
    pins = by_name(line for line in LOCK.splitlines() if re.match(r"\w", line))
    lines = PROJECT["dependencies"] if group == "dependencies" else PROJECT["optional-dependencies"][group]
    for name, requirement in by_name(lines).items():
        (pin,) = pins[name].specifier
        assert pin.operator == "==" and requirement.specifier.contains(pin.version), f"{requirement} is not {pin}"


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_the_lock_has_one_version_of_each_package(python):
    environment = default_environment() | {"python_version": python, "python_full_version": f"{python}.0"}
    pins = [Requirement(line) for line in LOCK.splitlines() if re.match(r"\w", line)]
    names = [canonicalize_name(pin.name) for pin in pins if not pin.marker or pin.marker.evaluate(environment)]
    assert len(names) == len(set(names)) > 100


def test_the_changelog_knows_the_version():
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


# The notebooks


def test_there_are_notebooks():
    assert len(NOTEBOOKS) > 0


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs_and_with_cell_ids(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) >= (4, 5), "older notebooks have no cell ids"
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert "version" not in notebook["metadata"].get("language_info", {}), "it would change with each Python"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(ids) == len(set(ids)) and all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", id_) for id_ in ids)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None, f"cell {cell['id']} has outputs"


# The imports. Each part of the package may import itself, what BASE names, and what stands behind it here: no more than
# it needs. A part stands below all those that it imports.

BASE = {"errors", "version"}
LAYERS = {
    "errors": set(),
    "version": set(),
    "native": set(),
    "formats": set(),
    "text": set(),
    "model_files": set(),
    "simd": {"native"},
    "quantize": {"native", "formats", "simd"},
    "dot": {"native", "formats", "simd"},
    "gpu": {"native", "formats", "simd"},
    "matmul": {"native", "formats", "simd", "quantize", "dot"},
    "model": {"native", "formats", "simd", "quantize", "dot", "matmul"},
    "engine": {"native", "formats", "quantize", "matmul", "model", "text"},
    "__init__": {"formats", "simd", "quantize", "dot", "matmul", "engine", "text"},
    # the peer's worker uses the library as others do, and lessons as a learner does
    "bench": {"native", "formats", "simd", "quantize", "dot", "matmul", "gpu", "engine", "__init__"},
    "lessons": {"native", "formats", "simd", "quantize", "dot", "matmul", "gpu", "engine", "text"}
    | {"model_files", "bench", "__init__"},
    "cli": {"native", "formats", "quantize", "engine", "text", "model_files", "bench", "lessons"},
    "__main__": {"cli"},
}


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(tree: ast.AST, package: list[str]) -> set[str]:
    """The parts of minfer_lib that a module in `package` (its path as names) imports, anywhere in its code."""
    modules = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            modules += [[*base, alias.name] for alias in node.names]
    ours = [module for module in modules if module[0] == "minfer_lib"]
    # `from minfer_lib import engine` imports a part; `from minfer_lib import load_model` what __init__ gathers.
    return {module[1] if len(module) > 1 and module[1] in LAYERS else "__init__" for module in ours}


MODULES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES = 300  # of a file of the package


def imports_of(path: Path) -> set[str]:
    package = ["minfer_lib", *path.relative_to(PACKAGE).parent.parts]
    return imported_parts(ast.parse(path.read_text(encoding="utf-8")), package)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    part = part_of(path)
    assert part in LAYERS, f"say in LAYERS what {part} may import"
    wrong = imports_of(path) - LAYERS[part] - BASE - {part}
    assert not wrong, f"{part} must not import {', '.join(sorted(wrong))}"


def test_the_table_of_imports_has_an_order():
    """Each part is listed below all those that it may import, so there is no way round in a circle."""
    names = list(LAYERS)
    for place, (part, allowed) in enumerate(LAYERS.items()):
        assert allowed <= set(names[:place]), f"{part} imports {', '.join(allowed - set(names[:place]))}"


@pytest.mark.parametrize("part", LAYERS)
def test_an_allowed_import_is_used(part):
    used = set().union(*(imports_of(path) for path in MODULES if part_of(path) == part))
    unused = LAYERS[part] - used
    assert not unused, f"{part} does not import {', '.join(sorted(unused))} any more: take it out of LAYERS"


@pytest.mark.parametrize(
    "code, parts",
    [
        ("import minfer_lib as mf", {"__init__"}),
        ("import minfer_lib.engine.session", {"engine"}),
        ("from minfer_lib import load_model, model_files", {"__init__", "model_files"}),
        ("from minfer_lib.model.config import Config", {"model"}),
        ("def f():\n    from . import table\n    from ..engine import Model\n    import numpy", {"formats", "engine"}),
    ],
)
def test_imports_are_found(code, parts):
    assert imported_parts(ast.parse(code), ["minfer_lib", "formats"]) == parts


# The files


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_can_be_read_in_one_sitting(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES, f"{path.name} has {lines} lines: move a part that has a name into another file"


def test_no_file_points_outside_the_project():
    """A clone stands alone: no path of one machine, no folder beside the checkout, no registry by its address."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    outside = re.compile("|".join([r"\.\./sh" + "ared", "/work/" + r"(main|shared)\b", "/ro" + "ot/", "/tm" + "p/",
                                   "pypi" + r"\.org", "python" + r"hosted\.org", r"npmjs\." + r"(org|com)",
                                   "deb" + r"\.debian\.org"]))  # fmt: skip
    wrong = []
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.is_file() and path.suffix not in {".png", ".gguf", ".npz", ".npy"}:
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
                if found := outside.search(line):
                    wrong.append(f"{name}:{number}: {found[0]}")
    assert not wrong, "\n".join(wrong)
