"""Reading and writing memory. Each takes a uint8 array and a byte offset, at any alignment; nothing is checked.

Lane 0 of a register is what lies at the lowest address.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import signature

from minfer_lib.simd.instruction import call_llvm, instruction
from minfer_lib.simd.registers import Register, RegisterName

_HALF, _FLOAT, _I16, _I32 = ir.HalfType(), ir.FloatType(), ir.IntType(16), ir.IntType(32)


def is_bytes(raw) -> bool:
    """Is this numba type that of a one-dimensional array of bytes?"""
    return isinstance(raw, types.Array) and raw.dtype == types.uint8 and raw.ndim == 1 and raw.layout == "C"


def _scalar_types(result):
    """(uint8 array, byte offset) -> a scalar of numba type `result`"""
    return lambda raw, at: signature(result, raw, types.int64) if is_bytes(raw) else None


def address_of(context, builder, array_type, raw, at, llvm_type):
    """LLVM pointer to byte `at` of an array."""
    array = context.make_array(array_type)(context, builder, raw)
    return cgutils.pointer_add(builder, array.data, at, llvm_type.as_pointer())


def _read(context, builder, sig, raw, at, llvm_type):
    """An LLVM load; raw and at are the last two operands."""
    return builder.load(address_of(context, builder, sig.args[-2], raw, at, llvm_type), align=1)


def _bytes_at(raw, at, dtype, count=1):
    return np.frombuffer(raw[at : at + count * np.dtype(dtype).itemsize].tobytes(), dtype)


def _load_types(register, raw, at):
    if isinstance(register, RegisterName) and is_bytes(raw):
        return signature(register.register, register, raw, types.int64)


def _load(context, builder, sig, register, raw, at):
    return _read(context, builder, sig, raw, at, sig.return_type.llvm)


@instruction(_load_types, _load, x86="vmovdqu|vmovups", arm="ldr")
def load(register, raw, at):
    """The register of this type at byte `at` of `raw`: `load(u8x16, w, at)`."""
    return _bytes_at(raw, at, register.dtype, register.lanes)


def _store_types(raw, at, v):
    if is_bytes(raw) and raw.mutable and isinstance(v, Register):
        return signature(types.none, raw, types.int64, v)


def _store(context, builder, sig, raw, at, v):
    builder.store(v, address_of(context, builder, sig.args[0], raw, at, v.type), align=1)
    return context.get_dummy_value()


@instruction(_store_types, _store, x86="vmovdqu|vmovups", arm="str")
def store(raw, at, v):
    """Write the register to byte `at` of `raw`."""
    raw[at : at + v.nbytes] = v.view(np.uint8)


def _load_f32(context, builder, sig, raw, at):
    return _read(context, builder, sig, raw, at, _FLOAT)


@instruction(_scalar_types(types.float32), _load_f32, x86="vmovss", arm="ldr")
def load_f32(raw, at):
    """float32 at byte `at` of the uint8 array `raw`."""
    return _bytes_at(raw, at, np.float32)[0]


def _load_f16(context, builder, sig, raw, at):
    return builder.fpext(_read(context, builder, sig, raw, at, _HALF), _FLOAT)


@instruction(_scalar_types(types.float32), _load_f16, x86="vcvtph2ps", arm="fcvt")
def load_f16(raw, at):
    """f16 at byte `at` of the uint8 array `raw`, as float32."""
    return _bytes_at(raw, at, np.float16)[0].astype(np.float32)


def _load_bf16(context, builder, sig, raw, at):
    bits = builder.zext(_read(context, builder, sig, raw, at, _I16), _I32)
    return builder.bitcast(builder.shl(bits, ir.Constant(_I32, 16)), _FLOAT)


@instruction(_scalar_types(types.float32), _load_bf16, x86="shl", arm="shl")
def load_bf16(raw, at):
    """bf16 at byte `at` of the uint8 array `raw`, as float32: its 16 bits are the upper half of a float32."""
    return (_bytes_at(raw, at, np.uint16).astype(np.uint32) << 16).view(np.float32)[0]


def _load_u16(context, builder, sig, raw, at):
    return _read(context, builder, sig, raw, at, _I16)


@instruction(_scalar_types(types.uint16), _load_u16, x86="movzx", arm="ldrh")
def load_u16(raw, at):
    """uint16 at byte `at` of the uint8 array `raw`."""
    return _bytes_at(raw, at, np.uint16)[0]


def _load_u32(context, builder, sig, raw, at):
    return _read(context, builder, sig, raw, at, _I32)


@instruction(_scalar_types(types.uint32), _load_u32, x86="mov", arm="ldr")
def load_u32(raw, at):
    """uint32 at byte `at` of the uint8 array `raw`."""
    return _bytes_at(raw, at, np.uint32)[0]


def _prefetch(context, builder, sig, raw, at):
    address = address_of(context, builder, sig.args[0], raw, at, ir.IntType(8))
    for_reading, near, data = (ir.Constant(_I32, value) for value in (0, 3, 1))
    call_llvm(builder, "llvm.prefetch.p0", ir.VoidType(), address, for_reading, near, data)
    return context.get_dummy_value()


@instruction(_scalar_types(types.none), _prefetch, x86="prefetcht0", arm="prfm")
def prefetch(raw, at):
    """Ask for the cache line of byte `at` of `raw`, and go on. An address that does not exist does no harm."""
