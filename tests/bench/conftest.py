"""A llama_cpp that can be imported in another process and computes nothing."""

import os

import pytest

FAKE = """
class Llama:
    def __init__(self, path, **options):
        if options["n_threads"] > 90:
            raise ValueError("so many threads")
        print("a library that prints")
        self.fed, self.options = 0, options

    def reset(self):
        self.fed = 0

    def n_vocab(self):
        return 20

    def eval(self, ids):
        assert max(ids) < self.n_vocab()
        self.fed += len(ids)
        assert self.fed <= self.options["n_ctx"]
"""


@pytest.fixture
def llama_cpp(tmp_path, monkeypatch):
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "llama_cpp.py").write_text(FAKE)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
