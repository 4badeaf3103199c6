"""How many threads by default: cores by affinity, time by quota, read from files as Linux writes them."""

from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minfer_lib.native import cpus as cpus_module
from minfer_lib.native.cpus import Cpus, cpu_threads, cpus, linux_cores, linux_quota


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


# Cores


def topology(siblings):
    return {f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": f"{s}\n" for cpu, s in siblings.items()}


def test_hyper_threads_of_one_core_count_once(tmp_path):
    write(tmp_path, topology({cpu: f"{cpu % 4},{cpu % 4 + 4}" for cpu in range(8)}))
    assert linux_cores(range(8), tmp_path) == 4
    assert linux_cores({0, 4}, tmp_path) == 1
    assert linux_cores({0, 1, 6}, tmp_path) == 3, "half a core is a core"


def test_cpus_without_a_topology_count_as_cores(tmp_path):
    assert linux_cores({0, 1, 2}, tmp_path) == 3
    write(tmp_path, topology({0: "0-1", 1: "0-1", 2: ""}))
    assert linux_cores({0, 1, 2, 3}, tmp_path) == 3
    assert linux_cores(set(), tmp_path) == 1


# Quota. The two files as Linux writes them, with other lines around those that matter.

V2_MOUNT = "29 23 0:26 {top} {place} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNT = "32 31 0:29 {top} {place} rw,relatime - cgroup cgroup rw,{options}\n"
OTHERS = (
    "23 1 8:1 / / rw shared:1 - ext4 /dev/sda rw\n33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


def mounted(place="/sys/fs/cgroup", top="/", own="/a/b/c", version=2, options="cpu,cpuacct"):
    mount = V2_MOUNT if version == 2 else V1_MOUNT
    line = f"0::{own}\n" if version == 2 else f"4:{options}:{own}\n3:memory:/elsewhere\n"
    return {
        "proc/self/cgroup": line,
        "proc/self/mountinfo": OTHERS + mount.format(top=top, place=place, options=options),
    }


def v1(folder, quota, period=100_000):
    return {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": f"{period}\n"}


@pytest.mark.parametrize(
    "files, expected",
    [
        ({}, None),
        ({"c": "max 100000"}, None),
        ({"c": "150000 100000"}, 1.5),
        ({"c": "150000 100000", "": "max 100000"}, 1.5),
        ({"c": "400000 100000", "..": "50000 100000", "../..": "200000 100000"}, 0.5),
        ({"../..": "20000 10000"}, 2.0),
        ({"c": ""}, None),
        ({"c": "nonsense here"}, None),
        ({"c": "100000 0"}, None),
        ({"c": "100000"}, None),
    ],
)
def test_version_2_the_smallest_limit_on_the_way_up(tmp_path, files, expected):
    folders = {"c": "a/b/c", "": "a/b", "..": "a", "../..": ""}
    limits = {f"sys/fs/cgroup/{folders[at]}/cpu.max": text + "\n" for at, text in files.items()}
    assert linux_quota(write(tmp_path, mounted() | limits)) == expected


@pytest.mark.parametrize("options", ["cpu", "cpu,cpuacct", "cpuacct,cpu"])
def test_version_1(tmp_path, options):
    place = "sys/fs/cgroup/cpu,cpuacct"
    files = mounted(place=f"/{place}", version=1, options=options) | v1(place, -1) | v1(f"{place}/a/b", 75_000, 50_000)
    assert linux_quota(write(tmp_path, files | v1(f"{place}/a/b/c", -1))) == 1.5
    write(tmp_path, v1(f"{place}/a/b", -1))
    assert linux_quota(tmp_path) is None


def test_another_controllers_group_is_none_of_ours(tmp_path):
    files = mounted(version=1, options="cpuset", place="/sys/fs/cgroup/cpuset")
    assert linux_quota(write(tmp_path, files | v1("sys/fs/cgroup/cpuset/a/b/c", 100_000))) is None


def test_both_versions_at_once(tmp_path):
    old, new = mounted(place="/sys/fs/cgroup/cpu", version=1), mounted(place="/sys/fs/cgroup/unified", own="/x")
    files = {name: old[name] + new[name] for name in old} | v1("sys/fs/cgroup/cpu/a", 300_000)
    assert linux_quota(write(tmp_path, files)) == 3.0
    assert linux_quota(write(tmp_path, {"sys/fs/cgroup/unified/x/cpu.max": "200000 100000"})) == 2.0


@pytest.mark.parametrize(
    "top, own",
    [
        ("/docker/0a1b", "/docker/0a1b"),  # the host's name for the group, seen from inside the container
        ("/", "/"),  # a namespace of its own
        ("/", "/../../elsewhere"),  # begun outside the namespace
        ("/docker/0a1b", "/docker/other"),  # not below what is mounted
    ],
)
def test_in_a_container_the_mount_is_the_group(tmp_path, top, own):
    files = mounted(top=top, own=own, version=1, place="/sys/fs/cgroup/cpu") | v1("sys/fs/cgroup/cpu", 100_000)
    assert linux_quota(write(tmp_path, files)) == 1.0


def test_below_a_containers_mount(tmp_path):
    files = mounted(top="/docker/0a1b", own="/docker/0a1b/kernel") | {"sys/fs/cgroup/kernel/cpu.max": "100000 50000"}
    assert linux_quota(write(tmp_path, files)) == 2.0


def test_a_folder_with_a_space_and_a_colon(tmp_path):
    files = mounted(place="/my\\040groups", own="/a:b") | {"my groups/a:b/cpu.max": "100000 50000"}
    assert linux_quota(write(tmp_path, files)) == 2.0


@given(st.text(alphabet=" \n:,-/.\\0a", max_size=60), st.text(alphabet=" \n:,-/.\\0acgroup2", max_size=120))
def test_files_of_any_text_are_no_limit_and_no_error(tmp_path_factory, groups, mounts):
    root = tmp_path_factory.mktemp("root")
    assert linux_quota(write(root, {"proc/self/cgroup": groups, "proc/self/mountinfo": mounts})) is None


# Threads


@pytest.mark.parametrize(
    "cores, quota, threads",
    [(2, None, 2), (2, 1.0, 1), (2, 0.1, 1), (2, 1.5, 1), (2, 1.8, 2), (2, 8.0, 2), (16, 3.4, 3), (16, 3.6, 4)],
)
def test_threads(cores, quota, threads):
    assert Cpus(cores, cores, quota).threads == threads


@given(st.integers(1, 1000), st.none() | st.floats(1e-6, 1e6))
def test_there_is_a_thread_and_never_more_than_cores(cores, quota):
    found = Cpus(cores, cores, quota)
    assert 1 <= found.threads <= cores
    assert quota is None or found.threads == 1 or found.threads < quota + 0.5


def test_what_was_found_in_words():
    assert str(Cpus(2, 2, 1.0)) == "2 cores, a quota of 1 → 1 thread"
    assert str(Cpus(8, 4, None)) == "8 hyper-threads of 4 cores → 4 threads"
    assert str(Cpus(1, 1, None)) == "1 core → 1 thread"


# On this machine


def test_the_default_follows_the_affinity(monkeypatch):
    assert 1 <= cpu_threads() == cpus().threads <= cpus().cores <= cpus().logical
    monkeypatch.setattr(cpus_module, "linux_quota", lambda: None)
    monkeypatch.setattr(cpus_module.sys, "platform", "linux")
    monkeypatch.setattr(cpus_module, "_allowed", lambda: frozenset({10**6, 10**6 + 1, 10**6 + 2}))
    assert cpu_threads() == 3


@pytest.mark.parametrize("psutil_says, cores", [(2, 2), (None, 4), (16, 4)])
def test_elsewhere_psutil_tells(monkeypatch, psutil_says, cores):
    monkeypatch.setattr(cpus_module.sys, "platform", "darwin")
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: psutil_says)
    monkeypatch.setattr(cpus_module, "_allowed", lambda: frozenset({10**7 + (psutil_says or 0) + i for i in range(4)}))
    assert cpus() == Cpus(4, cores, None)


def test_without_an_affinity_all_cpus_are_ours(monkeypatch):
    monkeypatch.delattr(cpus_module.os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(psutil.Process, "cpu_affinity", raising=False)
    monkeypatch.setattr(cpus_module.os, "cpu_count", lambda: None)
    assert cpus_module._allowed() == {0}


@pytest.mark.skipif(not Path("/proc/self/cgroup").exists(), reason="not Linux")
def test_this_machines_own_files_can_be_read():
    quota = linux_quota()
    assert quota is None or quota > 0
