"""Who computes what on a GPU: grid, blocks, warps, lanes and the units of a row. No GPU is needed here.

A matrix has n_out rows of n_in values. In decode each row is multiplied with one activation vector. A kernel is started
as a grid of blocks; a block is `warps` warps of 32 lanes, and computes `rows` rows. A row is cut into units, and the
threads that share it take them in turn: thread t of T takes units t, t + T, t + 2 T … (seed 3, §2).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from minfer_lib.errors import ArgumentError
from minfer_lib.formats.pairing import weight_format
from minfer_lib.native.jit import SWITCHES

WARP = 32  # lanes, on every NVIDIA GPU
UNIT_VALUES = 32  # what one lane of an MMVQ kernel computes in one step, in every format


@dataclass(frozen=True)
class Launch:
    """The parameters that a launch table holds: a block of `warps` warps computes `rows` rows.

    together: how many rows a warp computes at once, side by side in its lanes' registers. If there are more warps than
    that needs, several share each row (row_warps); if there are fewer, each takes its rows in turns.
    """

    warps: int
    rows: int
    together: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.warps <= 32:
            raise ArgumentError(f"a block has 1 to 32 warps, not {self.warps}.")
        if self.together not in (1, 2, 4):
            raise ArgumentError(f"a warp computes 1, 2 or 4 rows at once, not {self.together}.")
        at_once = self.warps * self.together
        if self.rows < 1 or self.rows % self.together or (at_once % self.rows and self.rows % at_once):
            raise ArgumentError(
                f"{self.rows} rows cannot be dealt out to {self.warps} warps that compute {self.together} at once."
            )

    def __str__(self) -> str:
        return f"{self.warps}w x {self.rows}r" + (f", {self.together} at once" if self.together > 1 else "")

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return WARP * self.warps

    @property
    def row_warps(self) -> int:
        """Warps that share one row."""
        return max(1, self.warps * self.together // self.rows)

    @property
    def row_threads(self) -> int:
        """Threads that share one row."""
        return WARP * self.row_warps

    @property
    def turns(self) -> int:
        """How many times a warp starts over with further rows."""
        return max(1, self.rows // (self.warps * self.together))


OLD = Launch(warps=2, rows=8)  # the f32 kernel that seed 3 starts from; its unit is a whole block of 256 values
SEED = Launch(warps=8, rows=1)  # seed 3's MMVQ, from llama.cpp's table for the GB10


# A cap on the registers of a thread, by kernel and format, where the compiler's own choice was not the best on the H200
# that data/measurements records: with fewer, all blocks of a 7B model's ffn_down fit on the chip at once.
REGISTERS = {("pipelined", "Q5_K"): 64}
LONG = 8192  # values


def launch_for(name: str, kernel: str, n_in: int) -> Launch:
    """The launch that was best there, of a format and an MMVQ kernel ("mmvq", "pipelined", "staged")."""
    if kernel == "staged":
        return Launch(8 if n_in > LONG else 4, 4, together=4)
    return Launch(4, 4, together=4 if name == "Q4_K" else 2)


def prefers_staging(name: str, n_in: int) -> bool:
    """Whether the staged kernel was the faster there: not in long rows of formats that can be loaded 16 bytes wide."""
    return name not in ("Q4_K", "Q5_K") or n_in <= LONG


@dataclass(frozen=True)
class Place:
    """One thread's part in a launch."""

    block: int
    thread: int
    warp: int
    lane: int
    rows: tuple[int, ...]  # those that its warp computes; rows beyond the matrix are left out
    units: tuple[int, ...]  # the units of each of these rows that it computes


@dataclass(frozen=True)
class Geometry:
    """An n_out x n_in matrix spread over the threads of a GPU. Each unit is `unit_values` values."""

    n_out: int
    n_in: int
    launch: Launch
    unit_values: int = UNIT_VALUES

    def __post_init__(self) -> None:
        if self.n_out < 1 or self.n_in < 1 or self.n_in % self.unit_values:
            raise ArgumentError(
                f"a matrix of {self.n_out} x {self.n_in} has no whole units of {self.unit_values} values in its rows."
            )

    @property
    def blocks(self) -> int:
        return ceil(self.n_out / self.launch.rows)

    @property
    def threads(self) -> int:
        """Threads in flight, if the GPU has room for the whole grid."""
        return self.blocks * self.launch.threads

    @property
    def units(self) -> int:
        """Units of one row."""
        return self.n_in // self.unit_values

    @property
    def steps(self) -> int:
        """How many units the busiest thread computes of a row, one after the other."""
        return ceil(self.units / self.launch.row_threads)

    @property
    def idle_threads(self) -> int:
        """Threads of those that share a row that never get a unit of it."""
        return max(0, self.launch.row_threads - self.units)

    @property
    def utilization(self) -> float:
        """Share of the lanes' steps that compute a unit; in the rest a lane has none left, or no such row exists."""
        offered = self.blocks * self.launch.rows * self.launch.row_threads * self.steps
        return self.n_out * self.units / offered

    def place(self, block: int, thread: int) -> Place:
        """What thread `thread` of block `block` computes; ArgumentError if there is no such thread."""
        if not (0 <= block < self.blocks and 0 <= thread < self.launch.threads):
            raise ArgumentError(
                f"thread {thread} of block {block}: there are {self.blocks} blocks of {self.launch.threads} threads."
            )
        warp, lane = divmod(thread, WARP)
        group, share = divmod(warp, self.launch.row_warps)
        per_group = self.launch.together * self.launch.turns
        first = block * self.launch.rows + group * per_group
        rows = tuple(r for r in range(first, first + per_group) if r < self.n_out)
        units = tuple(range(WARP * share + lane, self.units, self.launch.row_threads)) if rows else ()
        return Place(block, thread, warp, lane, rows, units)

    def owner(self, row: int, unit: int) -> tuple[int, int]:
        """(block, thread) that computes a unit of a row; the inverse of `place`."""
        if not (0 <= row < self.n_out and 0 <= unit < self.units):
            raise ArgumentError(f"unit {unit} of row {row}: there are {self.n_out} rows of {self.units} units.")
        block, inside = divmod(row, self.launch.rows)
        first_warp = inside // (self.launch.together * self.launch.turns) * self.launch.row_warps
        return block, WARP * first_warp + unit % self.launch.row_threads


@dataclass(frozen=True)
class Gpu:
    """What Little's law needs to know of a chip. The numbers are the vendor's, or measured as `source` says."""

    name: str
    multiprocessors: int
    threads: int  # that one multiprocessor holds at most
    gigabytes_per_second: float  # the most that its memory gave a kernel that only reads
    latency: float  # seconds from a load to its data, when memory is not busy
    source: str

    @property
    def resident_threads(self) -> int:
        return self.multiprocessors * self.threads

    @property
    def bytes_in_flight(self) -> float:
        """Little's law: bytes that must be on their way at any time so that memory is never idle."""
        return self.gigabytes_per_second * 1e9 * self.latency

    def attainable(self, geometry: Geometry, bytes_a_thread: int) -> float:
        """GB/s by Little's law, if each thread in flight that has work waits for `bytes_a_thread` bytes at a time.

        An upper bound: threads also compute, and start and end.
        """
        in_flight = min(geometry.threads, self.resident_threads) * geometry.utilization
        return min(self.gigabytes_per_second, in_flight * bytes_a_thread / self.latency / 1e9)


GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("GB10", 48, 1536, 252.7, 800e-9, "bandwidth: seed 3's probe; latency: an estimate for its LPDDR5X"),
        Gpu("H200", 132, 2048, 4485.2, 336.0e-9, "both measured: data/measurements/h200.json"),
    )
}


def use_mmvq(name: str, n_out: int, n_in: int, chip: str = "GB10") -> bool:
    """minfer's shape gate (seed 3, §3.1): MMVQ, or the old kernel with float32 activations?

    As measured on a GB10, and taken for any chip that was not measured: Q4_K from rows of 2048 values on, Q5_K and Q6_K
    from 24 million weights on. On an H200 MMVQ was faster at every shape (`crossover` in data/measurements). Other
    formats have no old kernel. MINFER_NO_KQ_MMVQ closes the gate.
    """
    if weight_format(name).block_values == 32:
        return True
    if "MINFER_NO_KQ_MMVQ" in SWITCHES:
        return False
    if chip == "H200":
        return True
    return n_in >= 2048 if name == "Q4_K" else n_out * n_in >= 24_000_000
