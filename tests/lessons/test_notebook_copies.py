"""The learner's copies: made once, brought up to date while untouched, never overwritten."""

import pytest

from minfer_lib.errors import MinferError
from minfer_lib.lessons import notebook_copies


@pytest.fixture
def root(tmp_path):
    (tmp_path / "notebooks").mkdir()
    for name in ("00_start", "01_bytes"):
        (tmp_path / "notebooks" / f"{name}.ipynb").write_text(f"{name} as published")
    (tmp_path / "notebooks" / "notes.txt").write_text("not a notebook")
    return tmp_path


def states(root):
    return [copy.state for copy in notebook_copies.start(root)]


def test_start_copies_notebooks_and_only_those(root):
    copies = notebook_copies.start(root)
    assert [copy.state for copy in copies] == ["new", "new"]
    assert [copy.path.name for copy in copies] == ["00_start.ipynb", "01_bytes.ipynb"]
    assert sorted(p.name for p in (root / "work").glob("*")) == [
        notebook_copies.RECORD,
        "00_start.ipynb",
        "01_bytes.ipynb",
    ]
    assert (root / "work" / "00_start.ipynb").read_text() == "00_start as published"
    assert states(root) == ["same", "same"]


def test_a_changed_copy_is_kept_and_named(root):
    notebook_copies.start(root)
    mine = root / "work" / "01_bytes.ipynb"
    mine.write_text("my notes")
    for _ in range(2):
        kept = notebook_copies.start(root)[1]
        assert kept.state == "kept" and mine.read_text() == "my notes"
        assert "01_bytes.ipynb" in str(kept) and "minfer restore 01_bytes" in str(kept)
    (root / "notebooks" / "01_bytes.ipynb").write_text("second edition")
    assert states(root) == ["same", "kept"] and mine.read_text() == "my notes"


def test_an_untouched_copy_follows_its_original(root):
    notebook_copies.start(root)
    (root / "notebooks" / "00_start.ipynb").write_text("second edition")
    assert states(root) == ["updated", "same"]
    assert (root / "work" / "00_start.ipynb").read_text() == "second edition"


@pytest.mark.parametrize("record", [None, "not json", "[]"])
def test_without_a_readable_record_a_differing_copy_is_kept(root, record):
    notebook_copies.start(root)
    if record is None:
        (root / "work" / notebook_copies.RECORD).unlink()
    else:
        (root / "work" / notebook_copies.RECORD).write_text(record)
    (root / "notebooks" / "00_start.ipynb").write_text("second edition")
    assert states(root) == ["kept", "same"]


def test_a_deleted_copy_comes_back(root):
    notebook_copies.start(root)
    (root / "work" / "00_start.ipynb").unlink()
    assert states(root) == ["new", "same"]


@pytest.mark.parametrize("name", ["01_bytes", "01_bytes.ipynb", "01"])
def test_restore_keeps_the_learners_version(root, name):
    notebook_copies.start(root)
    mine = root / "work" / "01_bytes.ipynb"
    for number, text in enumerate(["first try", "second try"], start=1):
        mine.write_text(text)
        restored = notebook_copies.restore(name, root)
        assert mine.read_text() == "01_bytes as published"
        assert restored.backup == root / "work" / f"01_bytes.bak-{number}.ipynb"
        assert restored.backup.name in str(restored)
        assert restored.backup.read_text() == text
    assert states(root) == ["same", "same"]


def test_restore_makes_no_backup_where_nothing_was_changed(root):
    assert notebook_copies.restore("00_start", root).backup is None
    assert notebook_copies.restore("00_start", root).backup is None
    assert not list((root / "work").glob("*.bak-*"))


@pytest.mark.parametrize("name", ["02_nothing", "", "0"])
def test_restore_names_what_there_is(root, name):
    with pytest.raises(MinferError, match="00_start, 01_bytes"):
        notebook_copies.restore(name, root)


def test_without_notebooks_the_message_says_what_is_missing(tmp_path):
    with pytest.raises(MinferError, match="checkout"):
        notebook_copies.start(tmp_path)


def test_lab_opens_the_first_notebook_on_work(root, monkeypatch):
    labapp = pytest.importorskip("jupyterlab.labapp")
    given = []
    monkeypatch.setattr(labapp, "main", given.extend)
    with pytest.raises(SystemExit):
        notebook_copies.lab(root)
    assert f"--ServerApp.root_dir={root / 'work'}" in given
    assert "--LabApp.default_url=/lab/tree/00_start.ipynb" in given
