"""The machine that the course runs on."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

import psutil

from minfer_lib.lessons.shared.html_table import Table
from minfer_lib.native.cpus import cpus
from minfer_lib.simd.isa import cpu_features, isas

# what the lessons are about, in the order in which CPUs got them
_FEATURES = ("f16c", "fma", "avx2", "avx512f", "avx512vnni", "avxvnni", "amx-int8", "neon", "dotprod", "i8mm")


def machine() -> Table:
    """Cores, CPU features, memory and versions."""
    present = cpu_features()
    return Table(
        ("what", "here"),
        [
            ("processor", _processor()),
            ("cores for this process", str(cpus())),
            ("memory", f"{psutil.virtual_memory().total / 2**30:.1f} GiB"),
            ("CPU features of the lessons", " ".join(f for f in _FEATURES if f in present) or "none"),
            ("kernel sets, best first", " ".join(isas())),
            ("system", f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"),
            ("packages", ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "llvmlite", "ipywidgets"))),
        ],
    )


def _processor() -> str:
    """The CPU's own name where the system tells it (Linux does), else its architecture."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
