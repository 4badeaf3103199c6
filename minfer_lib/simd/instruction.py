"""`@instruction`: one function is one instruction. Its typing and LLVM are told to numba, its body is its meaning.

The decorated function computes the result with NumPy, one array a register, in int64 where a lane might not hold it;
how the result then fits into the lanes (it wraps, or it saturates) is said once in the decorator. numba compiles the
LLVM; the stepper (`step.py`) runs the meaning, and sees where a lane did not fit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature
from numba.extending import intrinsic

from minfer_lib.simd.registers import Register, splat_value

INSTRUCTIONS: dict[object, Instruction] = {}  # what a kernel's source names (an intrinsic, an operator) -> all about it


@dataclass(frozen=True)
class Instruction:
    name: str
    typing: Callable[..., Signature | None]  # numba types of the operands -> signature; None: not for such operands
    meaning: Callable  # operands as NumPy arrays and scalars -> the exact result
    x86: str  # mnemonics; see `mnemonic`
    arm: str
    beyond: str  # what a result does that its lane cannot hold: "wraps", "saturates", or "drops" bits on purpose

    def mnemonic(self, isa: str, register: Register | None) -> str:
        """On kernel set `isa` for lanes like `register`'s (None: scalars); "" where nothing is executed.

        "vpadd{w}|vaddps" is the integer and the float form; {w} stands for the width of a lane, {s} for s or u
        (signed or not), {a} for a or l (arithmetic or logical), {x} for s or z (how a lane is extended).
        """
        integer, bar, floating = (self.arm if isa == "neon" else self.x86).partition("|")
        if register is None:
            return integer
        if register.is_float and bar:
            return floating
        s, a, x = ("s", "a", "s") if register.is_signed else ("u", "l", "z")
        return integer.format(w="?bw?d"[register.dtype.itemsize], s=s, a=a, x=x)


def instruction(typing, llvm, x86: str = "", arm: str | None = None, beyond: str = "wraps") -> Callable:
    """Decorator: the function below it is the meaning of an instruction; the result is usable in compiled kernels.

    typing: the one signature, as `i16x16(u8x32, i8x32)`, or a function of the operands' types that gives the signature.
    llvm: the name of an LLVM intrinsic, or emit(context, builder, signature, *values) -> value.
    x86, arm: the mnemonics (arm: as x86 unless given).
    """

    def decorate(meaning: Callable):
        rule = (lambda *operands: _fixed(typing, operands)) if isinstance(typing, Signature) else typing

        def define(typingctx, *operands):
            found = rule(*operands)
            if found is None:
                return None
            return found, lambda context, builder, sig, values: _emit(llvm, context, builder, sig, values)

        parameters = inspect.signature(meaning).parameters.values()
        context = inspect.Parameter("typingctx", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        define.__signature__ = inspect.Signature([context, *parameters])
        define.__name__, define.__doc__, define.__module__ = meaning.__name__, meaning.__doc__, meaning.__module__
        handle = intrinsic(define)
        INSTRUCTIONS[handle] = Instruction(meaning.__name__, rule, meaning, x86, x86 if arm is None else arm, beyond)
        return handle

    return decorate


def _fixed(found: Signature, operands: tuple) -> Signature | None:
    if len(operands) != len(found.args):
        return None
    pairs = zip(operands, found.args, strict=True)
    return found if all(have == want for have, want in pairs if isinstance(want, Register)) else None


def alike(*operands):
    """Typing: all operands, and the result, are registers of one type."""
    register = operands[0]
    return signature(register, *operands) if isinstance(register, Register) and {*operands} == {register} else None


def one_register(result: Callable):
    """Typing: one register in, and out of it `result(register)`; None where that gives None."""

    def typing(v):
        out = result(v) if isinstance(v, Register) else None
        return signature(out, v) if out else None

    return typing


def _emit(llvm, context, builder, sig, values):
    if callable(llvm):
        return llvm(context, builder, sig, *values)
    return call_llvm(builder, llvm, context.get_value_type(sig.return_type), *values)


def call_llvm(builder, name: str, result: ir.Type, *values):
    """Call LLVM's intrinsic `name`; its type is taken from the values."""
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [value.type for value in values]), name)
    return builder.call(function, values)


def wide(values):
    """Integers as int64, so that the arithmetic of one instruction cannot overflow; floats as they are."""
    values = np.asarray(values)
    return values.astype(np.int64) if values.dtype.kind in "iu" else values


def operator_instruction(symbol, integers: str | None, floats: str | None, x86: str, arm: str, beyond: str) -> None:
    """`a symbol b` on two registers of one type, or on a register and a scalar that stands for all its lanes.

    symbol: a function of the module `operator`, which is the meaning too. integers, floats: the llvmlite builder's
    names of it, "shr" being the arithmetic or the logical one by the register's sign; None: not for these.
    """

    def typing(a, b):
        if not isinstance(a, Register) or (floats if a.is_float else integers) is None:
            return None
        if b == a:
            return signature(a, a, a)
        if isinstance(b, types.Integer) or (a.is_float and isinstance(b, types.Float)):
            return signature(a, a, types.unliteral(b))
        return None

    @infer_global(symbol)
    class Operator(AbstractTemplate):
        def generic(self, args, kws):
            return typing(*args) if len(args) == 2 else None

    def lower(context, builder, sig, values):
        register, second = sig.args
        a, b = values
        if second != register:
            b = splat_value(builder, register, context.cast(builder, b, second, register.scalar))
        name = floats if register.is_float else integers
        if name == "shr":
            name = "ashr" if register.is_signed else "lshr"
        return getattr(builder, name)(a, b)

    for second in (Register, types.Integer, types.Float):
        lower_builtin(symbol, Register, second)(lower)

    def meaning(a, b):
        return symbol(wide(a), a.dtype.type(b) if a.dtype.kind == "f" else wide(b))

    INSTRUCTIONS[symbol] = Instruction(symbol.__name__.strip("_"), typing, meaning, x86, arm, beyond)
