"""The kernels on a real GPU, against the CPU's own functions. Skipped, with the reason, where there is none."""

import numpy as np
import pytest
from gpu_cases import ALL, assert_product, decoded, exact_activations, pad, quantized, random_matrix

import minfer_lib as mf
from minfer_lib.gpu import device, geometry
from minfer_lib.gpu.device import Stream, cuda, has_gpu, shared_limit
from minfer_lib.gpu.f32_rows import F32_BLOCKS
from minfer_lib.gpu.geometry import SEED, Launch
from minfer_lib.gpu.matvec import KERNELS, Matrix, MatVec, this_chip
from minfer_lib.gpu.unit import PAD40, PAD48
from minfer_lib.gpu.units import UNITS


def why_not():
    try:
        cuda()
    except mf.MinferError as error:
        return str(error)
    return ""


pytestmark = pytest.mark.skipif(not has_gpu(), reason=why_not())


def matvec(name, w, kernel=None, launch=None, unit=None, chip=None):
    return MatVec(Matrix(name, w, unit and unit.layout), kernel, launch, unit, chip)


MMVQ = tuple(KERNELS) if has_gpu() and shared_limit() else ("mmvq", "pipelined")
LENGTHS = {256: (8448, 16640, 18944), 32: (2176, 8448, 16640, 18944)}
LAUNCHES = [SEED, Launch(4, 1), Launch(4, 4), Launch(4, 8, together=2), Launch(8, 4, together=4)]
STAGED = [Launch(4, 1), Launch(8, 2, together=2), Launch(4, 4, together=4)]


@pytest.mark.parametrize("case", ALL)
def test_integers_are_those_of_the_cpu(case):
    name, unit = ALL[case]
    for n_in in LENGTHS[mf.FORMATS[name].block_values]:
        rng = np.random.default_rng(n_in)
        w, x = random_matrix(name, 9, n_in, rng, exact=True), exact_activations(n_in, rng)
        exact = decoded(name, w) @ x
        assert np.abs(exact).max() < 2**24  # integers that float32 holds, and so, as it turns out, every partial sum
        for kernel in MMVQ if unit.layout is None else ("mmvq", "pipelined"):
            assert np.array_equal(matvec(name, w, kernel, unit=unit)(x), exact), (kernel, n_in)


@pytest.mark.parametrize("case", ALL)
@pytest.mark.parametrize("launch", LAUNCHES, ids=str)
def test_every_number_of_rows(case, launch):
    """Up to two blocks of rows and one more, so that the last block has each number of rows that it can have."""
    name, unit = ALL[case]
    n_in = LENGTHS[mf.FORMATS[name].block_values][0]
    rng = np.random.default_rng(1)
    w, x = random_matrix(name, 2 * launch.rows + 1, n_in, rng), rng.standard_normal(n_in).astype(np.float32)
    for n_out in range(1, len(w) + 1):
        product = matvec(name, w[:n_out], "mmvq", launch, unit)
        out = product(x)
        assert_product(out, name, w[:n_out], quantized(x), product.geometry.steps)
        assert np.array_equal(matvec(name, w[:n_out], "pipelined", launch, unit)(x), out)


@pytest.mark.skipif("staged" not in MMVQ, reason="this GPU has no bulk copies into shared memory (sm_90)")
@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("launch", STAGED, ids=str)
def test_every_number_of_staged_rows(name, launch):
    """Also with rows that begin at no multiple of 16 bytes: 9 and 33 blocks."""
    size = mf.FORMATS[name].block_values
    for n_in in (9 * size, 33 * 256):
        rng = np.random.default_rng(2)
        w, x = random_matrix(name, 2 * launch.rows + 1, n_in, rng), rng.standard_normal(n_in).astype(np.float32)
        for n_out in range(1, len(w) + 1):
            product = matvec(name, w[:n_out], "staged", launch)
            assert_product(product(x), name, w[:n_out], quantized(x), product.geometry.steps)


@pytest.mark.parametrize("name", UNITS)
def test_rows_of_every_length(name):
    for n_in in LENGTHS[mf.FORMATS[name].block_values]:
        rng = np.random.default_rng(n_in)
        w, x = random_matrix(name, 37, n_in, rng), rng.standard_normal(n_in).astype(np.float32)
        for kernel in MMVQ:
            product = matvec(name, w, kernel)
            assert_product(product(x), name, w, quantized(x), product.geometry.steps)


@pytest.mark.parametrize("name", UNITS)
def test_golden_rows(name, golden):
    """Weights that ggml quantized."""
    rows = ("normal", "outliers", "positive", "zeros", "ties", "spike", "constant")
    w = np.stack([golden[f"{row}/q{name[1:]}/bytes"] for row in rows])
    x = golden["normal/a"]
    for kernel in MMVQ:
        product = matvec(name, w, kernel)
        assert_product(product(x), name, w, quantized(x), product.geometry.steps)


@pytest.mark.parametrize("name", F32_BLOCKS)
def test_the_old_kernel(name):
    for n_out, n_in in ((1, 256), (8, 8448), (13, 18944)):
        rng = np.random.default_rng(n_out)
        w, x = random_matrix(name, n_out, n_in, rng), rng.standard_normal(n_in).astype(np.float32)
        assert_product(matvec(name, w, "f32")(x), name, w, x.astype(np.float64), steps=8 * n_in // 32)


@pytest.mark.parametrize("block", [PAD40, PAD48])
def test_the_quantizer_gives_the_bytes_of_the_cpu(block):
    rng = np.random.default_rng(6)
    x = (rng.standard_normal((593, 32)) * 10.0 ** rng.integers(-42, 9, (593, 1))).astype(np.float32)
    x[1], x[3] = 0, np.arange(32) / 2
    x[3, 0] = 127
    w = random_matrix("Q4_0", 1, x.size, rng)
    product = matvec("Q4_0", w, unit=UNITS["Q4_0"]._replace(block=block))
    product.x.copy_to_device(x.ravel())
    product.quantize(0)
    assert np.array_equal(product.activations.copy_to_host(), pad(x.ravel(), block))


def test_kernels_compile_for_gpus_before_hopper(monkeypatch):
    """The same bits without the instructions of sm_90. Run here, they do not prove that an older GPU takes the rest."""
    rng = np.random.default_rng(13)
    w, x = random_matrix("Q4_K", 9, 2048, rng), rng.standard_normal(2048).astype(np.float32)
    expected = matvec("Q4_K", w, "pipelined")(x)
    device.compiled.cache_clear()
    monkeypatch.setattr(device, "is_hopper", lambda: False)
    product = matvec("Q4_K", w, chip="H200")
    assert product.kernel == "pipelined"
    assert np.array_equal(product(x), expected)
    with pytest.raises(mf.ArgumentError, match="shared memory"):
        matvec("Q4_K", w, "staged")
    device.compiled.cache_clear()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_activation_makes_no_number(bad):
    x = np.ones(512, np.float32)
    x[300] = bad
    w = random_matrix("Q4_K", 4, 512, np.random.default_rng(7))
    assert not np.isfinite(matvec("Q4_K", w, "mmvq")(x)).any()


@pytest.mark.parametrize(
    "name, n_out, n_in, kernel",
    [
        ("Q4_K", 64, 2048, "mmvq"),
        ("Q4_K", 64, 1792, "f32"),
        ("Q5_K", 6750, 3584, "mmvq"),
        ("Q5_K", 6400, 3584, "f32"),
        ("Q6_K", 6750, 3584, "mmvq"),
        ("Q6_K", 512, 3584, "f32"),
        ("Q4_0", 1, 32, "mmvq"),
    ],
)
def test_the_gate_decides_which_kernel_runs(name, n_out, n_in, kernel):
    """The same bits as the kernel called directly; and not those of the other, which takes other activations."""
    rng = np.random.default_rng(8)
    w = np.tile(random_matrix(name, min(n_out, 64), n_in, rng), (-(-n_out // 64), 1))[:n_out]
    x = rng.standard_normal(n_in).astype(np.float32)
    gated = matvec(name, w, chip="GB10")
    assert (gated.kernel == "f32") == (kernel == "f32")
    out = gated(x)
    assert np.array_equal(out, matvec(name, w, gated.kernel)(x))
    if name in F32_BLOCKS:
        other = matvec(name, w, "f32" if kernel == "mmvq" else "mmvq")
        assert not np.array_equal(out, other(x))


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("kernel", MMVQ[1:])
@pytest.mark.parametrize("name", ["Q4_0", "Q5_K", "Q6_K"])  # one for each function that loads activations
def test_a_graph_gives_the_same_bits(name, kernel, overlap):
    """Two products, the second of which reads what the first one writes.

    x is another one in each replay, and what is written between x and the end is NaN before it: a kernel that reads it
    before it is written, or what lay there in an earlier replay, gives other bits.
    """
    rng = np.random.default_rng(11)
    w, inputs = random_matrix(name, 2048, 2048, rng), rng.standard_normal((20, 2048)).astype(np.float32)
    product, back = matvec(name, w, kernel), matvec(name, w, kernel)
    back.x = product.out
    expected = [(once := product(x), back(once)) for x in inputs]

    def chain(numba_stream):
        product.enqueue(numba_stream)
        back.enqueue(numba_stream)

    replay = Stream().graph(chain, overlap)
    for x, (once, twice) in zip(inputs, expected, strict=True):
        for written in (product.activations, product.out, back.activations, back.out):
            written.copy_to_device(np.full(written.size * written.dtype.itemsize, 0xFF, np.uint8).view(written.dtype))
        product.x.copy_to_device(x)
        cuda().synchronize()
        assert replay() > 0
        assert np.isfinite(twice).all()
        assert np.array_equal(product.out.copy_to_host(), once)
        assert np.array_equal(back.out.copy_to_host(), twice)


def test_the_gate_is_open_where_mmvq_always_won():
    w = random_matrix("Q6_K", 4, 512, np.random.default_rng(12))
    assert matvec("Q6_K", w, chip="H200").kernel in MMVQ
    assert matvec("Q6_K", w).kernel == matvec("Q6_K", w, chip=this_chip()).kernel


def test_the_switch_closes_the_gate(monkeypatch):
    monkeypatch.setattr(geometry, "SWITCHES", frozenset({"MINFER_NO_KQ_MMVQ"}))
    rng = np.random.default_rng(9)
    w, x = random_matrix("Q4_K", 8, 4096, rng), rng.standard_normal(4096).astype(np.float32)
    product = matvec("Q4_K", w)
    assert product.kernel == "f32"
    assert np.array_equal(product(x), matvec("Q4_K", w, "f32")(x))


def test_what_it_refuses():
    good = random_matrix("Q4_K", 2, 512, np.random.default_rng(10))
    with pytest.raises(mf.UnsupportedError, match="Q2_K"):
        matvec("Q2_K", np.zeros((1, 84), np.uint8))
    with pytest.raises(mf.ArgumentError, match="144-byte blocks"):
        matvec("Q4_K", np.zeros((1, 2176 * 144 // 256), np.uint8))
    with pytest.raises(mf.ArgumentError, match="float32"):
        matvec("Q4_K", good.astype(np.float32))
    with pytest.raises(mf.ArgumentError, match="512"):
        matvec("Q4_K", good)(np.zeros(256, np.float32))
    with pytest.raises(mf.ArgumentError, match="f32 kernel"):
        matvec("Q4_0", np.zeros((1, 18), np.uint8), "f32")
