"""Vector registers as numba types: `i8x32` is 32 int8 lanes, 256 bits. Their value is an LLVM vector.

A kernel names them where an instruction does not say its type by itself: `load(u8x16, w, at)`, `splat(f32x8, d)`.
64, 128, 256 and 512 bits: half of a NEON or SSE register, NEON and SSE, AVX2, AVX-512.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model, typeof_impl

_ELEMENTS = {  # name -> NumPy's type, numba's, LLVM's
    "u8": (np.uint8, types.uint8, ir.IntType(8)),
    "i8": (np.int8, types.int8, ir.IntType(8)),
    "u16": (np.uint16, types.uint16, ir.IntType(16)),
    "i16": (np.int16, types.int16, ir.IntType(16)),
    "u32": (np.uint32, types.uint32, ir.IntType(32)),
    "i32": (np.int32, types.int32, ir.IntType(32)),
    "f32": (np.float32, types.float32, ir.FloatType()),
}


class Register(types.Type):
    """A vector register of `lanes` values of `element`."""

    def __init__(self, element: str, lanes: int) -> None:
        dtype, self.scalar, llvm_element = _ELEMENTS[element]
        self.element, self.lanes, self.dtype = element, lanes, np.dtype(dtype)
        self.llvm = ir.VectorType(llvm_element, lanes)
        super().__init__(name=f"{element}x{lanes}")

    @property
    def key(self) -> tuple[str, int]:
        return self.element, self.lanes

    @property
    def bits(self) -> int:
        return 8 * self.dtype.itemsize * self.lanes

    @property
    def is_float(self) -> bool:
        return self.element == "f32"

    @property
    def is_signed(self) -> bool:
        return self.element[0] == "i"

    def of(self, element: str) -> Register:
        """The register of as many bits with lanes of `element`."""
        return Register(element, self.bits // (8 * np.dtype(_ELEMENTS[element][0]).itemsize))


@register_model(Register)
class _RegisterModel(models.PrimitiveModel):
    def __init__(self, manager, register):
        super().__init__(manager, register, register.llvm)


class RegisterName(types.Opaque):
    """What the name `u8x16` itself is inside a kernel: no value at run time, all of it in the type."""

    def __init__(self, register: Register) -> None:
        self.register = register
        super().__init__(name=f"name of {register}")


@typeof_impl.register(Register)
def _typeof_name(register, context):
    return RegisterName(register)


register_model(RegisterName)(models.OpaqueModel)


def splat_value(builder, register: Register, scalar):
    """An LLVM scalar of the register's element type, in every lane."""
    empty = ir.Constant(register.llvm, ir.Undefined)
    first = builder.insert_element(empty, scalar, cgutils.int32_t(0))
    return builder.shuffle_vector(first, empty, ir.Constant(ir.VectorType(ir.IntType(32), register.lanes), None))


u8x8, u8x16, u8x32, u8x64 = (Register("u8", lanes) for lanes in (8, 16, 32, 64))
i8x8, i8x16, i8x32, i8x64 = (Register("i8", lanes) for lanes in (8, 16, 32, 64))
u16x4, u16x8, u16x16, u16x32 = (Register("u16", lanes) for lanes in (4, 8, 16, 32))
i16x4, i16x8, i16x16, i16x32 = (Register("i16", lanes) for lanes in (4, 8, 16, 32))
u32x2, u32x4, u32x8, u32x16 = (Register("u32", lanes) for lanes in (2, 4, 8, 16))
i32x2, i32x4, i32x8, i32x16 = (Register("i32", lanes) for lanes in (2, 4, 8, 16))
f32x2, f32x4, f32x8, f32x16 = (Register("f32", lanes) for lanes in (2, 4, 8, 16))
