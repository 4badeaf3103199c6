"""Kernels compiled for the GPU of this machine, memory on it, and graphs of launches.

numba-cuda is imported on first use: everything else works on machines without it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from minfer_lib.errors import UnsupportedError

INSTALL = 'Install it with: pip install -c requirements.lock -e ".[gpu]"'
# The arguments of a product: weights, activations, out, n_out, n_units, row_bytes.
PRODUCT = "(uint8[::1], uint8[::1], float32[::1], int32, int32, int32)"
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
    if module.get_current_device().compute_capability < (8, 0):
        raise UnsupportedError("the GPU kernels need an NVIDIA GPU of compute capability 8.0 or more (2020).")
    module.config.CUDA_LOW_OCCUPANCY_WARNINGS = False  # small grids are what some measurements are about
    return module


def has_gpu() -> bool:
    """Whether `cuda` finds what it needs."""
    try:
        return bool(cuda())
    except UnsupportedError:
        return False


@cache
def compiled(kernel: Callable, max_registers: int | None = None) -> Any:
    """A kernel of this package for this GPU: `compiled(kernel)[blocks, threads, stream, shared_bytes](*arguments)`.

    max_registers: how many registers a thread may have; None: the compiler decides.
    """
    cuda()
    from minfer_lib.gpu.ptx import Binder

    return Binder(is_hopper()).kernel(kernel, max_registers)


def to_device(array: np.ndarray, spare: int = 0) -> Any:
    """A copy of the array on the GPU, flat; `spare` zero bytes follow a uint8 array."""
    flat = array.ravel()
    return cuda().to_device(np.concatenate([flat, np.zeros(spare, array.dtype)]) if spare else flat)


def checked(answer: tuple) -> Any:
    """What a function of the CUDA driver returned, without its status; UnsupportedError if that is not success."""
    status, *values = answer
    if status.value:
        raise UnsupportedError(f"the CUDA driver answered {status.name}.")
    return values[0] if len(values) == 1 else values


def device_name() -> str:
    """As the driver calls this GPU: "NVIDIA H200"."""
    name = cuda().get_current_device().name
    return name.decode() if isinstance(name, bytes) else name


def driver_version() -> str:
    """The CUDA version that the driver speaks, as "13.0"."""
    from cuda.bindings import driver

    number = checked(driver.cuDriverGetVersion())
    return f"{number // 1000}.{number % 1000 // 10}"


def is_hopper() -> bool:
    """Whether this GPU is of compute capability 9.0 or more: bulk copies into shared memory, kernels that overlap."""
    return cuda().get_current_device().compute_capability >= (9, 0)


def shared_limit() -> int:
    """Bytes of shared memory that a block of this GPU may copy into; 0 where there are no such copies."""
    return cuda().get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN if is_hopper() else 0


def allow_shared(function: Any, n_bytes: int) -> None:
    """Let a compiled product be launched with more than the 48 KB of shared memory that every kernel may have.

    numba-cuda has no function for that, so this reaches for the handle inside its kernel object.
    """
    from cuda.bindings import driver

    handle = function.compile(PRODUCT)._codelibrary.get_cufunc().handle
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    device = checked(driver.cuDeviceGet(cuda().get_current_device().id))
    checked(driver.cuKernelSetAttribute(attribute, n_bytes, handle, device))


class Stream:
    """A queue of the GPU: launches on it run one after the other. `numba` is the same as numba.cuda knows it."""

    def __init__(self) -> None:
        cuda().current_context()
        from cuda.bindings import driver

        self.driver = driver
        self.handle = checked(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self.numba = cuda().external_stream(int(self.handle))

    def graph(self, enqueue: Callable[[Any], None], overlap: bool = False) -> Callable[[], float]:
        """What `enqueue(stream)` launches, recorded once as a graph. Each call replays it and returns its seconds.

        Between launches of a graph there is hardly a gap, so that small kernels can be timed. overlap: a kernel may
        start when the one before it allows that, not only when it has ended; each must call next_may_start and
        previous_done (ops.py). Before sm_90 nothing overlaps.
        """
        driver = self.driver
        relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        checked(driver.cuStreamBeginCapture(self.handle, relaxed))
        try:
            enqueue(self.numba)
        finally:
            recorded = checked(driver.cuStreamEndCapture(self.handle))
        if overlap and is_hopper():
            self._overlap(recorded)
        runnable = checked(driver.cuGraphInstantiate(recorded, 0))
        checked(driver.cuGraphDestroy(recorded))
        start, end = cuda().event(), cuda().event()

        def replay() -> float:
            start.record(self.numba)
            checked(driver.cuGraphLaunch(runnable, self.handle))
            end.record(self.numba)
            end.synchronize()
            return start.elapsed_time(end) / 1e3

        weakref.finalize(replay, driver.cuGraphExecDestroy, runnable)
        return replay

    def _overlap(self, graph: Any) -> None:
        """Make each dependency of the graph a programmatic one."""
        driver = self.driver
        count = checked(driver.cuGraphGetEdges(graph))[-1]
        before, after, data, count = checked(driver.cuGraphGetEdges(graph, count))
        before, after, data = before[:count], after[:count], data[:count]
        checked(driver.cuGraphRemoveDependencies(graph, before, after, data, count))
        for edge in data:
            edge.type = driver.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
            edge.from_port = driver.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
        checked(driver.cuGraphAddDependencies(graph, before, after, data, count))
