"""The matrix product: token-major, the same bits at every number of threads, from every thread and after a fork."""

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minfer_lib as mf
from minfer_lib.matmul.chunks import even_split

FORMATS = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0")


def matrix(name, n_out, n_in, seed=0):
    values = np.random.default_rng(seed).standard_normal((n_out, n_in)).astype(np.float32)
    return gguf.quants.quantize(values, gguf.GGMLQuantizationType[name]).view(np.uint8)


def tokens(n_tokens, n_in, seed=1):
    return np.random.default_rng(seed).standard_normal((n_tokens, n_in)).astype(np.float32)


@pytest.mark.parametrize(
    ("n_tokens", "n_out", "n_in"),
    [(3, 7, 96), (7, 3, 96), (1, 5, 32), (5, 1, 160), (4, 4, 64), (2, 37, 32), (37, 2, 32)],
)
@pytest.mark.parametrize("name", FORMATS)
def test_each_cell_is_the_dot_of_its_row_and_token(name, n_tokens, n_out, n_in):
    """Not square, so that a transposed result cannot pass."""
    w, x = matrix(name, n_out, n_in), tokens(n_tokens, n_in)
    out = mf.matmul(name, w, x)
    assert out.shape == (n_tokens, n_out) and out.dtype == np.float32 and out.flags.c_contiguous
    for t in range(n_tokens):
        a = x[t] if mf.FORMATS[name].activation is None else mf.quantize_activations(mf.FORMATS[name].activation, x[t])
        assert out[t].tolist() == [mf.dot(name, w[o], a) for o in range(n_out)]


@pytest.mark.parametrize("name", FORMATS)
def test_near_the_product_in_float64(name):
    w, x = matrix(name, 9, 160), tokens(4, 160)
    right = x.astype(np.float64) @ mf.dequantize(name, w).reshape(9, 160).T.astype(np.float64)
    error = np.abs(mf.matmul(name, w, x) - right).max() / np.abs(right).max()
    assert error < (1e-5 if mf.FORMATS[name].activation is None else 0.02)


@pytest.mark.parametrize("n_tokens", [1, 3, 40])
@pytest.mark.parametrize("n_out", [1, 2, 5, 64])
@pytest.mark.parametrize("name", FORMATS)
def test_threads_do_not_change_a_bit(name, n_out, n_tokens):
    """More threads than rows too: some then have nothing to do."""
    w, x = matrix(name, n_out, 96), tokens(n_tokens, 96)
    one = mf.matmul(name, w, x, threads=1)
    for threads in (2, 3, 7, 64, None):
        assert np.array_equal(mf.matmul(name, w, x, threads=threads), one), f"{threads} threads"


def test_one_thread_and_many_in_turn():
    w, x = matrix("Q8_0", 16, 64), tokens(2, 64)
    right = mf.matmul("Q8_0", w, x, threads=1)
    for i in range(1000):
        assert np.array_equal(mf.matmul("Q8_0", w, x, threads=(1, 5, 2, 9)[i % 4]), right)


def test_tokens_do_not_change_each_other():
    w, x = matrix("Q4_0", 5, 96), tokens(6, 96)
    together = mf.matmul("Q4_0", w, x)
    for t in range(6):
        assert np.array_equal(mf.matmul("Q4_0", w, x[t : t + 1])[0], together[t])


def test_from_many_python_threads_at_once():
    jobs = [(name, matrix(name, 33 + i, 96, i), tokens(2, 96, i), 1 + i % 4) for i, name in enumerate(FORMATS * 4)]
    right = [mf.matmul(name, w, x, threads=1) for name, w, x, _ in jobs]
    with ThreadPoolExecutor(8) as callers:
        for _ in range(5):
            for got, want in zip(callers.map(lambda job: mf.matmul(*job), jobs), right, strict=True):
                assert np.array_equal(got, want)


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system has no fork")
def test_after_a_fork():
    """A child inherits no threads; it must not wait for the parent's. In a process of its own, with a time limit."""
    program = """
        import os, sys
        import numpy as np
        import minfer_lib as mf
        w, x = np.full((9, 34), 5, np.uint8), np.ones((2, 32), np.float32)
        right = mf.matmul("Q8_0", w, x, threads=3)
        child = os.fork()
        if child == 0:
            same = all(np.array_equal(mf.matmul("Q8_0", w, x, threads=n), right) for n in (1, 3, 5))
            os._exit(0 if same else 3)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert np.array_equal(mf.matmul("Q8_0", w, x, threads=3), right)
        sys.exit(code)
    """
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(program)]
    done = subprocess.run(command, timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_tokens_and_no_rows():
    assert mf.matmul("Q8_0", matrix("Q8_0", 3, 32), np.zeros((0, 32), np.float32)).shape == (0, 3)
    assert mf.matmul("Q8_0", np.zeros((0, 34), np.uint8), tokens(2, 32), threads=3).shape == (2, 0)


def test_strided_and_wider_input():
    w, x = matrix("Q4_1", 6, 64), np.random.default_rng(0).standard_normal((6, 64))
    right = mf.matmul("Q4_1", w[::2].copy(), x[::2].astype(np.float32))
    assert np.array_equal(mf.matmul("Q4_1", w[::2], x[::2]), right)
    assert np.array_equal(mf.matmul("Q4_1", np.asfortranarray(w[::2]), np.asfortranarray(x[::2])), right)
    w.flags.writeable = False
    mf.matmul("Q4_1", w, x)


def test_the_callers_arrays_stay_as_they_were():
    w, x = matrix("F32", 3, 32), tokens(2, 32)
    before = w.copy(), x.copy()
    mf.matmul("F32", w, x)
    assert w.flags.writeable and x.flags.writeable
    assert np.array_equal(w, before[0]) and np.array_equal(x, before[1])


@pytest.mark.parametrize(
    ("w", "x"),
    [
        (np.zeros((2, 18), np.uint8), np.zeros(32, np.float32)),
        (np.zeros(18, np.uint8), np.zeros((1, 32), np.float32)),
        (np.zeros((2, 18), np.int8), np.zeros((1, 32), np.float32)),
        (np.zeros((2, 18), np.float32), np.zeros((1, 32), np.float32)),
        (np.zeros((2, 18), np.uint8), np.zeros((1, 64), np.float32)),
        (np.zeros((2, 36), np.uint8), np.zeros((1, 32), np.float32)),
        (np.zeros((2, 18), np.uint8), np.zeros((1, 31), np.float32)),
        (np.zeros((2, 17), np.uint8), np.zeros((1, 32), np.float32)),
        (np.zeros((2, 3, 18), np.uint8), np.zeros((1, 32), np.float32)),
        (np.zeros((2, 18), np.uint8), np.full((1, 32), np.nan, np.float32)),
        (np.zeros((2, 18), np.uint8), np.full((1, 32), np.inf, np.float32)),
        (np.zeros((2, 18), np.uint8), "text"),
        (np.zeros((2, 18), np.uint8), np.zeros((1, 32), complex)),
    ],
)
def test_wrong_shapes_dtypes_and_values(w, x):
    with pytest.raises(mf.ArgumentError):
        mf.matmul("Q4_0", w, x)


@pytest.mark.parametrize("threads", [0, -1, 1.0, "2", True])
def test_wrong_numbers_of_threads(threads):
    with pytest.raises(mf.ArgumentError, match="threads is a whole number from 1"):
        mf.matmul("Q8_0", matrix("Q8_0", 2, 32), tokens(1, 32), threads=threads)


def test_unknown_formats():
    with pytest.raises(mf.ArgumentError, match="'Q8_K' is not a weight format"):
        mf.matmul("Q8_K", np.zeros((1, 306), np.uint8), np.zeros((1, 256), np.float32))


# Sharing out


@given(parts=st.integers(1, 300), total=st.integers(0, 10_000))
def test_even_split_covers_everything_once(parts, total):
    ranges = [even_split(part, parts, total) for part in range(parts)]
    assert ranges[0][0] == 0 and ranges[-1][1] == total
    assert all(a[1] == b[0] for a, b in zip(ranges, ranges[1:], strict=False))
    sizes = {last - first for first, last in ranges}
    assert max(sizes) - min(sizes) <= 1
