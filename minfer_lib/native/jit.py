"""How the library's kernels are compiled: without the GIL, on first call, and cached on disk.

numba's cache notices an edit in a kernel's own file but not in a kernel that it calls. So the cache lives in a folder
named after the library's version and a hash of its whole source: an edit anywhere starts a new folder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path

import numba
import platformdirs
from llvmlite.binding import ffi
from numba.core.compiler_lock import global_compiler_lock

from minfer_lib.version import __version__

# MINFER_NO_AVX2, MINFER_NO_AVX512, MINFER_NO_AMX, MINFER_NO_NEON …: those that are set, to anything but "" and "0".
SWITCHES = frozenset(name for name, value in os.environ.items() if name.startswith("MINFER_NO_") and value.strip("0"))


def _cache_dir() -> Path:
    """NUMBA_CACHE_DIR if it is set, else the user's cache folder; below it one folder a state of the source."""
    source = hashlib.sha256(repr(sorted(SWITCHES)).encode())
    root = Path(__file__).parents[1]  # all of minfer_lib
    for path in sorted(root.rglob("*.py")):
        source.update(str(path.relative_to(root)).encode() + path.read_bytes())
    base = os.environ.get("NUMBA_CACHE_DIR") or platformdirs.user_cache_dir("minfer", appauthor=False)
    return Path(base) / f"{__version__}-{source.hexdigest()[:12]}"


CACHE_DIR = _cache_dir()


def kernel(function: Callable) -> Callable:
    """`@kernel` compiles `function` with numba on its first call: nogil, cached in CACHE_DIR; x / 0 is infinite."""
    return _compiled(function)


def inlined(function: Callable) -> Callable:
    """As @kernel, for what is called thousands of times a token: in a compiled caller no call of it remains."""
    return _compiled(function, forceinline=True)


def composed(function: Callable) -> Callable:
    """As @inlined, for what is given other kernels to call: compiled into its callers, and only they are cached."""
    return _compiled(function, forceinline=True, cache=False)


def _compiled(function: Callable, cache: bool = True, **options) -> Callable:
    outer, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(CACHE_DIR)
    try:
        return numba.njit(nogil=True, cache=cache, error_model="numpy", **options)(function)
    finally:
        numba.config.CACHE_DIR = outer


# A fork copies all memory, but of the threads only the one that forks: a lock that another thread holds then stays
# locked in the child. So whoever forks waits for the compilers first. numba's lock is held while a kernel is compiled
# or read from the cache, LLVM's in each call into it.
_COMPILERS = (global_compiler_lock, getattr(ffi.lib, "_lock", nullcontext()))
_held = ExitStack()


def _hold_compilers() -> None:
    for lock in _COMPILERS:
        _held.enter_context(lock)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_compilers, after_in_parent=_held.close, after_in_child=_held.close)
