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


@intrinsic
def call_job(typingctx, address, argument, part, parts):
    """Call the kernel job(argument, part, parts) -> None, all int64, at native address `address`."""
    return types.void(*[types.int64] * 4), _call


@intrinsic
def call_quantizer(typingctx, address, x, n_tokens, n, out):
    """Call a kernel of four int64 -> int64 at native address `address`."""
    return types.int64(*[types.int64] * 5), _call


@intrinsic
def call_rows(typingctx, address, w, row_bytes, first, last, a, a_row_bytes, n_tokens, n_blocks, out, n_out):
    """Call `rows_at` of some KernelKey, at native address `address`. The key itself is an argument without a value."""

    def codegen(context, builder, signature, args):
        return _call(context, builder, signature, [args[0], ir.Constant(_POINTER, None), *args[1:]])

    return types.void(*[types.int64] * 11), codegen


def _call(context, builder, signature, args):
    """numba's own convention: a place for the result, one for an exception (kernels raise none), the arguments."""
    returns = signature.return_type != types.void
    result = builder.alloca(_I64 if returns else _POINTER)
    operands = [result, builder.alloca(_POINTER), *args[1:]]
    function = ir.FunctionType(_I32, [value.type for value in operands])
    builder.call(builder.inttoptr(args[0], function.as_pointer()), operands)
    return builder.load(result) if returns else context.get_dummy_value()
