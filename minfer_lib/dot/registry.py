"""KERNELS: for each weight format the row that its file, `dot/<format>.py`, ends with."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from numba.core.dispatcher import Dispatcher

from minfer_lib.dot.format_kernels import FormatKernels
from minfer_lib.formats.table import WEIGHT_FORMATS

_MODULES = {name: f"minfer_lib.dot.{name.lower()}" for name in WEIGHT_FORMATS}

KERNELS: dict[str, FormatKernels] = {
    name: import_module(module).KERNELS for name, module in _MODULES.items() if find_spec(module)
}

DOTS: dict[tuple[str, str], Dispatcher] = {
    (name, isa): dot for name, row in KERNELS.items() for isa, dot in row.dots.items()
}
