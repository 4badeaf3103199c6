"""The learner's copies of the notebooks: work/ beside notebooks/.

The originals stay as they are, so that `git pull` never conflicts. A copy that nobody touched follows its original; one
that was changed (or only run: its outputs are the learner's too) is never overwritten. work/.originals.json remembers
what each copy looked like when it was made.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from minfer_lib.errors import ArgumentError, MinferError

RECORD = ".originals.json"


class Copy(NamedTuple):
    """What `start` or `restore` did with one notebook; str() of it says so."""

    path: Path
    state: str  # "new", "same", "updated", "kept" or "restored"
    backup: Path | None = None

    def __str__(self) -> str:
        return {
            "new": f"{self.path.name}: copied",
            "same": f"{self.path.name}: up to date",
            "updated": f"{self.path.name}: brought up to date",
            "kept": f"{self.path.name}: kept as you left it (a fresh copy: minfer restore {self.path.stem})",
            "restored": f"{self.path.name}: fresh copy" + (f"; yours is now {self.backup.name}" if self.backup else ""),
        }[self.state]


def start(root: str | Path | None = None) -> list[Copy]:
    """Copies root/notebooks/*.ipynb to root/work/, never over a learner's change. root None: the checkout."""
    originals, work = _folders(root)
    made_from = _read_record(work)
    copies = []
    for original in originals:
        path, now = work / original.name, _hash(original)
        if not path.exists():
            state = "new"
        elif _hash(path) == now:
            state = "same"
        elif _hash(path) == made_from.get(path.name):
            state = "updated"
        else:
            state = "kept"
        if state in ("new", "updated"):
            _copy(original, path)
        if state != "kept":
            made_from[path.name] = now
        copies.append(Copy(path, state))
    _write_record(work, made_from)
    return copies


def restore(name: str, root: str | Path | None = None) -> Copy:
    """Puts a fresh copy of one notebook into work/. The learner's version stays beside it as NAME.bak-N.ipynb.

    name: "03_scalar_dot", with or without .ipynb, or just its number, "03".
    """
    originals, work = _folders(root)
    stem = name.removesuffix(".ipynb")
    found = [path for path in originals if path.stem == stem or path.stem.startswith(f"{stem}_")]
    if len(found) != 1:
        known = ", ".join(path.stem for path in originals)
        raise ArgumentError(f"{name!r} does not name one notebook. There are: {known}.")
    original, path, backup = found[0], work / found[0].name, None
    if path.exists() and _hash(path) != _hash(original):
        number = 1
        while (backup := work / f"{path.stem}.bak-{number}.ipynb").exists():
            number += 1
        path.rename(backup)
    _copy(original, path)
    _write_record(work, _read_record(work) | {path.name: _hash(path)})
    return Copy(path, "restored", backup)


def lab(root: str | Path | None = None) -> None:
    """Runs JupyterLab on work/, with the first notebook open, and ends the process when JupyterLab is stopped."""
    copies = start(root)
    for copy in copies:
        print(copy)
    from jupyterlab.labapp import main

    first = copies[0].path
    options = [f"--ServerApp.root_dir={first.parent}", f"--LabApp.default_url=/lab/tree/{first.name}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # in a container, where everyone is root
        options.append("--allow-root")
    sys.exit(main(options))


def _folders(root: str | Path | None) -> tuple[list[Path], Path]:
    """(the original notebooks, the folder for the copies)"""
    root = Path(root) if root else Path(__file__).resolve().parents[2]
    originals = sorted((root / "notebooks").glob("*.ipynb"))
    if not originals:
        raise MinferError(
            f"There are no notebooks in {root / 'notebooks'}. The course needs a checkout of the project, with minfer "
            "installed from it: `pip install -e .` there."
        )
    work = root / "work"
    try:
        work.mkdir(exist_ok=True)
    except OSError as error:
        raise MinferError(f"The folder {work} cannot be made: {error.strerror}. It would hold your copies.") from error
    return originals, work


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _copy(source: Path, target: Path) -> None:
    """Copies in one step, so that an interrupted copy never looks like a learner's change."""
    part = target.with_suffix(".part")
    shutil.copyfile(source, part)
    os.replace(part, target)


def _read_record(work: Path) -> dict[str, str]:
    try:
        record = json.loads((work / RECORD).read_text())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _write_record(work: Path, record: dict[str, str]) -> None:
    part = work / f"{RECORD}.part"
    part.write_text(json.dumps(record, indent=1, sort_keys=True))
    os.replace(part, work / RECORD)
