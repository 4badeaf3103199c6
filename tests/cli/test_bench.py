"""`minfer bench`: its table, its files, and options that do not go together."""

import json
import os

import pytest

from minfer_lib import cli
from minfer_lib.bench import speed


def test_bench_prints_a_row_for_each_number_of_threads(run, model, monkeypatch, tmp_path):
    probe = speed.CeilingProbe(1 << 20)
    monkeypatch.setattr(speed, "CeilingProbe", lambda n_bytes: probe)
    monkeypatch.setattr("minfer_lib.cli.bench.cpu_threads", lambda: 3)
    status, out, _ = run("bench", "--model", model, "--tokens", "2", "--json", str(tmp_path / "b.json"))
    assert status == 0 and [line.split()[0] for line in out.splitlines()[2:]] == ["1", "2", "3"]
    written = json.loads((tmp_path / "b.json").read_text())
    assert written["model"] == os.path.basename(model) and [row["threads"] for row in written["decode"]] == [1, 2, 3]
    assert all(row["tokens_per_second"] > 0 for row in written["decode"])
    status, out, _ = run("bench", "--model", model, "--tokens", "2", "--threads", "2")
    assert status == 0 and len(out.splitlines()) == 3


@pytest.mark.parametrize("option", [["--json"], ["--peer", "--table"], ["--peer", "--plot"]])
def test_bench_that_cannot_write_says_so_first(run, model, monkeypatch, tmp_path, option):
    monkeypatch.setattr(speed, "CeilingProbe", None)  # nothing is measured
    file = tmp_path / "no" / "b.svg"
    status, out, err = run("bench", "--model", model, "--tokens", "1", "--threads", "1", *option, str(file))
    assert status == 1 and out == "" and "b.svg" in err and "Traceback" not in err


@pytest.mark.parametrize("option", ["--rounds", "--table", "--plot"])
def test_what_only_the_comparison_takes(run, option):
    status, out, err = run("bench", option, "3")
    assert status == 1 and out == "" and "go with --peer" in err


@pytest.mark.parametrize("two", [["--kernels", "--gpu"], ["--gpu", "--peer"], ["--kernels", "--peer"]])
def test_bench_measures_one_thing(two, capsys):
    with pytest.raises(SystemExit):
        cli.main(["bench", *two])
    assert "not allowed with" in capsys.readouterr().err
