"""A kernel as machine code, for any kernel set on any machine: LLVM writes code for CPUs that it does not run on.

for line in disassembly(dot_q4_0_neon, DOT, "neon"):
    print(line.instruction, line.source)
"""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType

import llvmlite.binding as llvm
from numba import njit, types
from numba.core import codegen, compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target

from minfer_lib.errors import ArgumentError
from minfer_lib.simd.step import rebind

_X86, _ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
_MACHINES = {  # kernel set -> (target, CPU): the oldest CPU that LLVM knows to have all that the set needs
    "avx512vnni": (_X86, "cascadelake"),
    "avx2": (_X86, "haswell"),
    "neon": (_ARM, "neoverse-n1"),
}

_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
DOT = (_BYTES, types.int64, _BYTES, types.int64, types.int64)  # w, w_at, a, a_at, n_blocks
DOT4 = (_BYTES, types.int64, types.int64, _BYTES, types.int64, types.int64)  # w, w_at, row_bytes, a, a_at, n_blocks


@dataclass(frozen=True)
class Line:
    """One machine instruction, and the line of Python that it comes from."""

    instruction: str  # "vpmaddubsw %ymm4, %ymm3, %ymm3": mnemonic first, AT&T order on x86
    label: str | None  # the label before it, if it is where a jump goes
    filename: str | None
    line: int | None
    source: str  # that line of Python, stripped

    @property
    def mnemonic(self) -> str:
        return self.instruction.removeprefix("{vex} ").split()[0]


def disassembly(kernel: Dispatcher, signature: tuple[types.Type, ...], isa: str) -> list[Line]:
    """The instructions of `kernel` compiled for arguments of `signature` on a CPU that has just kernel set `isa`.

    Kernels that it calls are compiled into it. "scalar" is this machine, with all it has. Raises ArgumentError.
    """
    compiled = _compile(kernel, tuple(signature), isa)
    lines, place, label = [], 0, None
    for raw in assembly(kernel, signature, isa).splitlines():
        code = raw.split(compiled.comment)[0].strip()
        if found := re.match(r"\.loc\s+\d+\s+(\d+)", code):
            place = int(found[1])
        elif found := re.match(r"(\.LBB\w+):", code):
            label = found[1]
        elif code and not code.startswith(".") and not code.endswith(":"):
            filename, line = compiled.files[place // _FILE], place % _FILE
            source = linecache.getline(filename, line).strip() if line else ""
            lines.append(Line(" ".join(code.split()), label, filename if line else None, line or None, source))
            label = None
    return lines


def assembly(kernel: Dispatcher, signature: tuple[types.Type, ...], isa: str) -> str:
    """The text that LLVM's assembler would take, with .loc lines that name the Python line. See disassembly."""
    compiled = _compile(kernel, tuple(signature), isa)
    return compiled.machine.emit_assembly(compiled.module)


def object_code(kernel: Dispatcher, signature: tuple[types.Type, ...], isa: str) -> bytes:
    """An object file with one function, `kernel`, in numba's calling convention.

    int32 kernel(result *, void **error, arguments): 0 if all is well. A contiguous array is seven arguments:
    (owner, parent, n_items, item_bytes, data, n_items, item_bytes).
    """
    compiled = _compile(kernel, tuple(signature), isa)
    return compiled.machine.emit_object(compiled.module)


_FILE = 1_000_000  # debug information has one file: line n of the k-th other file is shown as line k * _FILE + n


@dataclass(frozen=True)
class _Compiled:
    module: llvm.ModuleRef  # in it the kernel is the function `kernel`
    machine: llvm.TargetMachine
    files: tuple[str, ...]
    comment: str  # how the assembler's comments begin


@lru_cache(maxsize=64)
def _compile(kernel: Dispatcher, signature: tuple[types.Type, ...], isa: str) -> _Compiled:
    if isa not in (*_MACHINES, "scalar"):
        raise ArgumentError(f"{isa!r} is not a kernel set. Choose one of: {', '.join(_MACHINES)}, scalar.")
    flags = compiler.Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True  # nothing is loaded into this process
    flags.debuginfo = flags.dbg_directives_only = True
    flags.error_model = "numpy"
    maker = _Codegen(isa)
    cpu_target.typing_context.refresh()
    context = cpu_target.target_context.subtarget(_internal_codegen=maker)
    source, files = _one_function(kernel)
    done = compiler.compile_extra(cpu_target.typing_context, context, source, signature, None, flags, {})
    with global_compiler_lock:
        done.library.finalize()
    done.library.get_function(done.fndesc.llvm_func_name).name = "kernel"
    comment = "#" if maker.triple.startswith("x86") else "//"
    return _Compiled(done.library._final_module, maker.machine, files, comment)


def _one_function(kernel: Dispatcher) -> tuple[FunctionType, tuple[str, ...]]:
    """The kernel's source, with every kernel that it calls to be inlined before types are inferred; and their files."""
    files = [kernel.py_func.__code__.co_filename]

    def bind(value):
        if not isinstance(value, Dispatcher):
            return value
        function = rebind(value.py_func, bind)
        code = function.__code__
        function.__code__ = code.replace(co_firstlineno=code.co_firstlineno + _FILE * len(files))
        files.append(code.co_filename)
        return njit(inline="always", error_model="numpy")(function)

    return rebind(kernel.py_func, bind), tuple(files)


class _Codegen(codegen.AOTCPUCodegen):
    """numba's code generator for the CPU of another kernel set. It writes modules and loads none."""

    def __init__(self, isa: str) -> None:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        host = llvm.get_process_triple(), llvm.get_host_cpu_name(), codegen.get_host_cpu_features()
        self.triple, cpu, features = (*_MACHINES[isa], "") if isa in _MACHINES else host
        self.machine = llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default"
        )
        super().__init__(f"for_{isa}")

    def _init(self, llvm_module) -> None:
        self._tm, self._target_data = self.machine, self.machine.target_data
        self._data_layout = str(self._target_data)
        self._loopvect, self._opt_level = False, 0  # of the first, cheap pass

    def _create_empty_module(self, name: str):
        module = super()._create_empty_module(name)
        module.triple = self.triple
        return module
