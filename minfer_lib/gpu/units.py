"""Every format that the GPU kernels multiply, with its unit."""

from __future__ import annotations

from minfer_lib.gpu.unit import Unit
from minfer_lib.gpu.units_32 import UNITS_32
from minfer_lib.gpu.units_k import UNITS_K

UNITS: dict[str, Unit] = UNITS_32 | UNITS_K
