"""The kernels' bench measures the kernels that run; how fast they are, no test asks."""

import json

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib import cli
from minfer_lib.bench import dot_kernels
from minfer_lib.bench.dot_kernels import Weights, kernel_speeds, our_rows, prefetch_speeds
from minfer_lib.dot.registry import DOTS
from minfer_lib.formats.table import WEIGHT_FORMATS

SMALL = 1 << 16


@pytest.mark.parametrize("name", ["Q4_1", "F16"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_row_for_each_kernel_set_best_first(name, threads):
    speeds = kernel_speeds(name, threads, n_in=64, rounds=1, n_bytes=SMALL)
    ours = [s for s in speeds if s.isa != "ggml"]
    assert [s.isa for s in ours] == [isa for isa in mf.isas() if (name, isa) in DOTS]
    for s in speeds:
        assert (s.format, s.threads) == (name, threads) and min(s.cache, s.memory, s.ceiling) > 0


@pytest.mark.parametrize("name", dot_kernels.FORMATS_BUILT)
def test_what_is_measured_is_the_matrix_product(name):
    weights = Weights(name, 512, SMALL)
    assert weights.bytes.size == weights.n_rows * weights.row_bytes >= SMALL // 2
    w = weights.bytes.reshape(weights.n_rows, -1)
    right = mf.matmul(name, w, weights.x, 1)
    assert np.isfinite(right).all() and len(np.unique(right)) > weights.n_rows / 2
    our_rows(weights, [isa for isa in mf.isas() if (name, isa) in DOTS][0])(0, weights.n_rows, 2)
    assert np.array_equal(weights.out, right)


@pytest.mark.parametrize("name", [name for name in WEIGHT_FORMATS if mf.FORMATS[name].block_values < 256])
def test_ggmls_dot_is_the_one_it_is_compared_with(name):
    pytest.importorskip("llama_cpp", reason="the peer extra is not installed")
    weights = Weights(name, 512, SMALL)
    dot_kernels.ggml_rows(weights)(0, weights.n_rows, 1)
    right = mf.matmul(name, weights.bytes.reshape(weights.n_rows, -1), weights.x, 1)
    assert np.allclose(weights.out, right, rtol=0.02, atol=0.02 * np.abs(right).max())


def test_prefetch_distances():
    speeds = dict(prefetch_speeds("Q4_0", mf.isas()[0], (0, 4096), n_in=64, n_bytes=SMALL))
    assert list(speeds) == [0, 4096] and min(speeds.values()) > 0


def test_the_command_prints_a_table_and_writes_json(monkeypatch, capsys, tmp_path):
    speed = dot_kernels.KernelSpeed("Q4_0", "avx2", 2, 20.0, 10.0, 40.0)
    monkeypatch.setattr(dot_kernels, "FORMATS_BUILT", ("Q4_0",))
    monkeypatch.setattr(dot_kernels, "kernel_speeds", lambda name, threads: [speed])
    path = tmp_path / "kernels.json"
    assert cli.main(["bench", "--kernels", "--threads", "2", "--json", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["Q4_0", "2", "avx2", "20.0", "10.0", "40.0", "25%"]
    assert json.loads(path.read_text())["kernels"] == [
        {"format": "Q4_0", "isa": "avx2", "threads": 2, "cache": 20.0, "memory": 10.0, "ceiling": 40.0}
    ]
