"""Grids, blocks, warps and units; the launch tables; the shape gate."""

from collections import Counter

import pytest

import minfer_lib as mf
from minfer_lib.gpu import geometry
from minfer_lib.gpu.geometry import GPUS, OLD, SEED, Geometry, Launch, use_mmvq
from minfer_lib.gpu.launch_tables import GENERATIONS, llama_launch

LAUNCHES = [OLD, SEED, Launch(4, 4), Launch(4, 2), Launch(4, 8, together=2), Launch(8, 4, together=4), Launch(2, 8)]


def test_the_threads_of_seed_3():
    """7B ffn_down: 28 672 threads of the old kernel, 917 504 of MMVQ, 32 times as many."""
    old, new = Geometry(3584, 18944, OLD, unit_values=256), Geometry(3584, 18944, SEED)
    assert (old.blocks, old.threads) == (448, 28_672)
    assert (new.blocks, new.threads) == (3584, 917_504)
    assert new.threads == 32 * old.threads
    assert (old.units, new.units) == (74, 592)


def test_idle_lanes_depend_on_the_length_of_a_row():
    """Erratum of seed 3: it is n_in, not n_out, that leaves threads without a unit."""
    for n_out in (512, 3584, 152064):
        assert Geometry(n_out, 3584, SEED).idle_threads == 256 - 112
    assert Geometry(512, 18944, SEED).idle_threads == 0
    assert Geometry(3584, 3584, Launch(4, 4)).utilization == 112 / 128
    assert Geometry(4, 1024, Launch(1, 1)).utilization == 1
    assert Geometry(3, 1024, Launch(4, 4)).utilization == 3 / 4


@pytest.mark.parametrize("launch", LAUNCHES, ids=str)
@pytest.mark.parametrize("n_out, n_in", [(1, 32), (7, 3584), (16, 352), (33, 8448)])
def test_each_unit_has_one_thread(launch, n_out, n_in):
    g = Geometry(n_out, n_in, launch)
    done = Counter()
    for block in range(g.blocks):
        for thread in range(launch.threads):
            place = g.place(block, thread)
            assert len(place.units) <= g.steps and 32 * place.warp + place.lane == thread
            for row in place.rows:
                for unit in place.units:
                    done[row, unit] += 1
                    assert g.owner(row, unit) == (block, thread)
    assert done == Counter({(row, unit): 1 for row in range(n_out) for unit in range(g.units)})
    offered = g.blocks * launch.rows * launch.row_threads * g.steps
    assert g.utilization == sum(done.values()) / offered


def test_littles_law():
    gpu = GPUS["GB10"]
    old, new = Geometry(3584, 18944, OLD, unit_values=256), Geometry(3584, 18944, SEED)
    assert gpu.bytes_in_flight == pytest.approx(252.7e9 * gpu.latency)
    assert gpu.resident_threads == 48 * 1536 < new.threads
    # 4 bytes a thread: the old kernel's threads are too few for that, as were 116 GB/s of 252.7
    assert gpu.attainable(old, 4) < 0.6 * 252.7 < gpu.attainable(new, 4)
    assert gpu.attainable(new, 16) == 252.7


@pytest.mark.parametrize(
    "generation, name, n_in, launch",
    [
        ("generic", "Q4_K", 3584, Launch(4, 1)),
        ("generic", "Q4_K", 1792, Launch(4, 4, together=4)),  # short rows
        ("generic", "Q4_K", 2048, Launch(4, 1)),
        ("generic", "Q6_K", 1024, Launch(4, 1)),
        ("generic", "Q6_K", 768, Launch(4, 4, together=4)),
        ("generic", "Q8_0", 992, Launch(4, 4, together=4)),
        ("turing", "Q4_K", 3584, Launch(2, 1)),
        ("turing", "Q4_0", 3584, Launch(4, 1)),
        ("gb10", "Q4_K", 18944, Launch(8, 1)),
        ("gb10", "Q4_K", 3584, Launch(8, 1)),
        ("gb10", "Q4_K", 2304, Launch(8, 1)),
        ("gb10", "Q4_K", 4352, Launch(4, 1)),  # three steps of four warps, two of eight: a quarter idle
        ("gb10", "Q3_K", 18944, Launch(4, 1)),
        ("gcn", "Q4_K", 18944, Launch(2, 1)),
        ("rdna2", "Q4_K", 1024, Launch(1, 1)),
        ("rdna3", "Q6_K", 18944, Launch(2, 1)),
        ("rdna4", "Q4_K", 18944, Launch(8, 1)),
        ("rdna4", "Q3_K", 18944, Launch(1, 1)),
    ],
)
def test_llama_cpp_launches(generation, name, n_in, launch):
    assert llama_launch(generation, name, n_in) == launch


def test_every_table_has_every_format():
    for generation in GENERATIONS:
        for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"):
            assert Geometry(64, 8192, llama_launch(generation, name, 8192)).threads > 0


def test_the_gate(monkeypatch):
    """Q4_K by the length of a row; Q5_K and Q6_K by the number of weights; others always."""
    assert use_mmvq("Q4_K", 1, 2048) and not use_mmvq("Q4_K", 10**6, 1792)
    assert use_mmvq("Q5_K", 6697, 3584) and not use_mmvq("Q5_K", 6696, 3584)  # 24 002 048, 23 998 464
    assert use_mmvq("Q6_K", 18944, 3584) and not use_mmvq("Q6_K", 512, 3584)
    assert use_mmvq("Q4_0", 1, 32)
    assert use_mmvq("Q6_K", 512, 3584, chip="H200") and not use_mmvq("Q6_K", 512, 3584, chip="RTX 4090")
    monkeypatch.setattr(geometry, "SWITCHES", frozenset({"MINFER_NO_KQ_MMVQ"}))
    assert not use_mmvq("Q4_K", 18944, 3584) and not use_mmvq("Q6_K", 18944, 3584, "H200") and use_mmvq("Q8_0", 1, 32)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Launch(0, 1),
        lambda: Launch(33, 1),
        lambda: Launch(4, 4, together=3),
        lambda: Launch(4, 3, together=2),
        lambda: Launch(4, 6),
        lambda: Geometry(0, 32, SEED),
        lambda: Geometry(1, 33, SEED),
        lambda: Geometry(1, 2176, OLD, unit_values=256),
        lambda: Geometry(4, 32, SEED).place(4, 0),
        lambda: Geometry(4, 32, SEED).place(0, 256),
        lambda: Geometry(4, 32, SEED).owner(0, 1),
        lambda: llama_launch("hopper", "Q4_K", 4096),
        lambda: llama_launch("generic", "F16", 4096),
        lambda: llama_launch("generic", "Q4_K", 2176),
    ],
)
def test_what_it_refuses(wrong):
    with pytest.raises(mf.ArgumentError):
        wrong()
