"""Which kernel sets run: the CPU's features, numba's overrides, and the switches."""

import os
import subprocess
import sys

import pytest

import minfer_lib as mf
from minfer_lib.simd.isa import cpu_features

PROBE = """
import numpy as np, minfer_lib as mf
from minfer_lib.dot.kernel_key import kernel_for
from minfer_lib.native.jit import CACHE_DIR
x = np.linspace(-1, 1, 64, dtype=np.float32)
w, a = mf.quantize("Q4_0", x), mf.quantize_activations("Q8_0", x)
print(*mf.isas(), kernel_for("Q4_0").isa, CACHE_DIR.name, mf.dot("Q4_0", w, a), sep="|")
"""


def probe(**switches):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MINFER_NO_", "NUMBA_CPU"))} | switches
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *isas, best, cache, value = done.stdout.strip().split("|")
    return tuple(isas), best, cache, float(value)


def test_best_first_and_scalar_last():
    assert mf.isas()[-1] == "scalar"
    assert mf.isas() in {(*x86, "scalar") for x86 in ((), ("avx2",), ("avx512vnni", "avx2"))} | {("neon", "scalar")}


def test_the_switches():
    isas, best, cache, value = probe()
    assert best == isas[0]
    for switch, dropped in (("MINFER_NO_AVX2", {"avx2", "avx512vnni"}), ("MINFER_NO_AVX512", {"avx512vnni"}),
                            ("MINFER_NO_NEON", {"neon"})):  # fmt: skip
        left, best, other, same = probe(**{switch: "1"})
        assert left == tuple(isa for isa in isas if isa not in dropped) and best == left[0]
        assert other != cache, "compiled code must not be mixed"
        assert same == pytest.approx(value, rel=1e-6)


def test_a_switch_set_to_nothing_or_zero_is_off():
    assert probe(MINFER_NO_AVX2="0", MINFER_NO_NEON="")[:3] == probe()[:3]


@pytest.mark.skipif("avx2" not in mf.isas(), reason="x86 with AVX2")
def test_numbas_own_overrides_are_heeded():
    """What numba is told not to compile for must not run, whatever the CPU has."""
    assert probe(NUMBA_CPU_NAME="haswell", NUMBA_CPU_FEATURES="+avx2,+fma,+f16c")[:2] == (("avx2", "scalar"), "avx2")
    assert probe(NUMBA_CPU_NAME="ivybridge", NUMBA_CPU_FEATURES="+avx,+f16c")[:2] == (("scalar",), "scalar")


def test_features_are_named_as_llvm_does():
    assert all(isinstance(name, str) and name == name.lower() and name[0] not in "+-" for name in cpu_features())
