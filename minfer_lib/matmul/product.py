"""One matrix product: the record that describes it, and the compiled code that computes any part of it.

The model's list of operations, `mf.matmul` and the tracer all fill this record. What differs is who calls `compute`,
and for which rows and tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from llvmlite import ir
from numba import carray, typeof, types
from numba.extending import intrinsic

from minfer_lib.dot.kernel_key import KernelKey
from minfer_lib.formats.table import FORMATS
from minfer_lib.matmul.panels import TOKENS, panels_bytes
from minfer_lib.matmul.rows import rows_at
from minfer_lib.matmul.tiles import TILES_FROM, scratch_bytes, tiles_at, tiles_for
from minfer_lib.native.address import call_native, int64_record, native_address, pointer, record_of
from minfer_lib.native.jit import kernel

PRODUCT = int64_record(
    "compute",  # address of the code below, compiled for the matrix's format
    "w",  # address of the matrix: n_out rows of row_bytes bytes
    "row_bytes",
    "n_out",
    "n_in",
    "n_blocks",  # in a row
    "a",  # address of the activations: a row a token, in the format that the matrix is multiplied with
    "a_row_bytes",
    "a_worker_bytes",  # with one token: from one worker's own row of a to the next worker's; 0: all read the same row
    "panels",  # address of the same activations laid out for tiles; 0: rows are multiplied one by one
    "panel_bytes",  # of TOKENS tokens
    "scratch",  # address of the memory in which tiles are unpacked
    "scratch_bytes",  # for each worker
    "out",  # address of float32[n_tokens, n_out]
)


@kernel
def compute(dot, tiles, product, first, last, first_token, last_token, worker):
    """Rows [first, last) of the matrix times tokens [first_token, last_token), by this worker.

    dot, tiles: how this CPU multiplies the format, one row at a time and over tiles (None: it has no tiles); product:
    the address of a PRODUCT. With tiles, first_token is a multiple of TOKENS.
    """
    p = carray(pointer(product), 1, PRODUCT)[0]
    n_tokens = last_token - first_token
    out = p.out + 4 * first_token * p.n_out
    if tiles is not None:
        if n_tokens >= TILES_FROM and p.panels != 0:
            panels = p.panels + first_token // TOKENS * p.panel_bytes
            scratch = p.scratch + worker * p.scratch_bytes
            tiles_at(tiles, p.w, p.row_bytes, first, last, panels, scratch, n_tokens, p.n_blocks, out, p.n_out)
            return
    a = p.a + first_token * p.a_row_bytes + (worker * p.a_worker_bytes if n_tokens == 1 else 0)
    rows_at(dot, p.w, p.row_bytes, first, last, a, p.a_row_bytes, n_tokens, p.n_blocks, out, p.n_out)


@intrinsic
def call_compute(typingctx, address, product, first, last, first_token, last_token, worker):
    """Call `compute` at native address `address`; its dot and tiles are types without a value."""

    def codegen(context, builder, signature, args):
        nothing = ir.Constant(ir.IntType(8).as_pointer(), None)
        return call_native(context, builder, signature, [args[0], nothing, nothing, *args[1:]])

    return types.void(*[types.int64] * 7), codegen


@dataclass(frozen=True)
class Matrix:
    """[n_out, n_in] weights as they are in a read-only uint8 array, from byte `at` on."""

    dot: KernelKey
    w: np.ndarray
    at: int
    n_out: int
    n_in: int

    @property
    def activation(self) -> str | None:
        """The format of the activations that it is multiplied with; None: float32."""
        return FORMATS[self.dot.format].activation

    @property
    def row_bytes(self) -> int:
        return FORMATS[self.dot.format].row_bytes(self.n_in)

    @property
    def n_blocks(self) -> int:
        return self.n_in // FORMATS[self.dot.format].block_values

    @property
    def has_tiles(self) -> bool:
        """Whether several tokens are multiplied over tiles."""
        return tiles_for(self.dot.format) is not None

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch memory that each worker needs for tiles; 0 without tiles."""
        return scratch_bytes(self.dot.format, self.n_blocks) if self.has_tiles else 0

    def panels_bytes(self, n_tokens: int) -> int:
        """Bytes of the panels of n_tokens tokens' activations; 0 without tiles."""
        if not self.has_tiles:
            return 0
        return panels_bytes(FORMATS[self.activation].block_values, n_tokens, self.n_blocks)

    @property
    def compute_address(self) -> int:
        """Native address of `compute` for this format; compiled if need be."""
        tiles = tiles_for(self.dot.format)
        return native_address(compute, typeof(self.dot), typeof(tiles), *[types.int64] * 6)

    def product(
        self,
        a: int,
        a_row_bytes: int,
        out: int,
        panels: int = 0,
        scratch: int = 0,
        scratch_bytes: int = 0,
        a_worker_bytes: int = 0,
    ) -> np.ndarray:
        """PRODUCT[1]: this matrix times the activations at address a, to address out.

        scratch_bytes: for each worker, one number for all products that may be computed at the same time.
        """
        return record_of(
            PRODUCT, compute=self.compute_address, w=self.w.ctypes.data + self.at, row_bytes=self.row_bytes,
            n_out=self.n_out, n_in=self.n_in, n_blocks=self.n_blocks, a=a, a_row_bytes=a_row_bytes,
            a_worker_bytes=a_worker_bytes, panels=panels, panel_bytes=self.panels_bytes(TOKENS), scratch=scratch,
            scratch_bytes=scratch_bytes, out=out,
        )  # fmt: skip
