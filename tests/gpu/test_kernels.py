"""The kernels' own source on the lock-step simulator: no GPU is needed, and the numbers are those of the CPU."""

import numpy as np
import pytest
from gpu_cases import ALL, assert_product, decoded, exact_activations, pad, quantized, random_matrix

import minfer_lib as mf
from minfer_lib.gpu.f32_rows import F32_BLOCKS, f32_rows
from minfer_lib.gpu.geometry import OLD, SEED, Geometry, Launch
from minfer_lib.gpu.mmvq import mmvq, mmvq_pipelined
from minfer_lib.gpu.mmvq_staged import mmvq_staged, staged_bytes
from minfer_lib.gpu.quantizer import QUANTIZER_WARPS, quantizer
from minfer_lib.gpu.reading import PROBE_THREADS, probe
from minfer_lib.gpu.unit import PAD40, PAD48
from minfer_lib.gpu.units import UNITS
from minfer_lib.gpu.units_k import q6_k_planes
from minfer_lib.gpu.warp_sim import simulate

LAUNCHES = [SEED, Launch(2, 2), Launch(2, 1), Launch(2, 2, together=2), Launch(1, 4, together=4)]


@pytest.mark.parametrize("case", ALL)
def test_activations_are_read_coherently(case):
    """They are written while the kernel that reads them may be running, and `.nc` loads are for what stays constant."""
    used = set(ALL[case][1].activations.__code__.co_names)
    assert any(name.startswith("coherent") for name in used)
    assert not any(name.startswith(("load", "stream")) for name in used)


def product(unit, launch, w, x, kernel=mmvq):
    """What mmvq stores, on simulated warps."""
    laid = unit.layout(w) if unit.layout else w
    out = np.full(len(w), np.nan, np.float32)
    n_units = x.size // 32
    geometry = Geometry(len(w), x.size, launch)
    matrix = np.concatenate([laid.ravel(), np.zeros(16, np.uint8)])
    arguments = (matrix, pad(x, unit.block), out, np.int32(len(w)), np.int32(n_units), np.int32(laid.shape[1]))
    shared = staged_bytes(launch, laid.shape[1]) if kernel is mmvq_staged else 0
    simulate(
        kernel(unit, launch), grid=geometry.blocks, threads=launch.threads, arguments=arguments, shared_bytes=shared
    )
    return out, geometry


@pytest.mark.parametrize("case", ALL)
def test_mmvq_gives_the_integers_of_the_cpu(case):
    """With super-scales of 1 and -1 no float is rounded, so any order of summing gives the same number."""
    name, unit = ALL[case]
    rng = np.random.default_rng(1)
    w, x = random_matrix(name, 3, 512, rng, exact=True), exact_activations(512, rng)
    out, _ = product(unit, Launch(1, 2, together=2), w, x)
    assert np.array_equal(out, decoded(name, w) @ x)


@pytest.mark.parametrize("launch", LAUNCHES, ids=str)
@pytest.mark.parametrize("case", ["Q4_0", "Q4_K", "Q6_K"])
def test_mmvq_is_right_at_every_launch(case, launch):
    """Five rows: not a multiple of any block's rows but one."""
    name, unit = ALL[case]
    rng = np.random.default_rng(2)
    w, x = random_matrix(name, 5, 768, rng), rng.standard_normal(768).astype(np.float32)
    out, geometry = product(unit, launch, w, x)
    assert_product(out, name, w, quantized(x), geometry.steps)
    pipelined, _ = product(unit, launch, w, x, mmvq_pipelined)
    assert np.array_equal(pipelined, out)


@pytest.mark.parametrize("launch", [Launch(2, 1), Launch(1, 2, together=2), Launch(2, 4, together=4)], ids=str)
@pytest.mark.parametrize("name", UNITS)
def test_staged_rows_begin_anywhere(name, launch):
    """Nine blocks a row: rows begin at no multiple of 16 bytes in most formats, and five rows are no whole blocks."""
    rng = np.random.default_rng(6)
    n_in = 9 * mf.FORMATS[name].block_values
    w, x = random_matrix(name, 5, n_in, rng), rng.standard_normal(n_in).astype(np.float32)
    out, geometry = product(UNITS[name], launch, w, x, mmvq_staged)
    assert_product(out, name, w, quantized(x), geometry.steps)


@pytest.mark.parametrize("name", F32_BLOCKS)
def test_the_old_kernel_is_right(name):
    rng = np.random.default_rng(3)
    w, x = random_matrix(name, 3, 512, rng), rng.standard_normal(512).astype(np.float32)
    out = np.full(3, np.nan, np.float32)
    kernel = f32_rows(F32_BLOCKS[name], mf.FORMATS[name].block_bytes, OLD)
    arguments = (w.ravel(), x, out, np.int32(3), np.int32(2), np.int32(w.shape[1]))
    simulate(kernel, grid=1, threads=OLD.threads, arguments=arguments)
    assert_product(out, name, w, x.astype(np.float64), steps=256)


@pytest.mark.parametrize("block", [PAD40, PAD48])
def test_the_quantizer_gives_the_bytes_of_the_cpu(block):
    """Ordinary blocks, zeros, a tiny one, ties, and a scale that overflows f16."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((6, 32)).astype(np.float32)
    x[1], x[2], x[3] = 0, 1e-40, np.arange(32) / 2
    x[3, 0], x[4, 5] = 127, 1e9
    out = np.zeros(6 * block.block_bytes, np.uint8)
    simulate(quantizer(block), grid=2, threads=32 * QUANTIZER_WARPS, arguments=(x.ravel(), out, np.int32(6)))
    assert np.array_equal(out, pad(x.ravel(), block))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_bad_activation_is_not_hidden(bad):
    x = np.ones(32, np.float32)
    x[7] = bad
    out = np.zeros(48, np.uint8)
    simulate(quantizer(PAD48), grid=1, threads=32 * QUANTIZER_WARPS, arguments=(x, out, np.int32(1)))
    assert not np.isfinite(out[:2].view(np.float16))


def test_the_probe_reads_every_byte():
    w = np.zeros(16 * 1500, np.uint8)
    out = np.zeros(1, np.uint32)
    trace = simulate(probe, grid=1, threads=PROBE_THREADS, arguments=(w, out, np.int32(1500)))
    assert sum(access.active.sum() * access.n_bytes for s in trace.steps for access in s.accesses) == w.size
    for at in (0, 12_000, w.size - 4):  # one word is the number that it looks for, so the xor of all is
        w[at : at + 4] = np.frombuffer(np.uint32(0x12345677).tobytes(), np.uint8)
        simulate(probe, grid=1, threads=PROBE_THREADS, arguments=(w, out, np.int32(1500)))
        assert out[0] == 0x12345677
        w[:], out[:] = 0, 0


def test_planes_hold_the_same_bytes():
    rng = np.random.default_rng(5)
    w = random_matrix("Q6_K", 3, 5 * 256, rng)
    planes = q6_k_planes(w)
    assert planes.shape == (3, 1056) and not planes[:, 1050:].any()
    for row, laid in zip(w, planes, strict=True):
        assert sorted(row) == sorted(laid[:1050])
