"""Waiting for a word in compiled code: no wake is lost, a waiter sleeps. And the atomics that such a protocol needs."""

import ctypes
import os
import sys
import threading
import time

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest

from minfer_lib.native import futex
from minfer_lib.native.atomics import atomic_load, atomic_store, compare_and_swap, fetch_add
from minfer_lib.native.futex import SLEEPS, wait_on, wake_all
from minfer_lib.native.jit import kernel

LONG = 30 * 10**9  # ns; a lost wake shows as a stall of so long
needs_sleep = pytest.mark.skipif(not SLEEPS, reason="this system has no such call: a waiter yields")


@kernel
def take_turns(address, mine, rounds):
    """Add one whenever the word is `mine` modulo 2; wake the other."""
    for _ in range(rounds):
        seen = atomic_load(address)
        while seen % 2 != mine:
            wait_on(address, seen, LONG)
            seen = atomic_load(address)
        fetch_add(address, 1)
        wake_all(address)


@kernel
def take_turns_counting_sleepers(address, mine, rounds):
    """The same, and nobody is woken where nobody has said that he sleeps."""
    for _ in range(rounds):
        seen = atomic_load(address)
        while seen % 2 != mine:
            fetch_add(address + 64, 1)
            wait_on(address, seen, LONG)
            fetch_add(address + 64, -1)
            seen = atomic_load(address)
        fetch_add(address, 1)
        if atomic_load(address + 64) > 0:
            wake_all(address)


@kernel
def wait_until(address, value, timeout_ns):
    seen = atomic_load(address)
    while seen < value:
        wait_on(address, seen, timeout_ns)
        seen = atomic_load(address)


@kernel
def wait_once(address, expected, timeout_ns):
    wait_on(address, expected, timeout_ns)


@kernel
def store_and_wake(address, value):
    atomic_store(address, value)
    wake_all(address)


@kernel
def wake_often(address, times):
    for _ in range(times):
        wake_all(address)


@kernel
def swap(address, expected, new):
    return compare_and_swap(address, expected, new)


@kernel
def add_by_swapping(address, times):
    for _ in range(times):
        seen = atomic_load(address)
        while not compare_and_swap(address, seen, seen + 1):
            seen = atomic_load(address)


@pytest.fixture
def words():
    return np.zeros(16, np.int64)


def in_threads(*calls):
    threads = [threading.Thread(target=function, args=args) for function, *args in calls]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - start


@pytest.mark.parametrize("turns", [take_turns, take_turns_counting_sleepers])
def test_no_wake_is_lost(words, turns):
    address, rounds = words.ctypes.data, 20_000
    turns(address, 0, 1), turns(address, 1, 1)  # compiled
    assert in_threads((turns, address, 0, rounds), (turns, address, 1, rounds)) < LONG / 2e9
    assert words[0] == 2 + 2 * rounds and words[8] == 0


def test_all_that_sleep_are_woken(words):
    address = words.ctypes.data
    wait_until(address, 0, LONG), store_and_wake(address, 0)

    def wake():
        time.sleep(0.2)
        store_and_wake(address, 1)

    assert in_threads(*[(wait_until, address, 1, LONG)] * 8, (wake,)) < LONG / 2e9


@needs_sleep
def test_a_waiter_sleeps_until_the_time_is_over(words):
    wait_once(words.ctypes.data, 1, 0)
    start, used = time.monotonic(), time.thread_time()
    for timeout in (300_000_000, 0, 1, 1_000_000):
        wait_once(words.ctypes.data, 0, timeout)
    assert 0.29 < time.monotonic() - start < LONG / 2e9
    assert time.thread_time() - used < 0.05


def test_another_word_is_not_waited_for(words):
    wait_once(words.ctypes.data, 1, LONG)
    words[0] = -1
    wait_once(words.ctypes.data, 0, LONG)


@needs_sleep
@pytest.mark.parametrize("value", [-1, 2**31, 2**32 + 5, 2**62])
def test_the_low_half_is_what_counts(words, value):
    words[0] = value
    start = time.monotonic()
    wait_once(words.ctypes.data, value, 50_000_000)
    wait_once(words.ctypes.data, value + 2**32 if value < 2**62 else value, 50_000_000)
    assert time.monotonic() - start > 0.09
    wait_once(words.ctypes.data, value + 1 if value < 2**62 else 1, LONG)


def test_a_wake_that_nobody_waits_for_is_cheap(words):
    wake_often(words.ctypes.data, 1)
    best = min(in_threads((wake_often, words.ctypes.data, 1000)) for _ in range(10)) / 1000
    assert best < 20e-6


# The other systems' calls, as this one compiles them: a stand-in for each function notes what it is given.

INT32, INT64 = ctypes.c_int32, ctypes.c_int64


def stand_in(name, result, *kinds):
    calls = []
    function = ctypes.CFUNCTYPE(result, *kinds)(lambda *arguments: calls.append(arguments) or 0)
    llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    return calls, function  # the latter must live as long as it may be called


def compiled_for(monkeypatch, system):
    monkeypatch.setattr(futex, "_SYSTEM", system)
    waits = numba.njit(lambda address, expected, timeout_ns: wait_on(address, expected, timeout_ns))
    return waits, numba.njit(lambda address: wake_all(address))


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins would take the place of the real calls")
def test_windows_is_asked_for_whole_milliseconds(monkeypatch):
    waits, wakes = compiled_for(monkeypatch, futex._Windows)
    compared = []
    note = ctypes.CFUNCTYPE(INT32, INT64, INT64, INT64, INT32)(
        lambda address, with_, size, ms: compared.append((address, INT32.from_address(with_).value, size, ms)) or 1
    )
    llvm.add_symbol("WaitOnAddress", ctypes.cast(note, ctypes.c_void_p).value)
    woken, _kept = stand_in("WakeByAddressAll", None, INT64)
    for timeout in (0, 1, 1_000_000, 1_000_001, 2**62):
        waits(64, 2**32 + 7, timeout)
    wakes(64)
    assert compared[:4] == [(64, 7, 4, ms) for ms in (0, 1, 1, 2)]
    assert compared[4][3] % 2**32 == 2**31, "25 days, and not the number that means for ever"
    assert woken == [(64,)]


@pytest.mark.skipif(sys.platform == "darwin", reason="the stand-ins would take the place of the real calls")
def test_macos_is_asked_for_at_least_a_nanosecond(monkeypatch):
    waits, wakes = compiled_for(monkeypatch, futex._Mac)
    name = "os_sync_wait_on_address_with_timeout"
    waited, _waited = stand_in(name, INT32, INT64, INT64, INT64, INT32, INT32, INT64)
    woken, _woken = stand_in("os_sync_wake_by_address_all", INT32, INT64, INT64, INT32)
    waits(64, -1, 0), waits(64, 5, 10**9), wakes(64)
    assert waited == [(64, 2**32 - 1, 4, 0, 32, 1), (64, 5, 4, 0, 32, 10**9)]
    assert woken == [(64, 4, 0)]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no sched_yield, and always the call")
def test_without_such_a_call_a_waiter_yields(monkeypatch, words):
    waits, wakes = compiled_for(monkeypatch, futex._Yielding)
    waits(words.ctypes.data, 0, LONG), wakes(words.ctypes.data)


def test_compare_and_swap(words):
    words[0] = 2**40
    assert swap(words.ctypes.data, 2**40, -5) and words[0] == -5
    assert not swap(words.ctypes.data, 2**40, 7) and words[0] == -5


def test_no_swap_is_divided(words):
    add_by_swapping(words.ctypes.data, 1)
    in_threads(*[(add_by_swapping, words.ctypes.data, 100_000)] * 3)
    assert words[0] == 300_001
