"""The memory that simulated warps see: arrays at addresses of their own, each access checked and counted.

A GPU fetches memory in sectors of 32 bytes. How many sectors the 32 lanes of one load touch is what "coalesced" means:
128 bytes side by side are 4 sectors, the same 128 bytes scattered are up to 32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minfer_lib.errors import ArgumentError, MinferError

LANES, SECTOR = 32, 32
_ALIGNED = 256  # bytes


@dataclass(frozen=True)
class Access:
    """One load or store of a warp."""

    kind: str  # "load", "store", "shared load", "shared store"
    array: str  # its name
    addresses: np.ndarray  # uint64[32]
    n_bytes: int  # a lane
    active: np.ndarray  # bool[32]

    @property
    def sectors(self) -> int:
        """How many 32-byte sectors of memory the active lanes touch together."""
        at = self.addresses[self.active]
        touched = at[:, None] + np.arange(0, self.n_bytes, min(self.n_bytes, 4), dtype=np.uint64)
        return len(np.unique(touched // np.uint64(SECTOR)))

    @property
    def used(self) -> int:
        """How many different bytes the active lanes ask for together."""
        at = self.addresses[self.active]
        return len(np.unique(at[:, None] + np.arange(self.n_bytes, dtype=np.uint64)))


@dataclass(frozen=True)
class Placed:
    """An array of one dimension, and the address of its first byte."""

    name: str
    array: np.ndarray
    base: int
    shared: bool

    def address(self, index: np.ndarray) -> np.ndarray:
        """uint64[32]: of elements."""
        return (index.astype(np.int64) * self.array.itemsize + self.base).astype(np.uint64)

    def check(self, index: np.ndarray, n_bytes: int, active: np.ndarray, where: str) -> None:
        """MinferError unless n_bytes from each active lane's element on are in the array, and aligned."""
        at = index.astype(np.int64) * self.array.itemsize
        outside = active & ((at < 0) | (at + n_bytes > self.array.nbytes))
        for lane in np.flatnonzero(outside)[:1]:
            raise MinferError(
                f"{where} lane {lane} wants {n_bytes} bytes at byte {at[lane]:,} of {self.name}, which has "
                f"{self.array.nbytes:,}. Bound the index."
            )
        for lane in np.flatnonzero(active & (at % n_bytes != 0))[:1]:
            raise MinferError(
                f"{where} lane {lane} wants {n_bytes} bytes at byte {at[lane]:,} of {self.name}, which is no multiple "
                f"of {n_bytes}. A GPU refuses that: use narrower loads, or align the data."
            )


class Memory:
    """Where arrays lie: each begins at a multiple of 256 bytes, as a GPU's allocations do."""

    def __init__(self) -> None:
        self._end = _ALIGNED

    def place(self, array: np.ndarray, name: str, shared: bool = False) -> Placed:
        """Give `array` an address. ArgumentError unless it is one contiguous line."""
        if array.ndim != 1 or not array.flags.c_contiguous:
            raise ArgumentError(f"{name}: a kernel takes contiguous arrays of one dimension; pass array.ravel().")
        placed = Placed(name, array, self._end, shared)
        self._end += -(-max(array.nbytes, 1) // _ALIGNED) * _ALIGNED
        return placed
