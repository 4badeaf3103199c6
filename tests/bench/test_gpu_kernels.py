"""What `minfer bench --gpu` recorded: complete, and as fast as the project says."""

import json
from pathlib import Path

import pytest

from minfer_lib.gpu.geometry import GPUS

REPORT = json.loads((Path(__file__).parents[2] / "data" / "measurements" / "h200.json").read_text(encoding="utf-8"))
SHAPES = [(3584, 18944), (18944, 3584), (152064, 3584)]


def rows(key, **fields):
    return [row for row in REPORT[key] if all(row[name] == value for name, value in fields.items())]


def test_where_it_comes_from():
    assert REPORT["device"] == "NVIDIA H200" and REPORT["multiprocessors"] == 132
    assert {"driver", "versions", "date", "method", "minfer"} <= REPORT.keys()
    assert 4400 <= REPORT["probe"] <= REPORT["data_sheet"] == 4800
    gpu = GPUS["H200"]
    assert (gpu.multiprocessors, gpu.gigabytes_per_second) == (REPORT["multiprocessors"], REPORT["probe"])
    assert gpu.latency == pytest.approx(REPORT["latency_ns"] * 1e-9)


@pytest.mark.parametrize("n_out, n_in", SHAPES)
@pytest.mark.parametrize("name, share", [("Q4_K", 0.6), ("Q5_K", 0.6), ("Q6_K", 0.4)])
def test_beside_reading_alone_and_the_old_kernel(name, share, n_out, n_in):
    old, new = rows("products", format=name, n_out=n_out, n_in=n_in)
    assert (old["kernel"], new["kernel"] in ("pipelined", "staged")) == ("f32", True)
    assert new["gbps_at_once"] >= share * REPORT["probe"]
    assert new["gbps"] >= 1.7 * old["gbps"]


@pytest.mark.parametrize("row", REPORT["llama_cpp"], ids=lambda row: f"{row['format']}-{row['n_out']}x{row['n_in']}")
def test_beside_llama_cpp(row):
    """Both with the quantizer of the activations."""
    new = rows("products", format=row["format"], n_out=row["n_out"], n_in=row["n_in"])[1]
    assert max(new["gbps_overlapping"], new["gbps_with_quantizer"]) >= 1.3 * row["gbps_with_quantizer"]


def test_the_gate_has_no_crossover_on_this_gpu():
    assert {row["format"] for row in REPORT["crossover"]} == {"Q4_K", "Q5_K", "Q6_K"}
    assert {row["gate"] for row in REPORT["crossover"]} == {True, False}
    for row in REPORT["crossover"]:
        assert row["us_mmvq"] < row["us_with_quantizer"] < row["us_f32"]


def test_the_best_launch_is_not_that_of_a_gb10():
    for n_out, n_in in SHAPES:
        launches = rows("launches", n_out=n_out, n_in=n_in)
        best = max(launches, key=lambda row: row["gbps"])
        (seed,) = [row for row in launches if (row["warps"], row["rows"]) == (8, 1)]
        assert best["gbps"] > 1.3 * seed["gbps"]
        assert len(rows("ladder", n_out=n_out, n_in=n_in, format="Q4_K")) >= 8
