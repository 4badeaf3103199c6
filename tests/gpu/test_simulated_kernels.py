"""Kernels on simulated warps give the bits of a plain NumPy model, and take the units that the geometry says."""

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.formats.packing import unpack, unpack_scales_mins
from minfer_lib.gpu.device import SPARE_BYTES
from minfer_lib.gpu.f32_rows import f32_rows, q4_k_block
from minfer_lib.gpu.geometry import OLD, Geometry, Launch
from minfer_lib.gpu.mmvq import mmvq
from minfer_lib.gpu.q4_k_steps import SEED
from minfer_lib.gpu.quantizer import quantizer
from minfer_lib.gpu.reading import probe
from minfer_lib.gpu.unit import PAD40, PAD48
from minfer_lib.gpu.units import UNITS
from minfer_lib.gpu.warp_sim import simulate

RANDOM = np.random.default_rng(7)


def matrix(name, n_out, n_in):
    return mf.quantize(name, RANDOM.normal(0, 1, n_out * n_in).astype(np.float32)).reshape(n_out, -1)


def activations(n_in, block=PAD40):
    """x in blocks of 32, made by the simulated quantizer."""
    x, n = RANDOM.normal(0, 1, n_in).astype(np.float32), n_in // 32
    out = np.zeros(n * block.block_bytes, np.uint8)
    simulate(quantizer(block), -(-n // 4), 128, (x, out, n))
    return x, out


def run(unit, launch, w, x):
    n_out, n_units = len(w), x.size // unit.block.block_bytes
    out = np.full(n_out, np.nan, np.float32)
    grid = -(-n_out // launch.rows)
    padded = np.concatenate([w.ravel(), np.zeros(SPARE_BYTES, np.uint8)])
    arguments = (padded, x, out, n_out, n_units, w.shape[1])
    return out, simulate(mmvq(unit, launch), grid, launch.threads, arguments)


def seed_units(row, x):
    """f32[n_units]: what seed 3's loop adds for each sub-block, in plain NumPy, one operation at a time."""
    blocks, a = row.view(mf.FORMATS["Q4_K"].dtype), x.view(mf.FORMATS["Q8_0_PAD40"].dtype)
    codes = unpack(blocks["qs"], 32, 4).reshape(-1, 32).astype(np.int32)
    scales, mins = (s.astype(np.float32).ravel() for s in unpack_scales_mins(blocks["scales"]))
    d, dmin = (np.repeat(blocks[field].astype(np.float32), 8) for field in ("d", "dmin"))
    qs = a["qs"].astype(np.int32)
    dot, total = (codes * qs).sum(1).astype(np.float32), qs.sum(1).astype(np.float32)
    return a["d"].astype(np.float32) * (scales * d * dot - mins * dmin * total)


def in_the_kernels_order(units, launch):
    """float32: each thread its units one by one; 32 lanes as a tree; the row's warps one after the other."""
    total = np.float32(0)
    for warp in range(launch.row_warps):
        lanes = np.zeros(32, np.float32)
        for lane in range(32):
            for u in range(32 * warp + lane, len(units), launch.row_threads):
                lanes[lane] += units[u]
        for by in (16, 8, 4, 2, 1):
            lanes[:by] += lanes[by : 2 * by]
        total += lanes[0]
    return total


@pytest.mark.parametrize(
    "n_out, n_in, launch",
    [
        (2, 3584, Launch(8, 1)),  # 112 units: 144 of 256 threads idle
        (3, 256, Launch(8, 1)),  # 8 units: seven warps have none
        (5, 1280, Launch(4, 4)),  # 40 units, a warp a row; the last block has one row of four
        (1, 8448, Launch(8, 1)),  # 264 units: eight threads take two
        (3, 768, Launch(2, 4, 2)),
        (6, 512, Launch(1, 4, 4)),  # the last block: two rows of four
    ],
    ids=str,
)
def test_the_seeds_kernel_gives_the_bits_of_a_model_without_warps(n_out, n_in, launch):
    w, (_, x) = matrix("Q4_K", n_out, n_in), activations(n_in)
    out, _ = run(SEED, launch, w, x)
    model = [in_the_kernels_order(seed_units(row, x), launch) for row in w]
    assert out.tobytes() == np.array(model, np.float32).tobytes()


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("launch", [Launch(8, 1), Launch(4, 4), Launch(1, 2, 2)], ids=str)
def test_every_format_is_near_the_exact_product(name, launch):
    n_out, n_in = 3, 768
    w, (x, blocks) = matrix(name, n_out, n_in), activations(n_in, PAD48)
    out, _ = run(UNITS[name], launch, w, blocks)
    weights = mf.dequantize(name, w).reshape(n_out, n_in).astype(np.float64)
    rounded = mf.dequantize("Q8_0_PAD40", mf.quantize_activations("Q8_0_PAD40", x)).astype(np.float64)
    exact = weights @ rounded
    row = mf.FORMATS[name]
    block = w.view(row.dtype)
    most = np.abs(weights).max() + np.abs(block["dmin"] if "dmin" in block.dtype.names else 0).max() * 63
    bound = 40 * 2.0**-24 * n_in * most * np.abs(rounded).max()  # at most 40 roundings of what is no larger than that
    assert np.abs(out - exact).max() < bound


def test_the_old_kernel_walks_whole_blocks():
    n_out, n_in = 9, 512
    w, x = matrix("Q4_K", n_out, n_in), RANDOM.normal(0, 1, n_in).astype(np.float32)
    out = np.full(n_out, np.nan, np.float32)
    trace = simulate(f32_rows(q4_k_block, 144, OLD), 2, 64, (w.ravel(), x, out, n_out, n_in // 256, w.shape[1]))
    exact = mf.dequantize("Q4_K", w).reshape(n_out, n_in).astype(np.float64) @ x
    assert np.abs(out - exact).max() < 1e-4
    loads = [s.accesses[0] for s in trace.of(0) if s.accesses and s.accesses[0].array == "w"]
    assert all(a.active.sum() == 2 for a in loads), "two super-blocks a row: two lanes work, thirty are idle"


def test_the_quantizer_writes_the_librarys_bytes():
    x, out = activations(32 * 9)
    assert out.tobytes() == mf.quantize_activations("Q8_0_PAD40", x).tobytes()


def test_the_probe_reads_every_byte():
    w, out = RANDOM.integers(0, 256, 16 * 3001).astype(np.uint8), np.zeros(1, np.uint32)
    trace = simulate(probe, 2, 256, (w, out, 3001))
    read = {int(at) + i for s in trace.steps for a in s.accesses for at in a.addresses[a.active] for i in range(16)}
    assert len(read) == w.size
    full = [a for s in trace.steps for a in s.accesses if a.active.all()]
    assert {(a.used, a.sectors) for a in full} == {(512, 16)}, "32 lanes side by side"


@pytest.mark.parametrize("n_out, n_in, launch", [(3, 3584, Launch(8, 1)), (5, 768, Launch(4, 4))], ids=str)
def test_lanes_take_the_units_that_geometry_says(n_out, n_in, launch):
    geometry = Geometry(n_out, n_in, launch)
    w, (_, x) = matrix("Q4_K", n_out, n_in), activations(n_in)
    _, trace = run(SEED, launch, w, x)
    for block in range(geometry.blocks):
        for warp in range(launch.warps):
            taken = [s.changed["u < n_units"] for s in trace.of(warp, block) if "u < n_units" in s.changed]
            for lane in range(32):
                place = geometry.place(block, 32 * warp + lane)
                units = place.units or geometry.place(block, 32 * (warp % launch.row_warps) + lane).units
                assert sum(bool(t[lane]) for t in taken) == len(units)  # rows beyond the matrix repeat the last one
