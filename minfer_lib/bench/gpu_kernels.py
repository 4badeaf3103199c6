"""How fast are the GPU kernels? `minfer bench --gpu` runs this, and it wrote data/measurements/h200.json.

No cache helps: a measurement goes over more copies of a matrix than the L2 holds, and comes back to a copy only after
all others. `gbps` are bytes of the matrix over the time of one launch, the copies launched in turn from a graph, as a
decoder launches its matrices; `gbps_at_once`, over its share of one launch for all copies, so that starting and ending
cost nothing. Each time is the median of nine replays.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from copy import copy
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from math import ceil
from statistics import median
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from minfer_lib.bench.random_rows import random_rows
from minfer_lib.gpu import q4_k_steps
from minfer_lib.gpu.device import SPARE_BYTES, Stream, compiled, cuda, device_name, driver_version, to_device
from minfer_lib.gpu.f32_rows import F32_BLOCKS
from minfer_lib.gpu.geometry import SEED, Launch, use_mmvq
from minfer_lib.gpu.matvec import Matrix, MatVec
from minfer_lib.gpu.reading import PROBE_THREADS, chase, probe
from minfer_lib.gpu.unit import PAD40, Unit
from minfer_lib.gpu.units import UNITS
from minfer_lib.gpu.units_k import Q6_K_PLANES
from minfer_lib.version import __version__

ENOUGH = 1_000_000_000  # bytes: many times any L2
REPLAYS = 9
SHAPES = ((3584, 18944), (18944, 3584), (152064, 3584))  # n_out x n_in: ffn_down, ffn_up and lm_head of a 7B model
CROSSOVER = (128, 512, 896, 2048, 3584, 6656, 9472, 18944)  # n_out, with n_in = 3584

# llama.cpp's own kernels on an H200, from a CUDA graph, its quantizer included: GB/s on SHAPES.
LLAMA_CPP = {"Q4_K": (2000, 1543, 1718), "Q5_K": (2070, 1777, 1997), "Q6_K": (1917, 1652, 1815)}

# What led from the old kernel to the one that runs now: one change a rung. Format, kernel, launch, unit.
Rung = tuple[str, str, str, Launch | None, Unit | None]
RUNGS: tuple[Rung, ...] = (
    ("the old kernel: float32 activations, a lane walks a block", "Q4_K", "f32", None, None),
    ("dp4a on quantized activations, 8 warps a row (seed 3)", "Q4_K", "mmvq", SEED, q4_k_steps.SEED),
    ("16-byte loads", "Q4_K", "mmvq", SEED, q4_k_steps.WIDE),
    ("sums of the activations from the quantizer", "Q4_K", "mmvq", SEED, q4_k_steps.SUMS),
    ("two scales and a min decoded at once", "Q4_K", "mmvq", SEED, None),
    ("a warp a row, 4 rows a block", "Q4_K", "mmvq", Launch(4, 4), None),
    ("2 rows at once, so that activations are loaded half as often", "Q4_K", "mmvq", Launch(4, 4, together=2), None),
    ("the next step's words loaded ahead", "Q4_K", "pipelined", Launch(4, 4, together=2), None),
    ("4 rows at once", "Q4_K", "pipelined", Launch(4, 4, together=4), None),
    ("rows through shared memory", "Q4_K", "staged", None, None),
    ("Q6_K in place, 4-byte loads", "Q6_K", "mmvq", Launch(4, 4), None),
    ("Q6_K laid out anew, in planes", "Q6_K", "pipelined", Launch(4, 4, together=2), Q6_K_PLANES),
    ("Q6_K in place, through shared memory", "Q6_K", "staged", None, None),
)
LAUNCHES = (
    SEED, Launch(4, 1), Launch(2, 1), Launch(1, 1), Launch(4, 2), Launch(8, 2), Launch(2, 2), Launch(4, 4),
    Launch(8, 8), Launch(4, 2, together=2), Launch(4, 4, together=2), Launch(4, 8, together=2),
    Launch(8, 8, together=2), Launch(4, 4, together=4), Launch(4, 8, together=4), Launch(4, 16, together=4),
)  # fmt: skip


def random_matrix(name: str, n_out: int, n_in: int, layout: Callable | None = None) -> Matrix:
    return Matrix(name, random_rows(name, n_out, n_in), layout)


class Copies:
    """As many copies of a matrix, one behind the other, as make up ENOUGH bytes; 400 of a small one."""

    def __init__(self, matrix: Matrix) -> None:
        self.count = min(max(3, ceil(ENOUGH / matrix.n_bytes)), 400)
        n = matrix.n_bytes
        memory = cuda().device_array(self.count * n + SPARE_BYTES, np.uint8)
        for i in range(self.count):
            memory[i * n : (i + 1) * n].copy_to_device(matrix.bytes[:n])
        self.each = [memory[i * n : (i + 1) * n + SPARE_BYTES] for i in range(self.count)]
        self.tall = copy(matrix)  # all of them as one matrix
        self.tall.n_out, self.tall.n_bytes, self.tall.bytes = self.count * matrix.n_out, self.count * n, memory


class Bench:
    """A stream of the GPU, and what is measured on it."""

    def __init__(self) -> None:
        self.stream = Stream()

    def seconds(self, enqueue: Callable[[Any], None], overlap: bool = False) -> float:
        """Of one replay of what `enqueue(stream)` launches."""
        enqueue(0)  # compiles, and loads the kernels
        cuda().synchronize()
        replay = self.stream.graph(enqueue, overlap)
        replay()
        return median(replay() for _ in range(REPLAYS))

    def latency(self, loads: int = 20_000) -> float:
        """Seconds from a load to its data, where no other is on its way: a chain through 1 GB, in random order.

        Each replay goes on where the one before it stopped, so that hardly a load finds its data in the L2.
        """
        rng, n, step = np.random.default_rng(0), 1 << 28, 32  # one word in each 128 bytes
        order = rng.permutation(n // step).astype(np.uint32) * step
        chain = np.zeros(n, np.uint32)
        chain[order] = np.roll(order, -1)
        words, place = to_device(chain.view(np.uint8)), to_device(np.zeros(1, np.uint32))
        return self.seconds(lambda stream: compiled(chase)[1, 1, stream](words, place, np.int32(loads))) / loads

    def probe(self, n_bytes: int) -> dict[str, Any]:
        """Reading alone, of matrices of n_bytes bytes."""
        count, n = ceil(ENOUGH / n_bytes), n_bytes // 16
        memory, out = cuda().device_array(count * n_bytes, np.uint8), cuda().device_array(1, np.uint32)
        each = [memory[i * n_bytes : (i + 1) * n_bytes] for i in range(count)]
        full = 32 * cuda().get_current_device().MULTIPROCESSOR_COUNT
        grid, kernel = min(full, ceil(n / PROBE_THREADS)), compiled(probe)
        words = np.int32(n), np.int32(count * n)
        turn = self.seconds(lambda s: [kernel[grid, PROBE_THREADS, s](e, out, words[0]) for e in each]) / count
        once = self.seconds(lambda s: kernel[full, PROBE_THREADS, s](memory, out, words[1])) / count
        speeds = {"gbps": round(n_bytes / turn / 1e9, 1), "gbps_at_once": round(n_bytes / once / 1e9, 1)}
        return {"bytes": n_bytes, "us": round(turn * 1e6, 3)} | speeds

    def product(
        self,
        copies: Copies,
        matrix: Matrix,
        kernel: str | None,
        launch: Launch | None = None,
        unit: Unit | None = None,
    ) -> dict[str, Any]:
        """One kernel on copies of a matrix, alone; if it takes quantized activations, with the quantizer ahead too."""
        one = MatVec(matrix, kernel, launch, unit)
        row = self._about(one, matrix)
        row |= self._rate("", matrix, self.seconds(lambda s: [one.multiply(s, w) for w in copies.each]), copies.count)
        if one.kernel == "f32":
            return row
        tall = MatVec(copies.tall, one.kernel, one.geometry.launch, unit)
        row |= self._rate("_at_once", matrix, self.seconds(tall.multiply), copies.count)

        def both(stream: Any) -> None:
            for w in copies.each:
                one.quantize(stream)
                one.multiply(stream, w)

        row |= self._rate("_with_quantizer", matrix, self.seconds(both), copies.count)
        if one.kernel != "mmvq":
            row |= self._rate("_overlapping", matrix, self.seconds(both, overlap=True), copies.count)
        return row

    def _about(self, one: MatVec, matrix: Matrix) -> dict[str, Any]:
        launch = one.geometry.launch
        shape = {"format": matrix.name, "n_out": matrix.n_out, "n_in": matrix.n_in, "kernel": one.kernel}
        return shape | {"warps": launch.warps, "rows": launch.rows, "together": launch.together}

    def _rate(self, what: str, matrix: Matrix, seconds: float, count: int) -> dict[str, float]:
        return {
            f"us{what}": round(seconds / count * 1e6, 3),
            f"gbps{what}": round(matrix.n_bytes * count / seconds / 1e9, 1),
        }

    def quantizer(self, unit: Unit, n_in: int) -> dict[str, Any]:
        """The quantizer of the activations alone: a hundred launches."""
        one = MatVec(random_matrix("Q8_0", 1, n_in), "mmvq", unit=unit)
        seconds = self.seconds(lambda stream: [one.quantize(stream) for _ in range(100)]) / 100
        return {"block_bytes": unit.block.block_bytes, "n_in": n_in, "us": round(seconds * 1e6, 3)}


def about() -> dict[str, Any]:
    """Which machine, which software, when and how."""
    name = device_name()
    return {
        "device": name,
        "multiprocessors": cuda().get_current_device().MULTIPROCESSOR_COUNT,
        "driver": driver_version(),
        "minfer": __version__,
        "versions": {p: version(p) for p in ("numba", "numba-cuda", "cuda-bindings", "llvmlite", "numpy")}
        | {"python": platform.python_version()},
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "method": " ".join((__doc__ or "").split()),
        "data_sheet": 4800 if "H200" in name else None,
        "llama_cpp": [
            {"format": format_, "n_out": n_out, "n_in": n_in, "gbps_with_quantizer": gbps}
            for format_, speeds in LLAMA_CPP.items()
            for (n_out, n_in), gbps in zip(SHAPES, speeds, strict=True)
        ],
    }


Row = tuple[str, Callable[[], dict[str, Any]]]


def rows(bench: Bench) -> Iterator[Row]:
    """(list in the report, what measures its next row) of all of them."""
    for n_bytes in (2 << 20, 16 << 20, 40 << 20, 300 << 20):
        yield "probes", partial(bench.probe, n_bytes)
    for block in (PAD40, UNITS["Q8_0"].block):
        for n_in in (3584, 18944):
            unit = UNITS["Q8_0"]._replace(block=block)
            yield "quantizer", partial(bench.quantizer, unit, n_in)
    for shape in SHAPES:
        yield from _of_shape(bench, *shape)
    for name in F32_BLOCKS:
        for n_out in CROSSOVER:
            yield "crossover", partial(crossover, bench, name, n_out, 3584)


def _of_shape(bench: Bench, n_out: int, n_in: int) -> Iterator[Row]:
    for name in UNITS:
        matrix = random_matrix(name, n_out, n_in)
        copies = Copies(matrix)
        measure = partial(bench.product, copies, matrix)
        if name in F32_BLOCKS:
            yield "products", partial(measure, "f32")
        yield "products", partial(measure, None)
        if name == "Q4_K":
            for launch in LAUNCHES:
                yield "launches", partial(measure, "mmvq", launch)
        for rung in RUNGS:
            if rung[1] == name:
                yield "ladder", partial(_rung, bench, copies, matrix, rung)


def _rung(bench: Bench, copies: Copies, matrix: Matrix, rung: Rung) -> dict[str, Any]:
    what, name, kernel, launch, unit = rung
    if unit and unit.layout:
        matrix = random_matrix(name, matrix.n_out, matrix.n_in, unit.layout)
        copies = Copies(matrix)
    return {"what": what} | bench.product(copies, matrix, kernel, launch, unit)


def crossover(bench: Bench, name: str, n_out: int, n_in: int) -> dict[str, Any]:
    """The old kernel and MMVQ with its quantizer on one shape, and what the shape gate of a GB10 says of it."""
    matrix = random_matrix(name, n_out, n_in)
    copies = Copies(matrix)
    old, new = bench.product(copies, matrix, "f32"), bench.product(copies, matrix, "staged")
    return {
        "format": name, "n_out": n_out, "n_in": n_in, "gate": use_mmvq(name, n_out, n_in),
        "us_f32": old["us"], "us_mmvq": new["us"], "us_with_quantizer": new["us_with_quantizer"],
    }  # fmt: skip


def measure() -> dict[str, Any]:
    """Everything, on the GPU of this machine; some minutes. UnsupportedError without a GPU.

    Besides what `about` says: probe (GB/s), latency_ns, and lists of rows: probes, quantizer, products (what MatVec
    runs, and the old kernel), ladder, launches, crossover. us: microseconds; gbps: 10^9 bytes of the matrix a second.
    """
    bench = Bench()
    report = about() | {"latency_ns": round(bench.latency() * 1e9, 1)}
    for key, row in tqdm(rows(bench), desc="measuring", unit="row"):
        report.setdefault(key, []).append(row())
    report["probe"] = max(row["gbps_at_once"] for row in report["probes"])
    return report
