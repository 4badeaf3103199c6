"""`minfer bench`: its tables, its files, and options that do not go together."""

import json
import os
from pathlib import Path

import pytest

from minfer_lib import cli
from minfer_lib.bench import speed
from minfer_lib.native.cpus import cpus


def test_bench_prints_a_row_for_each_number_of_threads(run, model, monkeypatch, tmp_path):
    probe = speed.CeilingProbe(1 << 20)
    monkeypatch.setattr(speed, "CeilingProbe", lambda n_bytes: probe)
    monkeypatch.setattr("minfer_lib.cli.bench.cpu_threads", lambda: 3)
    status, out, _ = run("bench", "--model", model, "--tokens", "2", "--json", str(tmp_path / "b.json"))
    assert status == 0 and [line.split()[0] for line in out.splitlines()[3:]] == ["1", "2", "3"]
    assert out.splitlines()[0] == f"this machine: {cpus()}"
    written = json.loads((tmp_path / "b.json").read_text())
    assert written["model"] == os.path.basename(model) and [row["threads"] for row in written["decode"]] == [1, 2, 3]
    assert all(row["tokens_per_second"] > 0 for row in written["decode"])
    status, out, _ = run("bench", "--model", model, "--tokens", "2", "--threads", "2")
    assert status == 0 and len(out.splitlines()) == 4


@pytest.mark.parametrize("option", [["--json"], ["--peer", "--table"], ["--peer", "--plot"]])
def test_bench_that_cannot_write_says_so_first(run, model, monkeypatch, tmp_path, option):
    monkeypatch.setattr(speed, "CeilingProbe", None)  # nothing is measured
    file = tmp_path / "no" / "b.svg"
    status, out, err = run("bench", "--model", model, "--tokens", "1", "--threads", "1", *option, str(file))
    assert status == 1 and out == "" and "b.svg" in err and "Traceback" not in err


@pytest.mark.parametrize(
    "options, told",
    [
        (["--rounds", "3"], "--rounds goes with --peer or --load"),
        (["--rounds", "3", "--gpu"], "--rounds goes with --peer or --load"),
        (["--table", "3"], "go with --peer"),
        (["--plot", "3"], "go with --peer"),
        (["--load", "--plot", "3"], "not with --load"),
        (["--load", "--table", "3", "--peer"], "not with --load"),
        (["--load", "--kernels"], "--kernels or --gpu"),
        (["--load", "--gpu"], "--kernels or --gpu"),
        (["--load", "--peer", "Q4_0", "Q4_1"], "one model, not 2"),
    ],
)
def test_what_does_not_go_together(run, options, told):
    status, out, err = run("bench", *options)
    assert status == 1 and out == "" and told in err


@pytest.mark.parametrize(
    "options, threads, rounds, peer",
    [
        ("--load --model MODEL", 3, 5, False),
        ("--load --model MODEL --rounds 2 --threads 1", 1, 2, False),
        ("--load --model MODEL --peer", 3, 5, True),
        ("--load --peer MODEL", 3, 5, True),
    ],
)
def test_load_measures_what_was_asked(run, model, monkeypatch, tmp_path, options, threads, rounds, peer):
    asked = []
    monkeypatch.setattr("minfer_lib.cli.bench.cpu_threads", lambda: 3)
    monkeypatch.setattr(
        "minfer_lib.cli.bench.load_table", lambda *a, **named: asked.append((*a, named)) or {"load": []}
    )
    options = [model if option == "MODEL" else option for option in options.split()]
    status, out, _ = run("bench", *options, "--json", str(tmp_path / "l.json"))
    assert status == 0 and out.splitlines() == [f"this machine: {cpus()}"]
    assert asked == [(Path(model), threads, rounds, {"peer": peer})]
    assert json.loads((tmp_path / "l.json").read_text()) == {"load": []}


def test_help_says_what_is_measured(capsys):
    with pytest.raises(SystemExit):
        cli.main(["bench", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "tokens/s of decode at each number of threads" in told and "beside busy programs" in told


@pytest.mark.parametrize("two", [["--kernels", "--gpu"], ["--gpu", "--peer"], ["--kernels", "--peer"]])
def test_bench_measures_one_thing(two, capsys):
    with pytest.raises(SystemExit):
        cli.main(["bench", *two])
    assert "not allowed with" in capsys.readouterr().err
