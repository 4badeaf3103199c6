"""The comparison with llama.cpp: what is measured, in which order, and what the ratio is made of."""

import json
import re

import pytest

from minfer_lib import cli
from minfer_lib.bench import tables
from minfer_lib.bench.peer import compare
from minfer_lib.bench.peer.compare import Compare, Comparison
from minfer_lib.bench.speed import CeilingProbe


class FakeEngine:
    """Notes what it is asked; `calls` is shared by all."""

    calls: list = []
    seconds = 0.5

    def __init__(self, name, path, threads, context, switches):
        self.name = name + "".join(sorted(switches))
        FakeEngine.calls.append((self.name, "start", context))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def decode(self, n):
        FakeEngine.calls.append((self.name, "decode", n))
        return 10.0

    def prefill(self, n):
        FakeEngine.calls.append((self.name, "prefill", n))
        return 20.0

    def resident(self):
        return 3_000_000


@pytest.fixture
def fakes(monkeypatch):
    FakeEngine.calls = []
    monkeypatch.setattr(compare, "Engine", FakeEngine)
    monkeypatch.setattr(compare, "require_peer", lambda: None)
    monkeypatch.setattr(compare, "has_amx", lambda: True)
    monkeypatch.setattr(CeilingProbe, "gigabytes_per_second", lambda self, threads: 40.0)
    return FakeEngine.calls


def test_both_are_given_the_same_work_in_turn(tiny, fakes):
    rows = list(Compare(tiny(context=512), 2, CeilingProbe(1 << 20)).speed(2, n_decode=5, prompts=(9, 4)))
    assert [row.what for row in rows] == ["decode", "weights read", "prompt of 9", "prompt of 4", "prompt of 4, no AMX"]
    assert fakes[2:8] == [("minfer", "decode", 5), ("llama.cpp", "decode", 5)] * 3, "the first round is not counted"
    assert fakes[8:20] == [(name, "prefill", n) for n in (9, 4) for _ in range(3) for name in ("minfer", "llama.cpp")]
    assert fakes[20] == ("minferMINFER_NO_AMX", "start", 512)
    assert fakes[21:] == [("minferMINFER_NO_AMX", "prefill", 4), ("llama.cpp", "prefill", 4)] * 3
    assert all(len(row.ours) == len(row.theirs) == 2 and row.threads == 2 for row in rows)


def test_what_decode_reads_is_held_against_the_probe(tiny, fakes):
    path = tiny(context=512)
    _, read, *_ = Compare(path, 1, CeilingProbe(1 << 20)).speed(1)
    weights = 4 * (265 * 64 + 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64))
    assert read.ours == [pytest.approx(10 * weights / 1e9)] and read.theirs == [40.0] and read.unit == "GB/s"


def test_without_amx_there_is_nothing_to_switch_off(tiny, fakes, monkeypatch):
    monkeypatch.setattr(compare, "has_amx", lambda: False)
    rows = Compare(tiny(context=512), 1, CeilingProbe(1 << 20)).speed(1)
    assert not any("AMX" in row.what for row in rows)


def test_prompts_that_do_not_fit_are_left_out(tiny, fakes):
    probe = CeilingProbe(1 << 20)
    whats = [row.what for row in Compare(tiny(context=64), 1, probe).speed(1)]
    assert whats == ["decode", "weights read", "prompt of 32", "prompt of 32, no AMX"]
    assert [row.what for row in Compare(tiny(context=16), 1, probe).speed(1)] == ["decode", "weights read"]


def test_memory_is_that_of_a_full_context_less_the_file(tiny, fakes):
    path = tiny(context=512)
    first, ever, resident, over = Compare(path, 2, CeilingProbe(1 << 20)).start_and_memory(1)
    assert first.ours == first.theirs == [0.5, 0.5] and ever.ours == [0.5] and ever.theirs == [] and ever.ratio is None
    assert ("minferNUMBA_CACHE_DIR", "start", 512) in fakes
    assert ("minfer", "prefill", 512) in fakes and ("llama.cpp", "prefill", 512) in fakes
    assert resident.ours == [3.0] and over.ours == [3.0 - path.stat().st_size / 1e6]


def test_the_file_says_which_preset_it_is(tiny, fakes):
    assert Compare(tiny(metadata={"general.file_type": 15}), 1, CeilingProbe(1 << 20)).preset == "Q4_K_M"
    assert Compare(tiny(), 1, CeilingProbe(1 << 20)).preset == ""


def test_the_ratio_is_the_median_of_the_rounds():
    row = Comparison("m", "", "decode", 1, "tokens/s", ours=[2.0, 30.0, 9.0], theirs=[1.0, 10.0, 1.0])
    assert row.ratio == 3.0 and row.as_dict()["ratio"] == 3.0


def test_the_command_prints_it_and_writes_its_files(tiny, llama_cpp, tmp_path, monkeypatch, capsys):
    """With real processes, the other engine a fake one."""
    monkeypatch.setattr("minfer_lib.cli.bench.cpu_threads", lambda: 1)
    monkeypatch.setattr(compare, "CeilingProbe", lambda n_bytes: CeilingProbe(1 << 20))
    monkeypatch.setattr(compare, "has_amx", lambda: False)
    monkeypatch.setattr(Compare, "start_and_memory", lambda self, threads: iter(()))  # one of them takes long
    numbers, table, plot = (tmp_path / name for name in ("peer.json", "table.md", "plot.svg"))
    path = tiny(context=512, metadata={"general.file_type": 3})
    command = ["bench", "--peer", str(path), "--rounds", "2", "--json", str(numbers)]
    assert cli.main([*command, "--table", str(table), "--plot", str(plot)]) == 0
    written = json.loads(numbers.read_text())
    whats = ["decode", "weights read", "prompt of 32", "prompt of 256"]
    assert [row["what"] for row in written["peer"]] == whats and all(row["ratio"] > 0 for row in written["peer"])
    lines = table.read_text().splitlines()
    assert len(lines) == 2 + len(written["goals"]) == 5
    assert re.fullmatch(r"\| decode / llama.cpp \| Q4_1 \| 1 \|.*\| 1.6 \| 2.5 \| (aim|must|not) \|", lines[2])
    out = capsys.readouterr().out
    assert out.endswith("\n".join(lines) + "\n") and out.count(path.name) == 4
    assert "minfer over llama.cpp" in plot.read_text() and "prompt of 256" in plot.read_text()


def test_start_and_memory_is_asked_of_the_first_file_alone(tiny, fakes, monkeypatch):
    monkeypatch.setattr(compare, "CeilingProbe", lambda n_bytes: CeilingProbe(1 << 20))
    paths = [tiny(context=512), tiny(context=512, format="Q8_0")]
    rows = tables.peer_table(paths, [1, 2], 1, None, None)["peer"]
    assert [(row["model"], row["threads"]) for row in rows if row["what"] == "resident"] == [(paths[0].name, 2)]
