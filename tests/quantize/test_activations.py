"""The run-time quantizer: the bytes of ggml's x86 path, on every CPU, for every input that a model can meet."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import minfer_lib as mf
from minfer_lib.quantize.activations import activation_rows, quantize_rows_q8_0, quantize_rows_q8_k
from minfer_lib.quantize.activations_simd import quantize_rows_q8_0_avx2, quantize_rows_q8_k_avx2
from minfer_lib.simd.step import step

ROWS = ("normal", "outliers", "positive", "ties", "spike", "tiny", "large", "constant")
FLOATS = st.floats(-(2.0**100), 2.0**100, width=32)


def q8_0(x):
    """(scales f16[n_blocks], codes int8[n_blocks, 32])"""
    blocks = mf.quantize_activations("Q8_0", np.asarray(x, np.float32)).reshape(-1, 34)
    return blocks[:, :2].copy().view("<f2")[:, 0], blocks[:, 2:].view(np.int8)


@pytest.mark.parametrize("row", ROWS)
def test_q8_0_bytes_are_ggmls(golden, row):
    assert np.array_equal(mf.quantize_activations("Q8_0", golden[f"{row}/a"]), golden[f"{row}/act_simd/q8_0"])


def test_q8_0_rounds_half_to_even(golden):
    """With 127 in the block the scale is 1. Halves go to the even neighbour; ggml's reference rounds away from 0."""
    x = np.zeros(32, np.float32)
    x[:8] = 127, 0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5
    d, codes = q8_0(x)
    assert d.tolist() == [1] and codes[0, :8].tolist() == [127, 0, 2, 2, 4, 0, -2, -2]
    assert not np.array_equal(golden["ties/act/q8_0"], golden["ties/act_simd/q8_0"]), "the golden row tells them apart"


def test_q8_0_multiplies_by_127_over_amax():
    """1 / (amax / 127) is another float32 for one amax in four, and moves a code here and there."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((4000, 32)).astype(np.float32)
    amax = np.abs(x).max(axis=1, keepdims=True)
    ours = q8_0(x.reshape(-1))[1]
    assert np.array_equal(ours, np.rint(x * (np.float32(127) / amax)).astype(np.int8))


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-40, -1e-40, 1e-45, 1e-38, 3e-37, 3.8e-37])
def test_q8_0_of_almost_nothing_is_nothing(value):
    """127 / amax is infinite from 3.7e-37 down. The scale is zero there anyway; the codes must stay sane."""
    d, codes = q8_0(np.full(64, value, np.float32))
    assert d.tolist() == [0, 0] and np.abs(codes.astype(int)).max() <= 127
    if abs(value) < 3.7e-37:
        assert not codes.any()


def test_q8_0_scale_beyond_f16_is_infinite_and_the_codes_are_right():
    x = np.linspace(-1e10, 1e10, 32, dtype=np.float32)
    d, codes = q8_0(x)
    assert d.tolist() == [np.inf]
    assert np.array_equal(codes[0], np.rint(x * (np.float32(127) / np.float32(1e10))).astype(np.int8))
    d, _ = q8_0(np.full(32, 65504 * 127, np.float32))
    assert d.tolist() == [65504]
    assert q8_0(np.full(32, np.finfo(np.float32).max))[1].tolist() == [[127] * 32]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 31, 32, 95])
def test_nan_and_infinity_are_refused_wherever_they_are(bad, at):
    x = np.ones(96, np.float32)
    x[at] = bad
    with pytest.raises(mf.ArgumentError, match="NaN or infinity"):
        mf.quantize_activations("Q8_0", x)
    with pytest.raises(mf.ArgumentError, match="NaN or infinity"):
        activation_rows("Q8_0", np.stack([np.ones(96, np.float32), x, np.ones(96, np.float32)]))


@given(arrays(np.float32, st.sampled_from([32, 96]), elements=FLOATS))
@example(np.linspace(-1, 1, 32, dtype=np.float32))
def test_q8_0_never_writes_minus_128_and_is_off_by_half_a_step(x):
    d, codes = q8_0(x)
    assert codes.min() >= -127
    step = np.abs(x.reshape(-1, 32)).max(axis=1, keepdims=True).astype(np.float64) / 127
    assert (np.abs(codes * step - x.reshape(-1, 32)) <= 0.5001 * step + 1e-36).all()
    with np.errstate(over="ignore"):
        assert np.array_equal(d, step[:, 0].astype(np.float32).astype(np.float16)) or np.allclose(
            d, step[:, 0], rtol=1e-3
        )


@given(arrays(np.float32, 64, elements=FLOATS))
def test_q8_0_is_odd(x):
    """-x has the same scale and the opposite codes."""
    (d, codes), (d_of_minus, codes_of_minus) = q8_0(x), q8_0(-x)
    assert np.array_equal(d, d_of_minus) and np.array_equal(codes, -codes_of_minus)


@pytest.mark.parametrize(
    ("name", "scalar", "registers"),
    [("Q8_0", quantize_rows_q8_0, quantize_rows_q8_0_avx2), ("Q8_K", quantize_rows_q8_k, quantize_rows_q8_k_avx2)],
)
def test_registers_write_the_bytes_of_the_scalar_quantizer(golden, name, scalar, registers):
    """Stepped on every machine, compiled where the engine uses it; NaN and infinity are found wherever they are."""
    rng = np.random.default_rng(5)
    n = 2 * mf.FORMATS[name].block_values
    rows = [rng.standard_normal(n) * 10.0**e for e in range(-40, 40, 8)] + [np.zeros(n), np.full(n, 1e-45)]
    rows += [golden[f"{row}/a"][:n] for row in ROWS]
    x = np.array(rows, np.float32)
    made, stepped = (np.empty((len(x), mf.FORMATS[name].row_bytes(n)), np.uint8) for _ in range(2))
    assert scalar(x, made)
    with np.errstate(all="ignore"):
        assert step(registers, x, stepped).result
    assert np.array_equal(made, stepped) and np.array_equal(made, activation_rows(name, x))
    for at, bad in ((0, np.nan), (n - 1, np.inf), (n // 2 + 3, -np.inf)):
        broken = x[:1].copy()
        broken[0, at] = bad
        with np.errstate(all="ignore"):
            assert not step(registers, broken, stepped[:1]).result
        with pytest.raises(mf.ArgumentError, match="NaN or infinity"):
            activation_rows(name, broken)


def test_rows_are_quantized_each_on_its_own():
    x = np.random.default_rng(0).standard_normal((5, 96)).astype(np.float32) * np.float32(
        [[1], [100], [0], [1e-3], [7]]
    )
    rows = activation_rows("Q8_0", x)
    assert rows.shape == (5, 102)
    for row, values in zip(rows, x, strict=True):
        assert np.array_equal(row, mf.quantize_activations("Q8_0", values))


def test_without_a_format_the_rows_are_their_own_bytes():
    x = np.random.default_rng(0).standard_normal((2, 5)).astype(np.float32)
    assert activation_rows(None, x).tobytes() == x.tobytes()


def test_strided_and_wider_input():
    x = np.random.default_rng(0).standard_normal(128)
    right = mf.quantize_activations("Q8_0", x[::2].astype(np.float32))
    assert np.array_equal(mf.quantize_activations("Q8_0", x[::2]), right)
    assert mf.quantize_activations("Q8_0", np.zeros(0, np.float32)).shape == (0,)


@pytest.mark.parametrize("shape", [(31,), (33,), (1,), (1, 32), (2, 32), ()])
def test_refused_shapes(shape):
    if shape == ():
        shape = (1,)
    with pytest.raises(mf.ArgumentError):
        mf.quantize_activations("Q8_0", np.ones(shape, np.float32))


@pytest.mark.parametrize("x", ["text", np.ones(32, np.complex64), np.array([None] * 32)])
def test_what_is_no_number_is_refused(x):
    with pytest.raises(mf.ArgumentError, match="real numbers"):
        mf.quantize_activations("Q8_0", x)


@pytest.mark.parametrize("name", ["Q4_0", "Q8_1", "F32", "Q8_K_GGML", "nonsense"])
def test_other_names_are_refused(name):
    with pytest.raises(mf.ArgumentError, match=f"{name!r} is not a run-time activation format"):
        mf.quantize_activations(name, np.ones(256, np.float32))
