"""The operations of ops.py for numba-cuda: each as its PTX instruction. Importing this module needs numba-cuda.

An instruction without `effect` may be moved, merged or dropped by the compiler, as arithmetic and as loads of weights
may: nobody writes them while a kernel runs, which is also what `.nc` promises. Activations are written by the kernel
ahead, perhaps while this one runs already: their loads are without `.nc`, and with `effect` they stay behind the wait.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType

from llvmlite import ir
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import intrinsic

from minfer_lib.gpu import ops
from minfer_lib.simd.step import rebind

BYTES = types.Array(types.uint8, 1, "C")
WORDS64 = types.Array(types.uint64, 1, "C")
WORD, INT, FLOAT, PLACE = types.uint32, types.int32, types.float32, types.int64
WORDS = {n: types.UniTuple(WORD, n) for n in (2, 4)}

_LLVM = {WORD: ir.IntType(32), INT: ir.IntType(32), FLOAT: ir.FloatType(), PLACE: ir.IntType(64)}
_LETTER = {WORD: "r", INT: "r", FLOAT: "f", PLACE: "l"}


def _instruction(asm: str, result: types.Type, *arguments: types.Type, effect: bool = False, shared=()) -> Callable:
    """An instruction as a function. $0 … in `asm` are the results, then the operands; an array and the byte offset
    after it are one operand, the address."""

    def code(context, builder, signature, values):
        operands = _operands(context, builder, signature.args, values, shared)
        results = [] if result is types.void else list(result) if isinstance(result, types.UniTuple) else [result]
        constraints = [f"={_LETTER[type_]}" for type_ in results] + [_LETTER[type_] for type_, _ in operands]
        llvm = [_LLVM[type_] for type_ in results]
        returned = ir.LiteralStructType(llvm) if len(llvm) > 1 else llvm[0] if llvm else ir.VoidType()
        function = ir.FunctionType(returned, [value.type for _, value in operands])
        constraints = ",".join(constraints + ["~{memory}"] * effect)
        value = builder.call(ir.InlineAsm(function, asm, constraints, side_effect=effect), [v for _, v in operands])
        if len(llvm) > 1:
            return context.make_tuple(builder, result, [builder.extract_value(value, i) for i in range(len(llvm))])
        return value if llvm else context.get_dummy_value()

    typed = result(*arguments), code
    none, one, two, three, four, seven = (  # numba wants to see how many operands there are
        lambda context: typed,
        lambda context, a: typed,
        lambda context, a, b: typed,
        lambda context, a, b, c: typed,
        lambda context, a, b, c, d: typed,
        lambda context, a, b, c, d, e, f, g: typed,
    )
    return intrinsic({0: none, 1: one, 2: two, 3: three, 4: four, 7: seven}[len(arguments)])


def _operands(context, builder, arguments, values, shared) -> list[tuple]:
    """(type, LLVM value) of each operand; an array and the offset after it become an address. shared: which arguments
    are arrays in shared memory, where addresses have 32 bits."""
    operands, i = [], 0
    while i < len(values):
        if isinstance(arguments[i], types.Array):
            data = context.make_array(arguments[i])(context, builder, values[i]).data
            if i in shared:
                data = builder.addrspacecast(data, ir.PointerType(data.type.pointee, addrspace=3))
                start = builder.ptrtoint(data, _LLVM[WORD])
                operands.append((WORD, builder.add(start, builder.trunc(values[i + 1], _LLVM[WORD]))))
            else:
                start = builder.ptrtoint(data, _LLVM[PLACE])
                operands.append((PLACE, builder.add(start, values[i + 1])))
            i += 2
        else:
            operands.append((arguments[i], values[i]))
            i += 1
    return operands


def _load(kind: str, result: types.Type, registers: str) -> Callable:
    return _instruction(f"ld.global.nc{kind} {registers};", result, BYTES, PLACE)


def _coherent(kind: str, result: types.Type, registers: str) -> Callable:
    return _instruction(f"ld.global{kind} {registers};", result, BYTES, PLACE, effect=True)


def _staged(kind: str, result: types.Type, registers: str) -> Callable:
    return _instruction(f"ld.shared{kind} {registers};", result, BYTES, PLACE, effect=True, shared=(0,))


_ONE, _TWO, _FOUR = "$0, [$1]", "{$0, $1}, [$2]", "{$0, $1, $2, $3}, [$4]"


def _inlined(function: Callable) -> Callable:
    return cuda.jit(device=True, inline="always")(function)


@_inlined
def _block_index():
    return cuda.blockIdx.x


@_inlined
def _n_blocks():
    return cuda.gridDim.x


@_inlined
def _thread_index():
    return cuda.threadIdx.x


@_inlined
def _shuffle_down(value, n):
    return cuda.shfl_down_sync(0xFFFFFFFF, value, n)


@_inlined
def _shared_f32(n):
    return cuda.shared.array(128, types.float32)  # numba wants a literal


@_inlined
def _shared_bytes():
    return cuda.shared.array(0, types.uint8, 16)


@_inlined
def _shared_arrival():
    return cuda.shared.array(1, types.uint64)


_copy = _instruction(
    """{ mbarrier.init.shared::cta.b64 [$3], 1;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [$3], $2;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3]; }""",
    types.void, BYTES, PLACE, BYTES, PLACE, INT, WORDS64, PLACE, effect=True, shared=(0, 5),
)  # fmt: skip
_wait = _instruction(
    "{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], 0; @!p bra again; }",
    types.void, WORDS64, PLACE, effect=True, shared=(0,),
)  # fmt: skip


@_inlined
def _start_copy(stage, array, at, n, arrival):
    _copy(stage, 0, array, at, n, arrival, 0)


@_inlined
def _wait_copy(arrival):
    _wait(arrival, 0)


_next_may_start = _instruction("griddepcontrol.launch_dependents;", types.void, effect=True)
_previous_done = _instruction("griddepcontrol.wait;", types.void, effect=True)


@_inlined
def _nothing():
    pass


@_inlined
def _barrier():
    cuda.syncthreads()


PTX: dict[Callable, Callable] = {
    ops.load2: _instruction("{ .reg .b16 h; ld.global.nc.u16 h, [$1]; cvt.u32.u16 $0, h; }", WORD, BYTES, PLACE),
    ops.load4: _load(".u32", WORD, _ONE),
    ops.load8: _load(".v2.u32", WORDS[2], _TWO),
    ops.load16: _load(".v4.u32", WORDS[4], _FOUR),
    ops.stream4: _load(".L1::no_allocate.u32", WORD, _ONE),
    ops.stream8: _load(".L1::no_allocate.v2.u32", WORDS[2], _TWO),
    ops.stream16: _load(".L1::no_allocate.v4.u32", WORDS[4], _FOUR),
    ops.coherent4: _coherent(".u32", WORD, _ONE),
    ops.coherent8: _coherent(".v2.u32", WORDS[2], _TWO),
    ops.coherent16: _coherent(".v4.u32", WORDS[4], _FOUR),
    ops.staged2: _instruction(
        "{ .reg .b16 h; ld.shared.u16 h, [$1]; cvt.u32.u16 $0, h; }", WORD, BYTES, PLACE, effect=True, shared=(0,)
    ),
    ops.staged4: _staged(".u32", WORD, _ONE),
    ops.staged8: _staged(".v2.u32", WORDS[2], _TWO),
    ops.staged16: _staged(".v4.u32", WORDS[4], _FOUR),
    ops.shared_bytes: _shared_bytes,
    ops.shared_arrival: _shared_arrival,
    ops.start_copy: _start_copy,
    ops.wait_copy: _wait_copy,
    ops.store4: _instruction("st.global.u32 [$0], $1;", types.void, BYTES, PLACE, WORD, effect=True),
    ops.dp4a: _instruction("dp4a.s32.s32 $0, $1, $2, $3;", INT, WORD, WORD, INT),
    ops.bits: _instruction("bfe.u32 $0, $1, $2, $3;", INT, WORD, INT, INT),
    ops.signed_byte: _instruction("{ .reg .u32 at; shl.b32 at, $2, 3; bfe.s32 $0, $1, at, 8; }", INT, WORD, INT),
    ops.byte_perm: _instruction("prmt.b32 $0, $1, $2, $3;", WORD, WORD, WORD, WORD),
    ops.funnel_right: _instruction("shf.r.wrap.b32 $0, $1, $2, $3;", WORD, WORD, WORD, WORD),
    ops.f16_to_f32: _instruction("{ .reg .b16 h; cvt.u16.u32 h, $1; cvt.f32.f16 $0, h; }", FLOAT, WORD),
    ops.f32_to_f16: _instruction("{ .reg .b16 h; cvt.rn.f16.f32 h, $1; cvt.u32.u16 $0, h; }", WORD, FLOAT),
    ops.f32_bits: _instruction("mov.b32 $0, $1;", WORD, FLOAT),
    ops.bits_f32: _instruction("mov.b32 $0, $1;", FLOAT, WORD),
    ops.divide: _instruction("div.rn.f32 $0, $1, $2;", FLOAT, FLOAT, FLOAT),
    ops.round_even: _instruction("cvt.rni.s32.f32 $0, $1;", INT, FLOAT),
    ops.warp_max: _instruction("redux.sync.max.u32 $0, $1, 0xffffffff;", WORD, WORD, effect=True),
    ops.warp_sum: _instruction("redux.sync.add.s32 $0, $1, 0xffffffff;", INT, INT, effect=True),
    ops.block_index: _block_index,
    ops.n_blocks: _n_blocks,
    ops.thread_index: _thread_index,
    ops.shuffle_down: _shuffle_down,
    ops.shared_f32: _shared_f32,
    ops.next_may_start: _next_may_start,
    ops.previous_done: _previous_done,
    ops.barrier: _barrier,
}


class Binder:
    """What stands for a kernel's globals: an operation's instruction; a function of this package, bound anew too.

    hopper: whether the GPU has the instructions of sm_90. Without them kernels do not overlap, and none is staged.
    """

    def __init__(self, hopper: bool) -> None:
        self.operations = PTX if hopper else PTX | {ops.next_may_start: _nothing, ops.previous_done: _nothing}
        self.functions: dict[Callable, Callable] = {}

    def kernel(self, function: Callable, max_registers: int | None = None) -> Callable:
        """`function` for the GPU, to be launched."""
        return cuda.jit(max_registers=max_registers)(rebind(function, self.bind))

    def bind(self, value):
        if not isinstance(value, FunctionType) or not value.__module__.startswith("minfer_lib.gpu."):
            return value
        if value in self.operations:
            return self.operations[value]
        if value not in self.functions:
            self.functions[value] = cuda.jit(device=True, forceinline=True)(rebind(value, self.bind))
        return self.functions[value]
