"""How many threads a computation should use: the cores that this process may use, and the time that it may use them.

Two hyper-threads of a core share its arithmetic, so a core counts once. A container's quota is processor time, not a
number of cores: `docker --cpus=1` on 16 cores still shows 16. Threads beyond the quota spend it sooner, and then the
system stops all of them until the next period begins, also those that others wait for.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path

_ROOT = Path("/")
_CGROUP_MOUNT = r"^\S+ \S+ \S+ (\S+) (\S+) .* - (cgroup2?) \S+ (\S+)$"  # a line of /proc/self/mountinfo


@dataclass(frozen=True)
class Cpus:
    """What was found. `str()` says it in words: "2 cores, a quota of 1 → 1 thread"."""

    logical: int  # CPUs as the system counts them, hyper-threads apart
    cores: int
    quota: float | None  # seconds of processor time a second; None without a limit

    @property
    def threads(self) -> int:
        """As many threads as cores, but not more than the quota, rounded to the nearest: at least one.

        On two cores one thread is faster below a quota of 1.5, and two are faster above it. At 1.5 both are as fast,
        and one is never stopped: so a half is rounded down.
        """
        return max(1, self.cores if self.quota is None else min(self.cores, ceil(self.quota - 0.5)))

    def __str__(self) -> str:
        found = _count(self.cores, "core")
        if self.logical != self.cores:
            found = f"{_count(self.logical, 'hyper-thread')} of {found}"
        if self.quota is not None:
            found += f", a quota of {self.quota:.3g}"
        return f"{found} → {_count(self.threads, 'thread')}"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def cpus() -> Cpus:
    """Return what this process may use: by its affinity now, by its quota when it was first asked."""
    return _found(_allowed())


def cpu_threads() -> int:
    """Return the number of threads for a computation when nobody says another."""
    return cpus().threads


@cache
def _found(allowed: frozenset[int]) -> Cpus:
    if sys.platform.startswith("linux"):
        return Cpus(len(allowed), linux_cores(allowed), linux_quota())
    import psutil  # Linux needs none of it

    cores = psutil.cpu_count(logical=False) or len(allowed)
    return Cpus(len(allowed), min(cores, len(allowed)), None)


def _allowed() -> frozenset[int]:
    """Return the numbers of the CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    import psutil

    with suppress(AttributeError, OSError, psutil.Error):  # Windows and some BSDs tell; macOS has no affinity
        return frozenset(psutil.Process().cpu_affinity())
    return frozenset(range(os.cpu_count() or 1))


def linux_cores(allowed: Iterable[int], root: Path = _ROOT) -> int:
    """Return how many cores these CPUs belong to. A CPU of which the system does not tell counts as a core."""
    cores = set()
    for cpu in allowed:
        siblings = _read(root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.strip() or f"{cpu}")  # "0,64" or "0-1": the same text at each hyper-thread of a core
    return max(1, len(cores))


def linux_quota(root: Path = _ROOT) -> float | None:
    """Return the processor time a second that this process's control groups allow, or None without a limit.

    The smallest of the limits on the way from its own group up to the highest that is visible, of either version.
    """
    limits = []
    for folder in _groups(root):
        version_1 = [_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")]
        version_2 = _read(folder / "cpu.max").split()  # "max 100000" or "50000 100000"
        for words in (version_1, version_2):
            with suppress(ValueError, ZeroDivisionError):
                limit, length = words
                limits.append(int(limit) / int(length))
    return min((limit for limit in limits if limit > 0), default=None)  # -1: none


def _groups(root: Path) -> Iterator[Path]:
    """Yield the folders of this process's control groups that may limit its time, each from its own upwards."""
    own = {}  # the controller's name, "" for version 2 -> the group's path in its hierarchy
    for controllers, path in re.findall(r"^\d+:(.*?):(.*)$", _read(root / "proc/self/cgroup"), re.MULTILINE):
        own |= dict.fromkeys(controllers.split(","), path)
    for fields in re.findall(_CGROUP_MOUNT, _read(root / "proc/self/mountinfo"), re.MULTILINE):
        top, place, kind, options = map(_unescaped, fields)
        controller = "" if kind == "cgroup2" else "cpu"
        if controller not in own or (controller and controller not in options.split(",")):
            continue
        # A container may see its own group's folder as the mount's root, under whichever name the host gave it.
        inside = own[controller].removeprefix(top.rstrip("/"))
        folder = highest = root / place.lstrip("/")
        if own[controller].startswith(top) and ".." not in inside:
            folder = highest / inside.lstrip("/")
        yield folder
        while folder != highest:
            folder = folder.parent
            yield folder


def _unescaped(path: str) -> str:
    """mountinfo writes a space as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)


def _read(file: Path) -> str:
    """Return the file's text; "" where it cannot be read."""
    try:
        return file.read_text()
    except (OSError, ValueError):
        return ""
