"""Memory and code named by an address, an int64: what threads share that share no Python object."""

from __future__ import annotations

from functools import cache

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

from minfer_lib.native.jit import kernel

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_POINTER = ir.IntType(8).as_pointer()


@intrinsic
def pointer(typingctx, address):
    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], _POINTER)

    return types.voidptr(types.int64), codegen


def int64_record(*names: str) -> np.dtype:
    """A record of int64 fields: addresses, sizes and flags that Python writes and compiled code reads by name."""
    return np.dtype([(name, np.int64) for name in names])


def record_of(dtype: np.dtype, **fields: int | float) -> np.ndarray:
    """dtype[1] with these fields; every field must be given, so that none is forgotten."""
    record = np.zeros(1, dtype)
    if set(fields) != set(dtype.names):
        raise TypeError(f"fields {sorted(set(fields) ^ set(dtype.names))} are missing or not of the record.")
    for name, value in fields.items():
        record[name] = value
    return record


@kernel
def bytes_at(address, n):
    """uint8[n]: the memory from `address` on."""
    return carray(pointer(address), n, np.uint8)


@kernel
def words_at(address, n):
    """int64[n]: the memory from `address` on."""
    return carray(pointer(address), n, np.int64)


@kernel
def floats_at(address, rows, columns):
    """float32[rows, columns]: the memory from `address` on."""
    return carray(pointer(address), (rows, columns), np.float32)


def aligned_bytes(n: int) -> np.ndarray:
    """uint8[n], zeros, from the beginning of a cache line on."""
    raw = np.zeros(n + 63, np.uint8)
    first = -raw.ctypes.data % 64
    return raw[first : first + n]


def aligned_floats(rows: int, columns: int) -> np.ndarray:
    """float32[rows, columns], zeros, from the beginning of a cache line on: one store of 64 bytes then is one line."""
    return aligned_bytes(4 * rows * columns).view(np.float32).reshape(rows, columns)


@cache
def native_address(dispatcher, *argument_types) -> int:
    """Where the machine code of a kernel for these argument types lies; compiled, or read from the cache."""
    dispatcher.compile(argument_types)
    compiled = dispatcher.overloads[argument_types]
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def call_native(context, builder, signature, args):
    """numba's own convention: a place for the result, one for an exception (kernels raise none), the arguments."""
    returns = signature.return_type != types.void
    result = builder.alloca(_I64 if returns else _POINTER)
    operands = [result, builder.alloca(_POINTER), *args[1:]]
    function = ir.FunctionType(_I32, [value.type for value in operands])
    builder.call(builder.inttoptr(args[0], function.as_pointer()), operands)
    return builder.load(result) if returns else context.get_dummy_value()
