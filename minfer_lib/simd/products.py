"""Products of integers and their sums, exact in wider lanes: what a dot product of quantized blocks is made of."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core.typing.templates import signature

from minfer_lib.simd.instruction import alike, call_llvm, instruction, wide
from minfer_lib.simd.registers import Register, i8x16, i32x4


def _sums(products, count):
    return products.reshape(-1, count).sum(axis=1)


def _pairs(a_lanes, b_lanes, sums, names):
    """(typing, LLVM) of: registers of such lanes -> a sum a pair; names: bits -> LLVM's name for that size."""

    def typing(a, b):
        fits = isinstance(a, Register) and a.element == a_lanes and a.bits in names and b == a.of(b_lanes)
        return signature(a.of(sums), a, b) if fits else None

    def emit(context, builder, sig, a, b):
        return call_llvm(builder, names[sig.return_type.bits], sig.return_type.llvm, a, b)

    return typing, emit


_MADDUBS = _pairs("u8", "i8", "i16", {256: "llvm.x86.avx2.pmadd.ub.sw", 512: "llvm.x86.avx512.pmaddubs.w.512"})
_MADD = _pairs("i16", "i16", "i32", {256: "llvm.x86.avx2.pmadd.wd", 512: "llvm.x86.avx512.pmaddw.d.512"})


@instruction(*_MADDUBS, x86="vpmaddubsw", arm="", beyond="saturates")
def maddubs(u, s):
    """Lane k: u[2k] * s[2k] + u[2k + 1] * s[2k + 1], unsigned times signed, saturated to int16."""
    return _sums(wide(u) * wide(s), 2)


@instruction(*_MADD, x86="vpmaddwd", arm="")
def madd(a, b):
    """Lane k: a[2k] * b[2k] + a[2k + 1] * b[2k + 1], in int32."""
    return _sums(wide(a) * wide(b), 2)


def _dot(a_lanes, b_lanes, name):
    """(typing, LLVM) of: int32 lanes, and two registers of such lanes -> each int32 + the dot of what lies there."""

    def typing(acc, a, b):
        fits = isinstance(acc, Register) and acc.element == "i32" and (a, b) == (acc.of(a_lanes), acc.of(b_lanes))
        return signature(acc, acc, a, b) if fits else None

    def emit(context, builder, sig, acc, a, b):
        if llvm.llvm_version_info < (22,):  # the intrinsic's type had int32 lanes only
            a, b = builder.bitcast(a, acc.type), builder.bitcast(b, acc.type)
        return call_llvm(builder, f"llvm.x86.avx512.{name}.{sig.return_type.bits}", acc.type, acc, a, b)

    return typing, emit


@instruction(*_dot("u8", "i8", "vpdpbusd"), x86="vpdpbusd", arm="")
def dpbusd(acc, u, s):
    """Lane k: acc[k] + the dot of bytes 4k to 4k + 3, unsigned times signed, in int32."""
    return wide(acc) + _sums(wide(u) * wide(s), 4)


@instruction(*_dot("i16", "i16", "vpdpwssd"), x86="vpdpwssd", arm="")
def dpwssd(acc, a, b):
    """Lane k: acc[k] + a[2k] * b[2k] + a[2k + 1] * b[2k + 1], in int32: madd and the sum in one."""
    return wide(acc) + _sums(wide(a) * wide(b), 2)


@instruction(i32x4(i32x4, i8x16, i8x16), "llvm.aarch64.neon.sdot.v4i32.v16i8", x86="", arm="sdot")
def sdot(acc, a, b):
    """Lane k: acc[k] + the dot of bytes 4k to 4k + 3, signed times signed, in int32."""
    return wide(acc) + _sums(wide(a) * wide(b), 4)


def _add_pairs(context, builder, sig, a, b):
    def every_other(first):
        fours = range(0, sig.return_type.lanes, 4)
        mask = [k + first + of for k in fours for of in (0, 2, a.type.count, a.type.count + 2)]
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(mask)), mask))

    return builder.add(every_other(0), every_other(1))


@instruction(lambda a, b: alike(a, b) if getattr(a, "element", "") == "i32" else None, _add_pairs, "vphaddd", "addp")
def add_pairs(a, b):
    """Within each 128 bits: a 0 + 1, a 2 + 3, b 0 + 1, b 2 + 3. With AVX-512 it is two vshufps and a vpaddd."""
    return np.concatenate([_sums(wide(v), 2).reshape(-1, 2) for v in (a, b)], axis=1).reshape(-1)
