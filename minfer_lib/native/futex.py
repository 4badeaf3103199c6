"""Sleep until another thread changes a word, in compiled code: the system's call for it, without Python and its GIL.

    waiter:  while the word is not what it should be: wait_on(word's address, what it was seen to be, …)
    waker:   change the word, then wake_all(word's address)

No wake is lost in between: the system compares the word with what the waiter saw, and puts the thread to sleep, in one
step. Linux calls this a futex, Windows WaitOnAddress, macOS (from 14.4 on) os_sync_wait_on_address.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I32, _I64, _VOID = ir.IntType(32), ir.IntType(64), ir.VoidType()
_NS_A_MS = 10**6

_LINUX_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine())  # the number of the system call
_WAIT_PRIVATE, _WAKE_PRIVATE, _EVERYBODY = 128, 129, 2**31 - 1
_MACH_ABSOLUTE_TIME = 32


def _constants(kind: ir.Type, *values: int) -> list[ir.Constant]:
    return [ir.Constant(kind, value) for value in values]


def _call(builder, name, result, operands, var_arg=False):
    kinds = [value.type for value in operands]
    kind = ir.FunctionType(result, kinds[:1] if var_arg else kinds, var_arg)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), operands)


class _Linux:
    """Through the C library's variadic `syscall`. It takes int64; the kernel reads the low half of what is an int."""

    @staticmethod
    def wait(builder, address, expected, timeout_ns):
        timespec = cgutils.alloca_once(builder, ir.ArrayType(_I64, 2))  # seconds, nanoseconds
        second = ir.Constant(_I64, 10**9)
        builder.store(builder.sdiv(timeout_ns, second), cgutils.gep_inbounds(builder, timespec, 0, 0))
        builder.store(builder.srem(timeout_ns, second), cgutils.gep_inbounds(builder, timespec, 0, 1))
        number, wait, none = _constants(_I64, _LINUX_FUTEX, _WAIT_PRIVATE, 0)
        operands = [number, address, wait, expected, builder.ptrtoint(timespec, _I64), none, none]
        _call(builder, "syscall", _I64, operands, var_arg=True)

    @staticmethod
    def wake(builder, address):
        number, wake, everybody = _constants(_I64, _LINUX_FUTEX, _WAKE_PRIVATE, _EVERYBODY)
        _call(builder, "syscall", _I64, [number, address, wake, everybody], var_arg=True)


class _Windows:
    @staticmethod
    def wait(builder, address, expected, timeout_ns):
        compared = cgutils.alloca_once(builder, _I32)
        builder.store(builder.trunc(expected, _I32), compared)
        below, ms, most = _constants(_I64, _NS_A_MS - 1, _NS_A_MS, 2**31)
        rounded = builder.sdiv(builder.add(timeout_ns, below), ms)  # up: 0 would not sleep at all
        rounded = builder.select(builder.icmp_signed("<", rounded, most), rounded, most)
        size = ir.Constant(_I64, 4)
        operands = [address, builder.ptrtoint(compared, _I64), size, builder.trunc(rounded, _I32)]
        _call(builder, "WaitOnAddress", _I32, operands)

    @staticmethod
    def wake(builder, address):
        _call(builder, "WakeByAddressAll", _VOID, [address])


class _Mac:
    @staticmethod
    def wait(builder, address, expected, timeout_ns):
        size, one, low = _constants(_I64, 4, 1, 0xFFFFFFFF)
        flags, clock = _constants(_I32, 0, _MACH_ABSOLUTE_TIME)
        timeout = builder.select(builder.icmp_signed(">", timeout_ns, one), timeout_ns, one)  # 0 is an error
        operands = [address, builder.and_(expected, low), size, flags, clock, timeout]
        _call(builder, "os_sync_wait_on_address_with_timeout", _I32, operands)

    @staticmethod
    def wake(builder, address):
        operands = [address, ir.Constant(_I64, 4), ir.Constant(_I32, 0)]
        _call(builder, "os_sync_wake_by_address_all", _I32, operands)


class _Yielding:
    """Where the system has no such call: let other threads run, then look again. Nobody sleeps, nobody is woken."""

    @staticmethod
    def wait(builder, address, expected, timeout_ns):
        _call(builder, "sched_yield", _I32, [])

    @staticmethod
    def wake(builder, address):
        pass


def _system():
    if sys.platform.startswith("linux") and _LINUX_FUTEX:
        return _Linux
    if os.name == "nt":
        library = ctypes.WinDLL("api-ms-win-core-synch-l1-2-0")  # Windows 8 and later; LLVM does not search in it
        for name in ("WaitOnAddress", "WakeByAddressAll"):
            llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
        return _Windows
    if sys.platform == "darwin" and hasattr(ctypes.CDLL(None), "os_sync_wait_on_address_with_timeout"):
        return _Mac
    return _Yielding


_SYSTEM = _system()
SLEEPS = _SYSTEM is not _Yielding  # whether a thread in wait_on leaves its core


@intrinsic
def wait_on(typingctx, address, expected, timeout_ns):
    """Sleep while the int32 at `address` is `expected`, at most timeout_ns nanoseconds (from 0 on).

    Returns when it is woken, when the time is over, at once where the word is another, and sometimes for no reason:
    look at the word again. `address` may be that of an int64: its low half is compared with that of `expected`.
    """

    def codegen(context, builder, signature, args):
        _SYSTEM.wait(builder, *args)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def wake_all(typingctx, address):
    """Wake every thread of this process that sleeps in wait_on(address, …)."""

    def codegen(context, builder, signature, args):
        _SYSTEM.wake(builder, *args)
        return context.get_dummy_value()

    return types.void(types.int64), codegen
