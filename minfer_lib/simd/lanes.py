"""Moving lanes about: nothing here computes. `views.py` reads them anew."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import signature

from minfer_lib.simd.instruction import alike, call_llvm, instruction, one_register
from minfer_lib.simd.registers import Register, RegisterName, i8x32, i32x8, splat_value, u8x16, u8x32, u8x64


def _mask(lanes):
    return ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes))


def _splat_types(register, value):
    if isinstance(register, RegisterName):
        return signature(register.register, register, register.register.scalar)


def _splat(context, builder, sig, register, value):
    return splat_value(builder, sig.return_type, value)


@instruction(_splat_types, _splat, x86="vpbroadcast{w}|vbroadcastss", arm="dup")
def splat(register, value):
    """`value` in every lane: `splat(f32x8, d)`."""
    return np.full(register.lanes, value, register.dtype)


def _concat_types(low, high):
    if alike(low, high):
        return signature(Register(low.element, 2 * low.lanes), low, high)


def _concat(context, builder, sig, low, high):
    return builder.shuffle_vector(low, high, _mask(range(sig.return_type.lanes)))


@instruction(_concat_types, _concat, x86="vinserti128|vinsertf128", arm="")
def concat(low, high):
    """A register of twice the size: the lanes of `low`, then those of `high`."""
    return np.concatenate([low, high])


def _half(v):
    return Register(v.element, v.lanes // 2) if v.lanes > 2 else None


def _part(second):
    def emit(context, builder, sig, v):
        lanes = sig.return_type.lanes
        return builder.shuffle_vector(v, v, _mask(range(second * lanes, (second + 1) * lanes)))

    return emit


@instruction(one_register(_half), _part(0))
def low_half(v):
    """The first half of the lanes: the same register, read as a smaller one."""
    return v[: v.size // 2]


@instruction(one_register(_half), _part(1), x86="vextracti128|vextractf128", arm="ext")
def high_half(v):
    """The second half of the lanes."""
    return v[v.size // 2 :]


def _four_bytes(v):
    return v if v.dtype.itemsize == 4 else None


def _odd_lanes(context, builder, sig, v):
    return builder.shuffle_vector(v, v, _mask([k | 1 for k in range(sig.return_type.lanes)]))


@instruction(one_register(_four_bytes), _odd_lanes, x86="vpshufd|vmovshdup", arm="trn2")
def odd_lanes(v):
    """Each lane of an odd number twice: lanes 1, 1, 3, 3, 5, 5 …, of 32 bits each."""
    return np.repeat(v[1::2], 2)


def _fourths(context, builder, sig, v):
    return builder.shuffle_vector(v, v, _mask(range(0, v.type.count, 4)))


@instruction(
    one_register(lambda v: Register(v.element, v.lanes // 4) if v.lanes == 16 else None), _fourths, "vpermd", ""
)
def fourths(v):
    """Lanes 0, 4, 8 and 12."""
    return v[::4]


def _fourfold(context, builder, sig, v):
    return builder.shuffle_vector(v, v, _mask([k // 4 for k in range(sig.return_type.lanes)]))


@instruction(
    one_register(lambda v: Register(v.element, 16) if v.lanes == 4 and _four_bytes(v) else None),
    _fourfold,
    "vpermps",
    "",
)
def fourfold(v):
    """Each of four lanes four times: lanes 0, 0, 0, 0, 1, 1, 1, 1 …"""
    return np.repeat(v, 4)


_EVEN_EIGHTS = (0, 2, 4, 6, 1, 3, 5, 7)


def _even_eights_first(context, builder, sig, v):
    eights = builder.bitcast(v, ir.VectorType(ir.IntType(64), 8))
    return builder.bitcast(builder.shuffle_vector(eights, eights, _mask(_EVEN_EIGHTS)), v.type)


@instruction(u8x64(u8x64), _even_eights_first, x86="vpermq", arm="")
def even_eights_first(v):
    """Eight bytes at a time: those of an even number, then those of an odd one."""
    return v.reshape(8, 8)[list(_EVEN_EIGHTS)].reshape(-1)


_ZERO = ir.Constant(ir.IntType(32), 0)


def _lane(context, builder, sig, v, k=_ZERO):
    return builder.extract_element(v, k)


@instruction(lambda v: signature(v.scalar, v) if isinstance(v, Register) else None, _lane, x86="vmovd|", arm="fmov|")
def first(v):
    """Lane 0, as a scalar. A float32 needs no instruction for that."""
    return v[0]


def _lane_types(v, k):
    if isinstance(v, Register) and isinstance(k, types.Integer):
        return signature(v.scalar, v, types.int64)


@instruction(_lane_types, _lane, x86="vpextr{w}|vextractps", arm="umov|mov")
def lane(v, k):
    """Lane k, as a scalar; k is known when the kernel is compiled."""
    return v[k]


def _four_types(a, b, c, d):
    found = {types.uint16: "u16", types.int32: "i32", types.float32: "f32"}.get(a)
    return signature(Register(found, 4), a, b, c, d) if found and {a, b, c, d} == {a} else None


def _four(context, builder, sig, *scalars):
    v = ir.Constant(sig.return_type.llvm, ir.Undefined)
    for k, scalar in enumerate(scalars):
        v = builder.insert_element(v, scalar, ir.Constant(ir.IntType(32), k))
    return v


@instruction(_four_types, _four, x86="vpinsr{w}|vinsertps", arm="ins")
def four(a, b, c, d):
    """Four scalars of one type (uint16, int32 or float32) in the lanes of a register."""
    return np.array([a, b, c, d])


_SHUFFLES = {u8x32: "llvm.x86.avx2.pshuf.b", u8x64: "llvm.x86.avx512.pshuf.b.512"}


def _shuffle_types(v, index):
    return signature(v, v, index) if v in _SHUFFLES and index == v else None


def _shuffle(context, builder, sig, v, index):
    return call_llvm(builder, _SHUFFLES[sig.return_type], v.type, v, index)


@instruction(_shuffle_types, _shuffle, x86="vpshufb", arm="")
def shuffle(v, index):
    """Byte k: byte index[k] of those 16 of v that k is among, as 4 bits count them; 0 where index[k] is 128 or more."""
    sixteens = np.arange(v.size) & ~15
    return np.where(index & 128, 0, v[sixteens | (index & 15)])


@instruction(u8x16(u8x16, u8x16), "llvm.aarch64.neon.tbl1.v16i8", x86="", arm="tbl")
def lookup(table, index):
    """Byte k: byte index[k] of the table; 0 where index[k] is 16 or more."""
    return np.where(index < 16, table[index & 15], 0)


_PACKED = (0, 4, 1, 5, 2, 6, 3, 7)  # where pack_i16 and then pack_i8 have put each four bytes


def _in_order(context, builder, sig, v):
    fours = builder.bitcast(v, i32x8.llvm)
    return builder.bitcast(builder.shuffle_vector(fours, fours, _mask(_PACKED)), v.type)


@instruction(i8x32(i8x32), _in_order, x86="vpermd", arm="")
def in_order(v):
    """Four registers packed to one by pack_i16 and pack_i8: their lanes put back in order, four bytes at a time."""
    return v.view(np.int32)[list(_PACKED)].view(np.int8)


def _zip(second):
    def emit(context, builder, sig, a, b):
        lanes = sig.return_type.lanes
        places = range(second * lanes // 2, (second + 1) * lanes // 2)
        return builder.shuffle_vector(a, b, _mask([k + side for k in places for side in (0, lanes)]))

    return emit


def _zipped(a, b):
    return np.stack([a, b], axis=1).reshape(-1)


@instruction(alike, _zip(0), x86="vpermt2{w}|vpermt2ps", arm="zip1")
def zip_low(a, b):
    """The first halves of a and b, lane by lane in turns: a 0, b 0, a 1, b 1 …"""
    return _zipped(a, b)[: a.size]


@instruction(alike, _zip(1), x86="vpermt2{w}|vpermt2ps", arm="zip2")
def zip_high(a, b):
    """The second halves of a and b, lane by lane in turns."""
    return _zipped(a, b)[a.size :]


def _byte_mask_types(bits):
    found = {types.uint16: u8x16, types.uint32: u8x32, types.uint64: u8x64}.get(bits)
    return signature(found, bits) if found else None


def _byte_mask(context, builder, sig, bits):
    flags = builder.bitcast(bits, ir.VectorType(ir.IntType(1), sig.return_type.lanes))
    return builder.sext(flags, sig.return_type.llvm)


@instruction(_byte_mask_types, _byte_mask, x86="vpcmpeqb", arm="cmtst")
def byte_mask(bits):
    """255 in lane i where bit i of the uint16, uint32 or uint64 is set, else 0.

    The compiler picks the way: broadcast, vpshufb, vpand and vpcmpeqb with AVX2; a mask register with AVX-512.
    """
    return np.unpackbits(np.atleast_1d(bits).view(np.uint8), bitorder="little") * np.uint8(255)
