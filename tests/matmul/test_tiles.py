"""Tiles: the bits of one token's dot for every format, with AMX and without, at any shape and number of threads."""

import hashlib
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numba import njit
from random_blocks import random_row

import minfer_lib as mf
from minfer_lib.dot.kernel_key import KernelKey
from minfer_lib.dot.registry import KERNELS
from minfer_lib.matmul import api
from minfer_lib.matmul.panels import fill_panels, panels_bytes
from minfer_lib.matmul.tile_layout import MINS, SUPER, TILE_32, UNSIGNED
from minfer_lib.matmul.tile_sums import SHAPES_32, SHAPES_256
from minfer_lib.matmul.tiles import MULTIPLY, TILES_FROM, scratch_bytes, tiles_at, tiles_for, turn
from minfer_lib.native.address import aligned_bytes
from minfer_lib.quantize.activations import activation_rows
from minfer_lib.simd.amx import tile_release, tile_shapes
from minfer_lib.simd.isa import has_amx
from minfer_lib.simd.step import step

FORMATS = tuple(name for name, row in KERNELS.items() if row.codes)
SETS = (*(["amx"] if has_amx() else []), *(["avx512vnni"] if "avx512vnni" in mf.isas() else []))
needs_tiles = pytest.mark.skipif(not SETS, reason="this CPU has no AVX-512 VNNI")


def matrix(name, n_out, n_in, seed=0):
    """uint8[n_out, row_bytes]: any bytes, with tame scales."""
    return random_row(name, n_out * n_in, np.random.default_rng(seed), largest=0.02).reshape(n_out, -1)


def tokens(n_tokens, n_in, seed=1):
    return np.random.default_rng(seed).standard_normal((n_tokens, n_in)).astype(np.float32)


def blocks_of(name, n_in):
    return n_in // mf.FORMATS[name].block_values


def panels_of(name, a):
    """The panels of a: uint8[n_tokens, a_row_bytes]."""
    block_values = mf.FORMATS[name].block_values
    n_blocks = a.shape[1] // mf.FORMATS[mf.FORMATS[name].activation].block_bytes
    panels = aligned_bytes(panels_bytes(block_values, len(a), n_blocks))
    panels[:] = 0xFF  # NaN where no token is
    fill_panels(block_values, a.ctypes.data, a.shape[1], 0, len(a), n_blocks, panels.ctypes.data)
    return panels


def over_tiles(name, isa, w, a):
    """w: uint8[n_out, row_bytes], a: uint8[n_tokens, a_row_bytes] -> f32[n_tokens, n_out], on this kernel set."""
    n_blocks = w.shape[1] // mf.FORMATS[name].block_bytes
    panels, scratch = panels_of(name, a), aligned_bytes(scratch_bytes(name, n_blocks))
    scratch[:] = 0xFF
    out = np.full((len(a) + 1, len(w)), 7, np.float32)
    tiles_at(
        KernelKey(name, isa), w.ctypes.data, w.shape[1], 0, len(w), panels.ctypes.data, scratch.ctypes.data, len(a),
        n_blocks, out.ctypes.data, len(w),
    )  # fmt: skip
    assert (out[-1] == 7).all(), "written behind the last token"
    return out[:-1]


def one_by_one(name, w, a):
    return np.array([[mf.dot(name, row, token) for row in w] for token in a], np.float32)


def n_ins(name):
    return (32, 96, 160) if mf.FORMATS[name].block_values == 32 else (256, 768)


@needs_tiles
@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("name", FORMATS)
def test_a_token_has_the_bits_of_its_dot(name, isa):
    for n_in in n_ins(name):
        for n_out, n_tokens in ((1, 1), (15, 2), (16, 16), (17, 17), (37, 5), (2, 35)):
            w, x = matrix(name, n_out, n_in, n_out), tokens(n_tokens, n_in)
            a = activation_rows(mf.FORMATS[name].activation, x)
            assert np.array_equal(over_tiles(name, isa, w, a), one_by_one(name, w, a)), f"{n_out} x {n_in}, {n_tokens}"


@needs_tiles
@pytest.mark.parametrize("byte", [0x00, 0x0F, 0x7F, 0x80, 0xF0, 0xFF])
@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("name", FORMATS)
def test_extreme_codes(name, isa, byte):
    """All codes and scales at their ends, under activations of -127 and 127."""
    row, n_in = mf.FORMATS[name], 512
    blocks = np.full(3 * row.row_bytes(n_in), byte, np.uint8).view(row.dtype)
    for field in ("d", "m", "dmin"):
        if field in blocks.dtype.names:
            blocks[field] = 1
    w = blocks.view(np.uint8).reshape(3, -1)
    x = np.array([[127], [-127], [127]], np.float32) * np.ones((3, n_in), np.float32)
    x[2, ::2] = -127
    a = activation_rows(row.activation, x)
    out = over_tiles(name, isa, w, a)
    assert np.array_equal(out, one_by_one(name, w, a))
    if row.block_values == 256:
        return
    exact = mf.dequantize(row.activation, a.reshape(-1)).reshape(3, -1).astype(np.float64) @ mf.dequantize(name, w[0])
    assert np.array_equal(out[:, 0], exact), "every sum is an integer below 2**24 here"


@needs_tiles
@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("name", FORMATS)
def test_scales_that_are_no_numbers(name, isa):
    row = mf.FORMATS[name]
    n_in = 3 * row.block_values
    for field in {"d", "m", "dmin"} & set(row.dtype.names):
        blocks = matrix(name, 5, n_in).view(row.dtype).reshape(5, 3)
        blocks[field][1, 1], blocks[field][2, 0], blocks[field][3, 2] = np.nan, np.inf, -np.inf
        w, a = blocks.view(np.uint8).reshape(5, -1), activation_rows(row.activation, tokens(3, n_in))
        out = over_tiles(name, isa, w, a)
        assert np.array_equal(out, one_by_one(name, w, a), equal_nan=True)
        assert not np.isfinite(out[:, 1:4]).any() and np.isfinite(out[:, [0, 4]]).all()


@pytest.mark.parametrize("name", FORMATS)
def test_matmul_is_the_same_in_any_company(name):
    """On every machine, over tiles or not: any number of tokens and threads, against each token alone."""
    n_in = n_ins(name)[-1]
    w, x = matrix(name, 35, n_in), tokens(130, n_in)
    alone = np.concatenate([mf.matmul(name, w, token[None], 1) for token in x])
    for n_tokens in (2, TILES_FROM - 1, TILES_FROM, 16, 31, 130):
        for threads in (1, 2, 3, 7):
            assert np.array_equal(mf.matmul(name, w, x[:n_tokens], threads), alone[:n_tokens]), (n_tokens, threads)


@needs_tiles
def test_which_way_a_product_goes(monkeypatch):
    calls = []
    monkeypatch.setattr(api, "fill_panels", lambda *args: calls.append(args[4]) or fill_panels(*args))
    w, x = matrix("Q4_0", 8, 64), tokens(20, 64)
    for n_tokens in (1, TILES_FROM - 1, TILES_FROM, 20):
        mf.matmul("Q4_0", w, x[:n_tokens])
    assert calls == [TILES_FROM, 20]
    assert tiles_for("Q4_0").isa == SETS[0] and tiles_for("Q6_K").format == "Q6_K"
    assert tiles_for("F32") is tiles_for("F16") is tiles_for("BF16") is None
    mf.matmul("F16", np.zeros((8, 128), np.uint8), x)
    assert len(calls) == 2


def job_of(block_values, isa):
    """A kernel that computes one tile, tile registers and all."""
    multiply, shapes = MULTIPLY[block_values, isa], {32: SHAPES_32, 256: SHAPES_256}[block_values]

    @njit
    def with_amx(codes, scales, panel, n_blocks, with_min, sums, total):
        tile_shapes(shapes, 0)
        multiply(codes, scales, panel, n_blocks, 16, with_min, sums, total)
        tile_release()

    @njit
    def without(codes, scales, panel, n_blocks, with_min, sums, total):
        multiply(codes, scales, panel, n_blocks, 16, with_min, sums, total)

    return with_amx if isa == "amx" else without


@pytest.mark.parametrize("with_min", [True, False])
@pytest.mark.parametrize("block_values", [32, 256])
def test_stepped_is_compiled(block_values, with_min):
    """A tile of any codes and scales: both kernel sets, on emulated registers and, where it has them, on real ones."""
    rng, n_blocks, name = np.random.default_rng(6), *{32: (5, "Q4_1"), 256: (1, "Q4_K")}[block_values]
    panels = panels_of(name, activation_rows(mf.FORMATS[name].activation, tokens(16, n_blocks * block_values)))
    codes = rng.integers(0, 256, n_blocks * {32: TILE_32, 256: SUPER}[block_values], dtype=np.uint8)
    shifted = codes.copy()
    shifted[: {32: codes.size, 256: MINS}[block_values]] ^= UNSIGNED
    scales, found = rng.uniform(-1, 1, (n_blocks, 2, 16)).astype(np.float32), []
    for isa, given, instruction in (("amx", codes, "tdpbssd"), ("avx512vnni", shifted, "vpdpbusd")):
        job = job_of(block_values, isa)
        totals = np.zeros((2, 1024), np.uint8)
        operands = (given, scales, panels, n_blocks, with_min, np.zeros(4096, np.uint8))
        trace = step(job, *operands, totals[0], isa="avx512vnni")
        assert instruction in {s.instruction for s in trace.steps} and not trace.flagged
        found.append(totals[0])
        if isa in SETS:
            job(*operands, totals[1])
            found.append(totals[1])
    assert found[0].view(np.float32).std() > 0
    assert all(np.array_equal(found[0], other) for other in found)


def test_turning_a_tile():
    rows_, other = np.arange(256, dtype=np.float32).view(np.uint8), np.zeros(1024, np.uint8)
    step(turn, rows_, other)
    assert np.array_equal(rows_.view(np.float32).reshape(16, 16), np.arange(256).reshape(16, 16).T)


PROGRAM = """
    import hashlib, sys
    sys.path[:0] = ["tests/helpers", "tests/matmul"]
    import minfer_lib as mf
    from test_tiles import matrix, tiles_for, tokens
    made = [mf.matmul(name, matrix(name, 20, 256), tokens(18, 256)) for name in ("Q4_1", "Q4_K")]
    print(tiles_for("Q4_0") and tiles_for("Q4_0").isa, *(hashlib.sha256(m.tobytes()).hexdigest()[:8] for m in made))
"""


@needs_tiles
def test_without_amx_the_bits_are_the_same():
    here = [mf.matmul(name, matrix(name, 20, 256), tokens(18, 256)) for name in ("Q4_1", "Q4_K")]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        env=os.environ | {"MINFER_NO_AMX": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    isa, *hashes = done.stdout.split()
    assert isa == "avx512vnni" and hashes == [hashlib.sha256(m.tobytes()).hexdigest()[:8] for m in here]
