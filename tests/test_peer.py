"""The comparison with llama.cpp: who is measured, in which order, and what the ratio is made of."""

import json
import sys
import types

import pytest

import minfer_lib as mf
from minfer_lib import cli, peer


class FakeLlama:
    """llama_cpp.Llama, as far as it is used; counts the tokens that it is fed."""

    fed: list[int] = []

    def __init__(self, path, **options):
        self.options = options

    def reset(self):
        pass

    def eval(self, ids):
        FakeLlama.fed.append(len(ids))


@pytest.fixture
def llama_cpp(monkeypatch):
    module = types.ModuleType("llama_cpp")
    module.Llama = FakeLlama
    module.__spec__ = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "llama_cpp", module)
    FakeLlama.fed = []


def test_without_the_extra_the_error_says_how_to_get_it(tiny, monkeypatch):
    monkeypatch.setattr(peer.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(mf.UnsupportedError, match=r"\[peer\]"):
        peer.compare(tiny(), threads=1)


def test_both_are_given_the_same_work(tiny, llama_cpp):
    decode, *prompts = peer.compare(tiny(context=512), threads=2, n_decode=5, prompts=(9, 4), rounds=3)
    assert decode.what == "decode" and [row.what for row in prompts] == ["prompt of 9", "prompt of 4"]
    assert FakeLlama.fed == [1] * 6 * 4 + [9] * 4 + [4] * 4  # a round more than asked for: the first is not counted
    assert len(decode.ours) == len(decode.theirs) == 3 and decode.threads == 2


def test_the_ratio_is_the_median_of_the_rounds():
    row = peer.Comparison("m", "decode", 1, ours=[2.0, 30.0, 9.0], theirs=[1.0, 10.0, 1.0])
    assert row.ratio == 3.0 and row.as_dict()["ratio"] == 3.0


def test_the_command_prints_and_writes_it(tiny, llama_cpp, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli, "cpu_threads", lambda: 2)
    file = tmp_path / "peer.json"
    assert cli.main(["bench", "--peer", str(tiny(context=512)), "--json", str(file)]) == 0
    rows, whats = json.loads(file.read_text())["peer"], ("decode", "prompt of 32", "prompt of 256")
    assert [(row["what"], row["threads"]) for row in rows] == [(w, n) for n in (1, 2) for w in whats]
    assert all(row["ratio"] > 0 for row in rows)
    assert capsys.readouterr().out.count("\n") == 2 + 6
