"""The arrays between the operations, by the names that the list uses, and where compiled code finds them."""

from __future__ import annotations

import numpy as np

from minfer_lib.formats.table import FORMATS
from minfer_lib.matmul.product import Matrix
from minfer_lib.model.config import Config
from minfer_lib.model.kv_cache import KvCache
from minfer_lib.native.address import aligned_bytes, aligned_floats


class Memory:
    """Buffers float32[rows, width], the activations in the formats that matrices take, and the cache.

    A buffer has a row a token. With a single token the small operations on whole tokens (norm, quantize) are not worth
    waiting for each other: every worker makes the row for itself, row `worker` of the buffers in `own` and of all
    quantized activations.
    """

    def __init__(self, config: Config, cache: KvCache, threads: int, tokens: int, widths: dict[str, int]) -> None:
        self.config, self.cache, self.threads, self.rows = config, cache, threads, max(tokens, threads)
        self.floats = {name: aligned_floats(self.rows, width) for name, width in widths.items()}
        self.own: set[str] = set()
        self.blocks: dict[tuple[str, str], np.ndarray] = {}  # (buffer, format) -> uint8[rows, row_bytes]
        self.panels: dict[tuple[str, str], np.ndarray] = {}  # the same, laid out for tiles
        self.scores = np.zeros((4 * threads, cache.keys.shape[2]), np.float32)  # four rows a worker, for attention
        self.scratch_bytes, self.scratch = 0, aligned_bytes(0)  # a worker's, whichever matrix it multiplies; of all

    def prepare(self, buffer: str, matrix: Matrix) -> None:
        """Make room for what `matrix` needs to be multiplied with this buffer."""
        key = buffer, matrix.activation
        if matrix.activation is not None and key not in self.blocks:
            self.blocks[key] = np.zeros((self.rows, FORMATS[matrix.activation].row_bytes(matrix.n_in)), np.uint8)
        if matrix.has_tiles and key not in self.panels:
            self.panels[key] = aligned_bytes(matrix.panels_bytes(self.rows))
        if matrix.scratch_bytes > self.scratch_bytes:
            self.scratch_bytes = matrix.scratch_bytes
            self.scratch = aligned_bytes(self.threads * self.scratch_bytes)

    def formats(self, buffer: str) -> list[str]:
        """The formats in which matrices take this buffer, besides float32."""
        return [format_ for name, format_ in self.blocks if name == buffer]

    def address(self, buffer: str, layer: int = 0) -> int:
        """Of row 0 of a buffer; "keys" and "values" are those of a layer in the cache."""
        if buffer in ("keys", "values"):
            return getattr(self.cache, buffer)[layer].ctypes.data
        return self.floats[buffer].ctypes.data

    def own_bytes(self, buffer: str) -> int:
        """With one token: bytes from one worker's row to the next one's; 0 where all work on the same row."""
        return self.floats[buffer].strides[0] if buffer in self.own else 0

    def product(self, matrix: Matrix, a: str, out: str | None) -> np.ndarray:
        """PRODUCT[1]: the matrix times buffer a -> buffer out (None: the address is filled in later)."""
        key = a, matrix.activation
        rows = self.floats[a] if matrix.activation is None else self.blocks[key]
        return matrix.product(
            a=rows.ctypes.data,
            a_row_bytes=rows.strides[0],
            a_worker_bytes=self.own_bytes(a) if matrix.activation is None else rows.strides[0],
            out=self.address(out) if out else 0,
            panels=self.panels[key].ctypes.data if key in self.panels else 0,
            scratch=self.scratch.ctypes.data,
            scratch_bytes=self.scratch_bytes,
        )
