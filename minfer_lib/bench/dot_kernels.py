"""How fast is each dot kernel, from the cache and from memory? Beside it ggml's own, if llama-cpp-python is installed.

One activation row is multiplied with many weight rows: with as many as a core's own cache holds, again and again; and
with more than all caches hold. GB/s are bytes of weights. The best of some rounds counts, since noise only ever slows,
and all that is compared is measured in turn.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher

from minfer_lib.bench.random_rows import random_rows
from minfer_lib.bench.speed import PROBE_BYTES, CeilingProbe
from minfer_lib.dot.format_kernels import ROWS_AT_ONCE
from minfer_lib.dot.kernel_key import KernelKey
from minfer_lib.dot.registry import DOTS
from minfer_lib.formats.table import FORMATS
from minfer_lib.matmul.chunks import even_split
from minfer_lib.matmul.rows import mm_rows
from minfer_lib.native.jit import kernel
from minfer_lib.quantize.activations import activation_rows
from minfer_lib.quantize.api import quantize
from minfer_lib.simd.isa import isas
from minfer_lib.simd.ops import prefetch
from minfer_lib.simd.step import rebind

FORMATS_BUILT = tuple(dict.fromkeys(name for name, _ in DOTS))
CACHE_BYTES = 200_000  # of weights for each thread: within the second-level cache of any core
ROUNDS = 5
LIBRARIES = {".so", ".dylib", ".dll"}
DISTANCES = (0, 512, 1024, 2048, 4096, 8192, 16384, 32768)  # bytes ahead

Rows = Callable[[int, int, int], None]  # multiply rows [first, last) with the activations, so many times


@dataclass(frozen=True)
class KernelSpeed:
    """GB/s of weights."""

    format: str
    isa: str  # a kernel set, or "ggml"
    threads: int
    cache: float
    memory: float
    ceiling: float  # what reading alone reaches, from memory


class Weights:
    """Rows of random weights of one format, more than the caches hold, and an activation row for them."""

    def __init__(self, name: str, n_in: int, n_bytes: int = PROBE_BYTES) -> None:
        row = FORMATS[name]
        self.name, self.n_in, self.row_bytes, self.n_blocks = name, n_in, row.row_bytes(n_in), n_in // row.block_values
        self.n_rows = max(64, n_bytes // self.row_bytes)
        self.bytes = random_rows(name, self.n_rows, n_in).reshape(-1)
        self.bytes.flags.writeable = False  # as the engine's are: its compiled kernels are measured
        self.x = np.random.default_rng(1).standard_normal((1, n_in)).astype(np.float32)
        self.out = np.empty((1, self.n_rows), np.float32)


@kernel
def _repeat(dot, w, row_bytes, first, last, a, n_blocks, out, times):
    for _ in range(times):
        mm_rows(dot, w, 0, row_bytes, first, last, a, n_blocks, out)


def our_rows(weights: Weights, isa: str) -> Rows:
    """The engine's rows kernel, as it runs in a matrix product."""
    dot, a = KernelKey(weights.name, isa), activation_rows(FORMATS[weights.name].activation, weights.x)

    def rows(first: int, last: int, times: int) -> None:
        _repeat(dot, weights.bytes, weights.row_bytes, first, last, a, weights.n_blocks, weights.out, times)

    return rows


# ggml's activation format, by weight format: ours but for these
_GGML_PAIRS = {"Q4_1": "Q8_1", "Q5_1": "Q8_1", "F16": "F16", "BF16": "BF16", "F32": "F32"}


def ggml_rows(weights: Weights) -> Rows | None:
    """ggml's vec_dot, called row by row from compiled code; None where it is not installed or has no such dot."""
    name = weights.name
    pair = _GGML_PAIRS.get(name) or {"Q8_0": "Q8_0", "Q8_K": "Q8_K_GGML"}[FORMATS[name].activation]
    symbol = "ggml_vec_dot_" + (name if FORMATS[name].block_values == 1 else f"{name}_{pair[:4]}")
    function = _ggml_function(symbol.lower().replace("_k", "_K"))
    if function is None:
        return None
    if pair in ("F32", "F16", "BF16"):
        bits = weights.x.view(np.uint32) >> 16
        a = {"F32": weights.x, "F16": weights.x.astype(np.float16), "BF16": bits.astype(np.uint16)}[pair]
    else:
        a = quantize(pair, weights.x[0])

    @njit(nogil=True)
    def loop(n, w, row_bytes, first, last, a, out, times):
        for _ in range(times):
            for o in range(first, last):
                function(n, out + 4 * o, 0, w + o * row_bytes, 0, a, 0, 1)

    def rows(first: int, last: int, times: int) -> None:
        w, out = weights.bytes.ctypes.data, weights.out.ctypes.data
        loop(weights.n_in, w, weights.row_bytes, first, last, a.ctypes.data, out, times)

    return rows


def _ggml_function(symbol: str):
    """A vec_dot of ggml: (n, result, 0, weights, 0, activations, 0, 1), pointers as numbers."""
    try:
        import llama_cpp
    except ImportError:
        return None
    library = next(p for p in Path(llama_cpp.__file__).parent.glob("lib/*ggml-cpu.*") if p.suffix in LIBRARIES)
    ggml = ctypes.CDLL(str(library))
    ggml.ggml_cpu_init()
    function = getattr(ggml, symbol, None)
    if function is not None:
        number = ctypes.c_size_t
        function.restype = None
        function.argtypes = [ctypes.c_int, number, number, number, number, number, number, ctypes.c_int]
    return function


def kernel_speeds(
    name: str, threads: int = 1, n_in: int = 2048, rounds: int = ROUNDS, n_bytes: int = PROBE_BYTES
) -> list[KernelSpeed]:
    """Every kernel set of this CPU that has a dot for format `name`, best first, and ggml's; n_in values a row."""
    weights, probe = Weights(name, n_in, n_bytes), CeilingProbe(n_bytes)
    runners = {isa: our_rows(weights, isa) for isa in isas() if (name, isa) in DOTS}
    if theirs := ggml_rows(weights):
        runners["ggml"] = theirs
    cache, memory, ceiling = dict.fromkeys(runners, 0.0), dict.fromkeys(runners, 0.0), 0.0
    with ThreadPoolExecutor(threads) as executor:
        for rows in runners.values():
            rows(0, 1, 1)  # compile
        for _ in range(rounds):
            ceiling = max(ceiling, probe.gigabytes_per_second(threads))
            for isa, rows in runners.items():
                memory[isa] = max(memory[isa], _from_memory(weights, rows, threads, executor))
                cache[isa] = max(cache[isa], _from_cache(weights, rows, threads, executor))
    return [KernelSpeed(name, isa, threads, cache[isa], memory[isa], ceiling) for isa in runners]


def _from_memory(weights: Weights, rows: Rows, threads: int, executor: ThreadPoolExecutor) -> float:
    start = time.perf_counter()
    list(executor.map(lambda part: rows(*even_split(part, threads, weights.n_rows), 1), range(threads)))
    return weights.n_rows * weights.row_bytes / (time.perf_counter() - start) / 1e9


def _from_cache(weights: Weights, rows: Rows, threads: int, executor: ThreadPoolExecutor) -> float:
    count = min(max(4, CACHE_BYTES // weights.row_bytes // 4 * 4), weights.n_rows // threads)
    times = max(2, 20_000_000 // (count * weights.row_bytes))

    def part(index: int) -> float:
        rows(index * count, (index + 1) * count, 2)  # into the cache
        start = time.perf_counter()
        rows(index * count, (index + 1) * count, times)
        return time.perf_counter() - start

    return threads * count * weights.row_bytes * times / max(executor.map(part, range(threads))) / 1e9


def prefetch_speeds(
    name: str, isa: str, distances: Iterable[int] = DISTANCES, n_in: int = 2048, n_bytes: int = PROBE_BYTES
) -> Iterator[tuple[int, float]]:
    """(bytes, GB/s from memory on one core) of the kernel with its prefetches so many bytes ahead; 0: without them."""
    weights = Weights(name, n_in, n_bytes)
    a = activation_rows(FORMATS[name].activation, weights.x).reshape(-1)
    with ThreadPoolExecutor(1) as executor:
        for distance in distances:
            rows = _rows_with(DOTS[name, isa], ROWS_AT_ONCE[isa] == 4, distance)

            def run(first, last, times, rows=rows):
                rows(weights.bytes, weights.row_bytes, first, last, a, weights.n_blocks, weights.out[0])

            run(0, 4, 1)
            yield distance, max(_from_memory(weights, run, 1, executor) for _ in range(ROUNDS))


@njit
def _no_prefetch(raw, at):
    pass


def _rows_with(dot: Dispatcher, four: bool, distance: int) -> Callable:
    """A compiled loop over rows with `dot`, its constant AHEAD replaced; at distance 0 prefetch does nothing."""

    def bind(value):
        if value is prefetch and not distance:
            return _no_prefetch
        if not isinstance(value, Dispatcher):
            return value
        function = rebind(value.py_func, bind)
        function.__globals__["AHEAD"] = distance
        return njit(error_model="numpy", forceinline=True)(function)

    chosen = bind(dot)

    def one_row(w, row_bytes, first, last, a, n_blocks, out):
        for o in range(first, last):
            out[o] = chosen(w, o * row_bytes, a, 0, n_blocks)

    def four_rows(w, row_bytes, first, last, a, n_blocks, out):
        for o in range(first, last - 3, 4):
            out[o], out[o + 1], out[o + 2], out[o + 3] = chosen(w, o * row_bytes, row_bytes, a, 0, n_blocks)

    return njit(nogil=True)(four_rows if four else one_row)
