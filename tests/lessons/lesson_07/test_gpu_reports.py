"""The reports of measurements on GPUs: found, and plausible."""

import json

import pytest

from minfer_lib.errors import UnsupportedError
from minfer_lib.lessons import measurements, rows_of


def test_rows_are_found_by_their_fields():
    rows = [{"format": "Q4_K", "n_out": 1}, {"format": "Q4_K", "n_out": 2}, {"format": "Q6_K", "n_out": 1}]
    assert rows_of(rows, format="Q4_K", n_out=2) == rows[1:2] and rows_of(rows, n_out=3) == []


def test_reports_are_found_by_the_gpu(tmp_path, monkeypatch):
    monkeypatch.setitem(measurements.__globals__, "FOLDER", tmp_path)
    with pytest.raises(UnsupportedError, match="come with the repository"):
        measurements()
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"device": f"GPU {name}", "probe": 1.0}))
    assert list(measurements()) == ["GPU one", "GPU two"]


def test_the_recorded_reports_have_what_the_lesson_draws():
    for report in measurements().values():
        assert report["probe"] > 0 and report["latency_ns"] > 0
        for key in ("ladder", "launches"):
            assert all(0 < row["gbps"] <= 1.02 * report["probe"] for row in report[key]), "nothing beats the roof"
        assert all(row["us_f32"] > 0 and row["us_with_quantizer"] > 0 for row in report["crossover"])
