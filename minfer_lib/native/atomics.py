"""Words that several threads read and write. Each function is one LLVM instruction or one call."""

from __future__ import annotations

import ctypes
import os
import platform
import sys

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_I32, _I64, _VOID = ir.IntType(32), ir.IntType(64), ir.VoidType()


def _word(builder, address):
    return builder.inttoptr(address, _I64.as_pointer())


@intrinsic
def atomic_load(typingctx, address):
    """The int64 at `address`; what was written before it was stored is seen after."""

    def codegen(context, builder, signature, args):
        return builder.load_atomic(_word(builder, args[0]), "seq_cst", 8)

    return types.int64(types.int64), codegen


@intrinsic
def atomic_store(typingctx, address, value):
    """Store an int64; whoever loads it sees everything that was written before."""

    def codegen(context, builder, signature, args):
        builder.store_atomic(args[1], _word(builder, args[0]), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def fetch_add(typingctx, address, value):
    """Add to the int64 at `address` in one step that no other thread can divide -> what was there before."""

    def codegen(context, builder, signature, args):
        return builder.atomic_rmw("add", _word(builder, args[0]), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def compare_and_swap(typingctx, address, expected, new):
    """If the int64 at `address` is `expected`, make it `new`, in one step -> whether it was."""

    def codegen(context, builder, signature, args):
        pair = builder.cmpxchg(_word(builder, args[0]), args[1], args[2], "seq_cst", "seq_cst")
        return builder.extract_value(pair, 1)

    return types.boolean(types.int64, types.int64, types.int64), codegen


def _call_external(builder, name, result, operands):
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [value.type for value in operands]), name)
    return builder.call(function, operands)


@intrinsic
def pause(typingctx):
    """Tell the core that this is a waiting loop: it leaves its pipeline to the other thread on it."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    name, operands = ("llvm.x86.sse2.pause", []) if x86 else ("llvm.aarch64.hint", [ir.Constant(_I32, 1)])

    def codegen(context, builder, signature, args):
        _call_external(builder, name, _VOID, operands)
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def yield_core(typingctx):
    """Let another thread have this core: sched_yield, on Windows SwitchToThread."""
    name = "SwitchToThread" if os.name == "nt" else "sched_yield"

    def codegen(context, builder, signature, args):
        _call_external(builder, name, _I32, [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def current_core(typingctx):
    """The number of the core that this thread runs on, int32; -1 where the system does not tell."""

    def codegen(context, builder, signature, args):
        if not sys.platform.startswith("linux"):
            return ir.Constant(_I32, -1)
        return _call_external(builder, "sched_getcpu", _I32, [])

    return types.int32(), codegen


if os.name == "nt":  # elsewhere the C library is loaded, and LLVM finds the function in it
    _switch = ctypes.windll.kernel32.SwitchToThread
    llvm.add_symbol("SwitchToThread", ctypes.cast(_switch, ctypes.c_void_p).value)
