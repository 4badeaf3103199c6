"""One matrix on the GPU times activations: which kernel, with which launch, and the memory that it needs.

product = MatVec(Matrix("Q4_K", w))       # w: uint8[n_out, row_bytes], copied to the GPU
product(x)                                # float32[n_in] -> float32[n_out]
product.kernel                            # "staged" or "pipelined"; "f32" outside the shape gate
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from minfer_lib.errors import ArgumentError, UnsupportedError
from minfer_lib.formats.arrays import float_array
from minfer_lib.formats.pairing import weight_format
from minfer_lib.gpu.device import SPARE_BYTES, allow_shared, compiled, cuda, device_name, shared_limit, to_device
from minfer_lib.gpu.f32_rows import F32_BLOCKS, f32_rows
from minfer_lib.gpu.geometry import GPUS, OLD, REGISTERS, Geometry, Launch, launch_for, prefers_staging, use_mmvq
from minfer_lib.gpu.mmvq import mmvq, mmvq_pipelined
from minfer_lib.gpu.mmvq_staged import mmvq_staged, staged_bytes
from minfer_lib.gpu.quantizer import QUANTIZER_WARPS, quantizer
from minfer_lib.gpu.unit import Unit
from minfer_lib.gpu.units import UNITS

# The MMVQ kernels by name; cached, so that each is compiled once.
KERNELS = {"mmvq": cache(mmvq), "pipelined": cache(mmvq_pipelined), "staged": cache(mmvq_staged)}
_quantizer, _f32_rows = cache(quantizer), cache(f32_rows)


def this_chip() -> str:
    """The name in GPUS of this machine's GPU, or its own where it is not listed."""
    name = device_name()
    return next((chip for chip in GPUS if chip in name), name)


class Matrix:
    """Rows of quantized weights on the GPU: `bytes`, uint8[n_out * row_bytes], and a few more.

    w: uint8[n_out, row_bytes], blocks in file order. layout: how a kernel wants them, if not so.
    Raises UnsupportedError (a format without GPU kernels, or no GPU) and ArgumentError (not rows of whole blocks).
    """

    def __init__(self, name: str, w: np.ndarray, layout: Callable[[np.ndarray], np.ndarray] | None = None) -> None:
        row = weight_format(name)
        if name not in UNITS:
            raise UnsupportedError(f"there is no GPU kernel for {name}. There are some for {', '.join(UNITS)}.")
        if w.dtype != np.uint8 or w.ndim != 2 or not w.size or w.shape[1] % row.block_bytes:
            raise ArgumentError(
                f"a {name} matrix is uint8[n_out, row_bytes] of whole {row.block_bytes}-byte blocks, "
                f"not {w.dtype}{w.shape}."
            )
        self.name, self.n_out = name, w.shape[0]
        self.n_in = w.shape[1] // row.block_bytes * row.block_values
        laid = layout(w) if layout else w
        self.row_bytes, self.n_bytes = laid.shape[1], laid.size
        self.bytes = to_device(laid, SPARE_BYTES)


class MatVec:
    """A kernel bound to a matrix. All memory is allocated here, so that a graph of its launches can be recorded.

    kernel: "f32", a name of KERNELS, or None: "f32" outside the shape gate, inside it what the GPU runs best.
    launch: None: the best that we measured. unit: None: the format's own. chip: whose gate, a name of GPUS; None: this
    GPU's. Set `x`, then `enqueue` fills `out`; a call does both, and copies from and to the CPU.
    """

    def __init__(
        self,
        matrix: Matrix,
        kernel: str | None = None,
        launch: Launch | None = None,
        unit: Unit | None = None,
        chip: str | None = None,
    ) -> None:
        self.matrix = matrix
        self.kernel = kernel or self._best(chip or this_chip())
        self.x = cuda().device_array(matrix.n_in, np.float32)
        self.out = cuda().device_array(matrix.n_out, np.float32)
        self.quantize: Callable[[Any], None] | None = None
        self.shared = 0
        if self.kernel == "f32":
            self._bind_f32()
        elif self.kernel in KERNELS:
            self._bind_mmvq(launch or launch_for(matrix.name, self.kernel, matrix.n_in), unit or UNITS[matrix.name])
        else:
            raise ArgumentError(f"{self.kernel!r} is not a kernel: those are f32, {', '.join(KERNELS)}.")

    def _best(self, chip: str) -> str:
        matrix = self.matrix
        if not use_mmvq(matrix.name, matrix.n_out, matrix.n_in, chip):
            return "f32"
        fits = staged_bytes(launch_for(matrix.name, "staged", matrix.n_in), matrix.row_bytes) <= shared_limit()
        return "staged" if fits and prefers_staging(matrix.name, matrix.n_in) else "pipelined"

    def _bind_f32(self) -> None:
        name = self.matrix.name
        if name not in F32_BLOCKS:
            raise ArgumentError(f"the f32 kernel runs {', '.join(F32_BLOCKS)}, not {name}.")
        self.geometry = Geometry(self.matrix.n_out, self.matrix.n_in, OLD, unit_values=256)
        self.function = compiled(_f32_rows(F32_BLOCKS[name], weight_format(name).block_bytes, OLD))
        self.activations = self.x

    def _bind_mmvq(self, launch: Launch, unit: Unit) -> None:
        self.geometry = Geometry(self.matrix.n_out, self.matrix.n_in, launch)
        self.function = compiled(KERNELS[self.kernel](unit, launch), REGISTERS.get((self.kernel, self.matrix.name)))
        if self.kernel == "staged":
            self.shared = staged_bytes(launch, self.matrix.row_bytes)
            if self.shared > shared_limit():
                raise ArgumentError(
                    f"{launch.rows} rows of {self.matrix.row_bytes} bytes do not fit into {shared_limit()} bytes, the "
                    'shared memory that a block of this GPU can copy into. Use kernel="pipelined", or fewer rows.'
                )
            allow_shared(self.function, self.shared)
        blocks = self.matrix.n_in // 32
        self.activations = to_device(np.zeros(blocks * unit.block.block_bytes, np.uint8))
        function, grid, threads = compiled(_quantizer(unit.block)), -(-blocks // QUANTIZER_WARPS), 32 * QUANTIZER_WARPS
        self.quantize = lambda stream: function[grid, threads, stream](self.x, self.activations, np.int32(blocks))

    def multiply(self, stream: Any = 0, weights: Any = None) -> None:
        """Enqueue the product alone. weights: the bytes of another matrix of the same kind; None: its own."""
        sizes = np.int32(self.matrix.n_out), np.int32(self.geometry.units), np.int32(self.matrix.row_bytes)
        launch = self.function[self.geometry.blocks, self.geometry.launch.threads, stream, self.shared]
        launch(self.matrix.bytes if weights is None else weights, self.activations, self.out, *sizes)

    def enqueue(self, stream: Any = 0) -> None:
        """x -> out: quantized first, if the kernel takes quantized activations."""
        if self.quantize:
            self.quantize(stream)
        self.multiply(stream)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """x: float32[n_in] -> float32[n_out]. ArgumentError for another shape."""
        x = float_array(x, "a row of activations", ndim=1)
        if x.size != self.matrix.n_in:
            raise ArgumentError(f"the matrix has rows of {self.matrix.n_in} values; there are {x.size} activations.")
        self.x.copy_to_device(x)
        self.enqueue()
        return self.out.copy_to_host()
