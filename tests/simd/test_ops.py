"""Loads and conversions as single instructions: every 16-bit pattern, every alignment, every kind of rounding."""

import numpy as np
import pytest
from numba import njit

from minfer_lib import UnsupportedError
from minfer_lib.simd import isa
from minfer_lib.simd.ops import f16_to_f32, f32_to_f16, load_bf16, load_f16, load_f32

ALL = np.arange(65536, dtype=np.uint16)


@njit
def each_f16_to_f32(bits, out):
    for i in range(bits.size):
        out[i] = f16_to_f32(bits[i])


@njit
def each_f32_to_f16(values, out):
    for i in range(values.size):
        out[i] = f32_to_f16(values[i])


@njit
def loaded(raw, at):
    return load_f32(raw, at), load_f16(raw, at), load_bf16(raw, at)


def to_f16(values):
    values = np.asarray(values, np.float32)
    out = np.empty(values.size, np.uint16)
    each_f32_to_f16(values, out)
    return out


def test_f16_to_f32_of_every_pattern():
    out = np.empty(65536, np.float32)
    each_f16_to_f32(ALL, out)
    right = ALL.view(np.float16)
    assert np.array_equal(out, right.astype(np.float32), equal_nan=True)
    assert np.array_equal(np.signbit(out[~np.isnan(out)]), np.signbit(right[~np.isnan(out)]))


def test_f32_to_f16_and_back_is_the_same():
    numbers = ALL[~np.isnan(ALL.view(np.float16))]
    assert np.array_equal(to_f16(numbers.view(np.float16)), numbers)


def test_f32_to_f16_rounds_half_to_even_everywhere():
    """The middle between neighbours, and the floats just below and above it."""
    positive = np.arange(0x7BFF, dtype=np.uint16)  # finite, without the largest
    low, high = (
        positive.view(np.float16).astype(np.float32),
        (positive + 1).astype(np.uint16).view(np.float16).astype(np.float32),
    )
    middle = (low + high) / 2
    assert np.array_equal(to_f16(middle), positive + positive % 2)
    assert np.array_equal(to_f16(np.nextafter(middle, np.float32(0))), positive)
    assert np.array_equal(to_f16(np.nextafter(middle, np.float32(np.inf))), positive + 1)
    assert np.array_equal(to_f16(-middle), (positive + positive % 2) | 0x8000)


def test_f32_to_f16_at_the_ends():
    inf = 0x7C00
    assert to_f16([65504, 65519.996, 65520, 1e38, np.inf, -np.inf]).tolist() == [
        0x7BFF,
        0x7BFF,
        inf,
        inf,
        inf,
        inf | 0x8000,
    ]
    assert to_f16([0, -0.0, 2.0**-25, 1e-40, -1e-40]).tolist() == [0, 0x8000, 0, 0, 0x8000]
    assert np.isnan(to_f16([np.nan]).view(np.float16))[0]


@pytest.mark.parametrize("writeable", [True, False])
def test_loads_at_every_alignment(writeable):
    raw = np.random.default_rng(1).integers(0, 127, 64, dtype=np.uint8)  # below 127: no NaN in any of the three
    raw.flags.writeable = writeable
    for at in range(60):
        f32, f16, bf16 = loaded(raw, at)
        assert f32 == np.frombuffer(raw[at : at + 4].tobytes(), "<f4")[0]
        assert f16 == np.float32(np.frombuffer(raw[at : at + 2].tobytes(), "<f2")[0])
        assert bf16 == np.frombuffer(b"\0\0" + raw[at : at + 2].tobytes(), "<f4")[0]


def test_load_bf16_of_every_pattern():
    raw = ALL.view(np.uint8)
    out = np.array(
        [loaded(np.append(raw[2 * i : 2 * i + 2], np.uint8([0, 0])), 0)[2] for i in range(0, 65536, 7)], np.float32
    )
    right = (ALL[::7].astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(out, right, equal_nan=True)


def test_scalar_kernels_run_everywhere():
    assert isa.isas()[-1] == "scalar"


def test_a_cpu_without_half_floats_is_refused(monkeypatch):
    monkeypatch.setattr(isa, "cpu_features", lambda: frozenset({"sse2"}))
    monkeypatch.setattr(isa.platform, "machine", lambda: "x86_64")
    with pytest.raises(UnsupportedError, match="F16C"):
        isa.require_half_floats()
    monkeypatch.setattr(isa.platform, "machine", lambda: "aarch64")
    isa.require_half_floats()


def test_numbas_own_switch_is_heard(monkeypatch):
    monkeypatch.setattr(isa.config, "CPU_FEATURES", "+avx2,-f16c,+fma")
    assert isa.cpu_features() == {"avx2", "fma"}
