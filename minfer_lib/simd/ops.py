"""The instructions that kernels are written in: for each its typing, its LLVM, and its meaning in NumPy, once.

A kernel reads `maddubs(u, s)` or `q & 15`; numba compiles just that instruction, and `step.py` runs the NumPy. Here
stands what computes, but for `products.py`; `memory.py`, `lanes.py` and `views.py` have the loads, the moves and the
views. A kernel imports all from here.
"""

from __future__ import annotations

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import signature

from minfer_lib.simd.instruction import alike, call_llvm, instruction, one_register, operator_instruction, wide
from minfer_lib.simd.lanes import (
    byte_mask,
    concat,
    even_eights_first,
    first,
    four,
    fourfold,
    fourths,
    high_half,
    in_order,
    lane,
    lookup,
    low_half,
    odd_lanes,
    shuffle,
    splat,
    zip_high,
    zip_low,
)  # fmt: skip
from minfer_lib.simd.memory import load, load_bf16, load_f16, load_f32, load_u16, load_u32, prefetch, store
from minfer_lib.simd.products import add_pairs, dpbusd, dpwssd, madd, maddubs, sdot
from minfer_lib.simd.registers import Register, i8x32, i16x16, i32x8
from minfer_lib.simd.views import as_f32, as_i8, as_i16, as_i32, as_u8, as_u16, narrow, widen

__all__ = [
    "add_pair", "add_pairs", "andnot", "as_f32", "as_i16", "as_i32", "as_i8", "as_u16", "as_u8", "byte_mask", "concat",
    "dpbusd", "dpwssd", "even_eights_first", "f16_to_f32", "f32_to_f16", "first", "fmadd", "four", "fourfold",
    "fourths", "high_half", "in_order", "lane", "load", "load_bf16", "load_f16", "load_f32", "load_u16", "load_u32",
    "lookup", "low_half", "madd", "maddubs", "maximum", "minimum", "narrow", "odd_lanes", "pack_i16", "pack_i8",
    "prefetch", "round_to_i32", "sdot", "shuffle", "sign", "splat", "store", "to_f32", "widen", "zip_high", "zip_low",
]  # fmt: skip

_HALF, _FLOAT, _I16, _I32 = ir.HalfType(), ir.FloatType(), ir.IntType(16), ir.IntType(32)

# Operators: on two registers of one type, or on a register and a number that stands for all its lanes.

for _symbol, _integers, _floats, _x86, _arm, _beyond in (
    (operator.add, "add", "fadd", "vpadd{w}|vaddps", "add|fadd", "wraps"),
    (operator.sub, "sub", "fsub", "vpsub{w}|vsubps", "sub|fsub", "wraps"),
    (operator.mul, "mul", "fmul", "vpmull{w}|vmulps", "mul|fmul", "wraps"),
    (operator.truediv, None, "fdiv", "|vdivps", "|fdiv", "wraps"),
    (operator.and_, "and_", None, "vpand", "and", "drops"),
    (operator.or_, "or_", None, "vpor", "orr", "drops"),
    (operator.xor, "xor", None, "vpxor", "eor", "drops"),
    (operator.lshift, "shl", None, "vpsll{w}", "shl", "drops"),
    (operator.rshift, "shr", None, "vpsr{a}{w}", "{s}shr", "drops"),
):
    operator_instruction(_symbol, _integers, _floats, _x86, _arm, _beyond)


# Integers


def _andnot(context, builder, sig, mask, v):
    return builder.and_(builder.not_(mask), v)


@instruction(lambda mask, v: alike(mask, v) if not getattr(v, "is_float", True) else None, _andnot, "vpandn", "bic")
def andnot(mask, v):
    """v where the mask's bits are 0, and 0 where they are 1."""
    return ~mask & v


@instruction(i8x32(i8x32, i8x32), "llvm.x86.avx2.psign.b", x86="vpsignb", arm="")
def sign(v, s):
    """v where s > 0, -v where s < 0, 0 where s is 0. -(-128) does not fit into int8 and stays -128."""
    return wide(v) * np.sign(s)


def _either(which):
    """LLVM: a where a `which` b, else b."""

    def emit(context, builder, sig, a, b):
        compare = builder.fcmp_ordered if sig.return_type.is_float else builder.icmp_signed
        return builder.select(compare(which, a, b), a, b)

    return emit


def _signed(a, b):
    return alike(a, b) if isinstance(a, Register) and (a.is_signed or a.is_float) else None


@instruction(_signed, _either(">"), "vpmaxs{w}|vmaxps", "smax|")
def maximum(a, b):
    """The larger of each two signed integers or floats; b where one is NaN."""
    return np.where(a > b, a, b)


@instruction(_signed, _either("<"), "vpmins{w}|vminps", "smin|")
def minimum(a, b):
    """The smaller of each two signed integers or floats; b where one is NaN."""
    return np.where(a < b, a, b)


def _in_halves(a, b):
    """AVX2 packs within each 128-bit half: a's low half, b's low half, a's high half, b's high half."""
    (a_low, a_high), (b_low, b_high) = np.split(wide(a), 2), np.split(wide(b), 2)
    return np.concatenate([a_low, b_low, a_high, b_high])


@instruction(i16x16(i32x8, i32x8), "llvm.x86.avx2.packssdw", x86="vpackssdw", arm="", beyond="saturates")
def pack_i16(a, b):
    """int32 lanes to int16, saturated; in the order a 0-3, b 0-3, a 4-7, b 4-7."""
    return _in_halves(a, b)


@instruction(i8x32(i16x16, i16x16), "llvm.x86.avx2.packsswb", x86="vpacksswb", arm="", beyond="saturates")
def pack_i8(a, b):
    """int16 lanes to int8, saturated; in the order a 0-7, b 0-7, a 8-15, b 8-15."""
    return _in_halves(a, b)


# Floats


def _to_f32(context, builder, sig, v):
    return builder.sitofp(v, sig.return_type.llvm)


@instruction(one_register(lambda v: v.of("f32") if v.element == "i32" else None), _to_f32, x86="vcvtdq2ps", arm="scvtf")
def to_f32(v):
    """int32 lanes as float32, rounded half to even."""
    return v.astype(np.float32)


def _fmadd(context, builder, sig, a, b, c):
    lanes = f"v{a.type.count}" if isinstance(a.type, ir.VectorType) else ""
    return call_llvm(builder, f"llvm.fma.{lanes}f32", a.type, a, b, c)


@instruction(
    lambda a, b, c: alike(a, b, c) if getattr(a, "is_float", False) else None, _fmadd, x86="vfmadd", arm="fmla"
)
def fmadd(a, b, c):
    """a * b + c, rounded once."""
    product = a.astype(np.float64) * b  # exact: 24 + 24 bits
    total = product + c
    other = total - product
    rest = (product - (total - other)) + (c - other)  # what rounding to double has lost, exactly
    # Rounding twice could round a tie the wrong way. A 1 in the last bit of the double says that more follows.
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (rest != 0) & (bits & 1 == 0)
    bits = bits + np.where(inexact, np.where((rest > 0) == (total > 0), 1, -1), 0)
    return bits.view(np.float64).astype(np.float32)


def _add_pair(context, builder, sig, v):
    first, second = (builder.extract_element(v, ir.Constant(_I32, lane)) for lane in (0, 1))
    return builder.fadd(first, second)


def _add_pair_types(v):
    return signature(types.float32, v) if v == Register("f32", 2) else None


@instruction(_add_pair_types, _add_pair, x86="vaddss", arm="faddp")
def add_pair(v):
    """Lane 0 + lane 1: a scalar."""
    return v[0] + v[1]


def _round(context, builder, sig, v):
    name = "llvm.x86.avx.cvt.ps2dq.256" if sig.return_type.lanes == 8 else "llvm.aarch64.neon.fcvtns.v4i32.v4f32"
    return call_llvm(builder, name, sig.return_type.llvm, v)


@instruction(
    one_register(lambda v: v.of("i32") if v.is_float and v.lanes in (4, 8) else None), _round, "vcvtps2dq", "fcvtns"
)
def round_to_i32(v):
    """float32 lanes (8 on x86, 4 on ARM) rounded to the nearest integer, half to even; they must be within int32."""
    return np.rint(v).astype(np.int32)


# 16-bit floats


def _f16_to_f32_types(bits):
    if bits == types.uint16:
        return signature(types.float32, bits)
    if isinstance(bits, Register) and bits.element == "u16":
        return signature(Register("f32", bits.lanes), bits)


def _f16_to_f32(context, builder, sig, bits):
    half = ir.VectorType(_HALF, bits.type.count) if isinstance(bits.type, ir.VectorType) else _HALF
    return builder.fpext(builder.bitcast(bits, half), context.get_value_type(sig.return_type))


@instruction(_f16_to_f32_types, _f16_to_f32, x86="vcvtph2ps", arm="fcvtl")
def f16_to_f32(bits):
    """float32 value of the f16 whose 16 bits are `bits` (uint16), or of each lane of them."""
    return bits.view(np.float16).astype(np.float32)


def _f32_to_f16(context, builder, sig, value):
    return builder.bitcast(builder.fptrunc(value, _HALF), _I16)


@instruction(types.uint16(types.float32), _f32_to_f16, x86="vcvtps2ph", arm="fcvt")
def f32_to_f16(value):
    """The 16 bits (uint16) of float32 `value` rounded to f16, half to even; overflow becomes infinity."""
    return np.float32(value).astype(np.float16).view(np.uint16)
