"""Compiled kernels are kept per state of the source, so that an edit anywhere is never met by an old kernel."""

from pathlib import Path

import numba
import pytest

from minfer_lib.native import jit


@pytest.fixture
def source(tmp_path, monkeypatch):
    (tmp_path / "lib" / "dot").mkdir(parents=True)
    for name in ("native/jit.py", "dot/a.py", "dot/b.py"):
        (tmp_path / "lib" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lib" / name).write_text(name)
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "lib" / "native" / "jit.py"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "lib"


def test_the_folder_follows_every_source_file(source):
    seen = {jit._cache_dir()}
    assert jit._cache_dir() in seen
    (source / "dot" / "b.py").write_text("edited")
    seen.add(jit._cache_dir())
    (source / "dot" / "b.py").rename(source / "dot" / "c.py")
    seen.add(jit._cache_dir())
    (source / "notes.txt").write_text("no source")
    seen.add(jit._cache_dir())
    assert len(seen) == 3
    assert {path.parent for path in seen} == {source.parent / "cache"}


def test_without_the_switch_it_is_the_users_cache(source, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    assert jit._cache_dir().parent == Path(jit.platformdirs.user_cache_dir("minfer", appauthor=False))


def test_a_kernel_divides_by_zero_and_leaves_numbas_settings_alone():
    before = numba.config.CACHE_DIR

    @jit.kernel
    def quotient(a, b):
        return a / b

    assert numba.config.CACHE_DIR == before
    assert quotient(1.0, 0.0) == float("inf")
