"""Reading lanes anew: the same bits as other lanes, which is no instruction at all, and lanes twice or half as wide."""

from __future__ import annotations

import numpy as np

from minfer_lib.simd.instruction import instruction, one_register, wide
from minfer_lib.simd.registers import Register


def _view(element):
    def emit(context, builder, sig, v):
        return builder.bitcast(v, sig.return_type.llvm)

    return instruction(one_register(lambda v: v.of(element)), emit)


@_view("u8")
def as_u8(v):
    """The same bits, read as uint8 lanes."""
    return v.view(np.uint8)


@_view("i8")
def as_i8(v):
    """The same bits, read as int8 lanes."""
    return v.view(np.int8)


@_view("u16")
def as_u16(v):
    """The same bits, read as uint16 lanes."""
    return v.view(np.uint16)


@_view("i16")
def as_i16(v):
    """The same bits, read as int16 lanes."""
    return v.view(np.int16)


@_view("i32")
def as_i32(v):
    """The same bits, read as int32 lanes."""
    return v.view(np.int32)


@_view("f32")
def as_f32(v):
    """The same bits, read as float32 lanes."""
    return v.view(np.float32)


_TWICE = {"u8": "u16", "i8": "i16", "u16": "u32", "i16": "i32"}


def _widen(context, builder, sig, v):
    extend = builder.sext if sig.return_type.is_signed else builder.zext
    return extend(v, sig.return_type.llvm)


@instruction(
    one_register(lambda v: Register(_TWICE[v.element], v.lanes) if v.element in _TWICE else None),
    _widen,
    x86="vpmov{x}x",
    arm="{s}xtl",
)
def widen(v):
    """Each integer in a lane twice as wide: a register of twice the size."""
    return wide(v)


_HALF = {"u32": "u16", "i32": "i16", "u16": "u8", "i16": "i8"}


def _narrow(context, builder, sig, v):
    return builder.trunc(v, sig.return_type.llvm)


@instruction(
    one_register(lambda v: Register(_HALF[v.element], v.lanes) if v.element in _HALF else None),
    _narrow,
    x86="vpmov",
    arm="xtn",
    beyond="drops",
)
def narrow(v):
    """Each integer in a lane half as wide, its upper bits dropped: a register of half the size."""
    return wide(v)
