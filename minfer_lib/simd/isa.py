"""What this CPU has, and which kernel sets run on it: MINFER_NO_AVX2, _AVX512, _AMX and _NEON drop some."""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache

import llvmlite.binding as llvm
from numba import config
from numba.core.codegen import get_host_cpu_features

from minfer_lib.errors import UnsupportedError
from minfer_lib.native.jit import SWITCHES

_X86 = ("x86_64", "amd64")
_KERNEL_SETS = {  # best first -> (machines, CPU features as LLVM spells them, the switches that drop it)
    "avx512vnni": (_X86, {"avx512vnni", "avx512bw", "avx512vl"}, {"MINFER_NO_AVX512", "MINFER_NO_AVX2"}),
    "avx2": (_X86, {"avx2", "fma", "f16c"}, {"MINFER_NO_AVX2"}),
    "neon": (("aarch64", "arm64"), {"neon", "dotprod"}, {"MINFER_NO_NEON"}),
    "scalar": ((), set(), set()),
}


def cpu_features() -> frozenset[str]:
    """Names of the CPU features that compiled code may use here, as LLVM spells them ("avx2", "f16c" …).

    These are what numba compiles for: NUMBA_CPU_FEATURES, where it is set, instead of what the CPU has.
    """
    text = config.CPU_FEATURES if config.CPU_FEATURES is not None else get_host_cpu_features()
    found = {name[1:] for name in text.split(",") if name.startswith("+")}
    if config.CPU_FEATURES is None and llvm.get_host_cpu_name().startswith("apple-m"):
        found |= {"neon", "dotprod"}  # every one of them has both, and macOS does not always say so
    return frozenset(found)


def _find_isas() -> tuple[str, ...]:
    machine, features = platform.machine().lower(), cpu_features()
    return tuple(
        name
        for name, (machines, needed, switches) in _KERNEL_SETS.items()
        if (not machines or machine in machines) and needed <= features and not switches & SWITCHES
    )


_ISAS = _find_isas()


def isas() -> tuple[str, ...]:
    """Kernel sets that this CPU runs, best first: ("avx512vnni", "avx2", "scalar") or ("neon", "scalar")."""
    return _ISAS


_ARCH_PRCTL, _ASK_FOR, _TILE_DATA = 158, 0x1023, 18  # the system call, ARCH_REQ_XCOMP_PERM, and what is asked for


@cache
def has_amx() -> bool:
    """May kernels use the tile registers of `simd/amx.py`? With AVX-512 beside them, on Linux.

    They are 8 KB that the system has to save for each thread, so it wants to be asked: once, for all threads of the
    process, also those that are there already. Inside some containers it refuses.
    """
    wanted = {"amx-tile", "amx-int8"} <= cpu_features() and "avx512vnni" in isas() and "MINFER_NO_AMX" not in SWITCHES
    return wanted and sys.platform == "linux" and ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ASK_FOR, _TILE_DATA) == 0


def require_half_floats() -> None:
    """UnsupportedError on an x86 CPU without F16C: block scales are f16, and LLVM would call a missing function."""
    if platform.machine().lower() in _X86 and "f16c" not in cpu_features():
        raise UnsupportedError(
            "this CPU cannot convert 16-bit floats (x86 feature F16C, in every CPU since about 2013). "
            "In a virtual machine, pass the host's CPU features through."
        )
