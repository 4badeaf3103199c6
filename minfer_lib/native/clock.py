"""The system's steady clock, in compiled code."""

from __future__ import annotations

import ctypes
import os
import time

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I32, _I64 = ir.IntType(32), ir.IntType(64)


@intrinsic
def ticks(typingctx):
    """int64: what the clock shows, in units of TICK_NS nanoseconds. One call of the C library, about 25 ns."""

    def posix(context, builder, signature, args):
        timespec = ir.ArrayType(_I64, 2)  # seconds, nanoseconds
        now = cgutils.alloca_once(builder, timespec)
        kind = ir.FunctionType(_I32, [_I32, timespec.as_pointer()])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        builder.call(function, [ir.Constant(_I32, time.CLOCK_MONOTONIC), now])
        seconds, rest = (builder.load(cgutils.gep_inbounds(builder, now, 0, i)) for i in range(2))
        return builder.add(builder.mul(seconds, ir.Constant(_I64, 10**9)), rest)

    def windows(context, builder, signature, args):
        now = cgutils.alloca_once(builder, _I64)
        kind = ir.FunctionType(_I32, [_I64.as_pointer()])
        function = cgutils.get_or_insert_function(builder.module, kind, "QueryPerformanceCounter")
        builder.call(function, [now])
        return builder.load(now)

    return types.int64(), windows if os.name == "nt" else posix


TICK_NS = 1.0
if os.name == "nt":
    _per_second = ctypes.c_int64()
    ctypes.windll.kernel32.QueryPerformanceFrequency(ctypes.byref(_per_second))
    TICK_NS = 1e9 / _per_second.value
    _query = ctypes.windll.kernel32.QueryPerformanceCounter
    llvm.add_symbol("QueryPerformanceCounter", ctypes.cast(_query, ctypes.c_void_p).value)
