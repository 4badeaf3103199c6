"""Kernels compiled for the GPU of this machine, memory on it, and graphs of launches.

numba-cuda is imported on first use: everything else works on machines without it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from minfer_lib.errors import UnsupportedError

INSTALL = 'pip install "minfer[gpu]" brings it.'
SPARE_BYTES = 16  # behind every matrix: kernels may read a word that begins in it and ends behind it


@cache
def cuda() -> ModuleType:
    """numba.cuda. Raises UnsupportedError, which says what is missing: numba-cuda, or a GPU with a driver."""
    try:
        import numba_cuda  # noqa: F401  numba has a numba.cuda of its own, an older one
        from numba import cuda as module
    except ImportError as error:
        raise UnsupportedError(f"running on a GPU needs numba-cuda ({error}). {INSTALL}") from error
    if not module.is_available():
        raise UnsupportedError(
            "this machine has no NVIDIA GPU that a driver answers for. The CPU runs everything else."
        )
    module.config.CUDA_LOW_OCCUPANCY_WARNINGS = False  # small grids are what some measurements are about
    return module


def has_gpu() -> bool:
    """Whether `cuda` finds what it needs."""
    try:
        return bool(cuda())
    except UnsupportedError:
        return False


@cache
def compiled(kernel: Callable) -> Any:
    """A kernel of kernels.py for this GPU. Start it with `compiled(kernel)[blocks, threads, stream](*arguments)`."""
    cuda()
    from minfer_lib.gpu.ptx import Binder

    return Binder().kernel(kernel)


def to_device(array: np.ndarray, spare: int = 0) -> Any:
    """A copy of the array on the GPU, flat; `spare` zero bytes follow a uint8 array."""
    flat = (
        np.concatenate([array.ravel(), np.zeros(spare, array.dtype)]) if spare else np.ascontiguousarray(array).ravel()
    )
    return cuda().to_device(flat)


class Stream:
    """A queue of the GPU: launches on it run one after the other. `numba` is the same as numba.cuda knows it."""

    def __init__(self) -> None:
        from cuda.bindings import driver

        self.driver = driver
        cuda().current_context()
        self.handle = self._checked(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self.numba = cuda().external_stream(int(self.handle))

    def _checked(self, answer: tuple) -> Any:
        error, *values = answer
        if error != self.driver.CUresult.CUDA_SUCCESS:
            raise UnsupportedError(f"the CUDA driver answered {error.name}.")
        return values[0] if values else None

    def graph(self, enqueue: Callable[[Any], None]) -> Callable[[], float]:
        """What `enqueue(stream)` launches, recorded once as a graph. Each call replays it and returns its seconds.

        Between launches of a graph there is hardly a gap, so that small kernels can be timed.
        """
        driver = self.driver
        relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._checked(driver.cuStreamBeginCapture(self.handle, relaxed))
        try:
            enqueue(self.numba)
        finally:
            recorded = self._checked(driver.cuStreamEndCapture(self.handle))
        runnable = self._checked(driver.cuGraphInstantiate(recorded, 0))
        start, end = cuda().event(), cuda().event()

        def replay() -> float:
            start.record(self.numba)
            self._checked(driver.cuGraphLaunch(runnable, self.handle))
            end.record(self.numba)
            end.synchronize()
            return start.elapsed_time(end) / 1e3

        return replay
