"""The warp simulator: what a step holds, and what would hang or corrupt a GPU is refused."""

from pathlib import Path

import numpy as np
import pytest

from minfer_lib.errors import ArgumentError, MinferError, UnsupportedError
from minfer_lib.gpu import ops
from minfer_lib.gpu.warp_sim import simulate

ONE, EIGHT = np.float32(1), np.arange(8)


def total_of(values, out, n):
    """Any kernel: a warp's sum, with idle lanes."""
    lane = ops.thread_index()
    mine = np.float32(0)
    if lane < n:
        mine = values[lane]
    mine += ops.shuffle_down(mine, 16)
    mine += ops.shuffle_down(mine, 1)
    out[lane] = mine


def test_steps_tell_line_mask_values_and_memory():
    values, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    trace = simulate(total_of, 1, 32, (values, out, 20))
    by_text = {s.text.strip(): s for s in trace.steps}
    condition, load = by_text["if lane < n:"], by_text["mine = values[lane]"]
    assert condition.active.all() and condition.changed["lane < n"].tolist() == [True] * 20 + [False] * 12
    assert load.active.tolist() == [True] * 20 + [False] * 12
    assert load.changed["mine"].tolist() == [*range(20), *[0.0] * 12] and load.changed["mine"].dtype == np.float32
    (access,) = load.accesses
    assert (access.kind, access.array, access.used, access.sectors) == ("load", "values", 80, 3)
    shuffle = by_text["mine += ops.shuffle_down(mine, 16)"]
    assert shuffle.sources.tolist() == [*range(16, 32), *range(16, 32)]
    first = np.where(np.arange(32) < 20, np.arange(32), 0)
    first = first + first[[*range(16, 32), *range(16, 32)]]
    assert out.tolist() == (first + first[[*range(1, 32), 31]]).tolist()
    assert shuffle.kernel == "total_of" and Path(shuffle.filename).samefile(__file__)
    assert Path(__file__).read_text(encoding="utf-8").splitlines()[shuffle.line - 1] == shuffle.text


def test_scattered_lanes_touch_more_sectors():
    def scattered(w, out):
        lane = ops.thread_index()
        near = ops.load4(w, 4 * lane)
        far = ops.load4(w, 144 * lane)
        out[lane] = near + far

    trace = simulate(scattered, 1, 32, (np.zeros(144 * 32, np.uint8), np.zeros(32, np.uint32)))
    near, far = (s.accesses[0] for s in trace.steps if s.accesses and s.accesses[0].kind == "load")
    assert (near.used, near.sectors, far.used, far.sectors) == (128, 4, 128, 32)


def copy_for_all(source, out, wait_first):
    stage, arrival = ops.shared_bytes(), ops.shared_arrival()
    thread = ops.thread_index()
    if wait_first:
        ops.wait_copy(arrival)
    if thread == 40:
        ops.start_copy(stage, source, 32, 64, arrival)
    ops.barrier()
    ops.wait_copy(arrival)
    out[thread] = stage[thread]


def test_a_copy_into_shared_memory_is_for_the_whole_block():
    source, out = np.arange(128).astype(np.uint8), np.zeros(64, np.uint8)
    trace = simulate(copy_for_all, 1, 64, (source, out, False), shared_bytes=64)
    assert out.tolist() == list(range(32, 96))
    (copied,) = [a for s in trace.steps for a in s.accesses if a.kind == "copy"]
    assert (copied.array, copied.n_bytes, copied.used, copied.sectors) == ("source", 64, 64, 2)


@pytest.mark.parametrize(
    "wait_first, size, shared, message",
    [(True, 128, 64, "no thread has started"), (False, 90, 64, "lie inside"), (False, 128, 48, "lie inside")],
)
def test_a_copy_that_cannot_be_is_refused(wait_first, size, shared, message):
    arrays = np.zeros(size, np.uint8), np.zeros(64, np.uint8)
    with pytest.raises(MinferError, match=message):
        simulate(copy_for_all, 1, 64, (*arrays, wait_first), shared_bytes=shared)


def test_lanes_go_different_ways_and_meet_again():
    def pick(a):
        if a % 3 == 0:
            return a * 10
        if a % 3 == 1:
            return -a
        return a if a > 16 else np.int64(0)

    def ways(out):
        lane = ops.thread_index()
        n = 0
        while n * n < lane and not n == 4:
            n += 1
        out[lane] = pick(lane) + n

    out = np.zeros(32, np.int64)
    simulate(ways, 1, 32, (out,))
    roots = [min(next(n for n in range(9) if n * n >= lane), 4) for lane in range(32)]
    picked = [a * 10 if a % 3 == 0 else -a if a % 3 == 1 else a if a > 16 else 0 for a in range(32)]
    assert out.tolist() == [p + r for p, r in zip(picked, roots, strict=True)]


def test_warps_share_memory_behind_a_barrier():
    def reversed_warps(out):
        warp, lane = ops.thread_index() >> 5, ops.thread_index() & 31
        shared = ops.shared_f32(4)
        if lane == 0:
            shared[warp] = np.float32(warp)
        ops.barrier()
        out[ops.thread_index()] = shared[3 - warp]

    out = np.zeros(128, np.float32)
    trace = simulate(reversed_warps, 1, 128, (out,))
    assert out.tolist() == [3.0] * 32 + [2.0] * 32 + [1.0] * 32 + [0.0] * 32
    stores = [a for s in trace.steps for a in s.accesses if a.kind == "shared store"]
    assert len(stores) == 4 and all(a.active.sum() == 1 for a in stores)


def barrier_for_some(out):
    if ops.thread_index() < 8:
        ops.barrier()


def barrier_for_one_warp(out):
    if ops.thread_index() < 32:
        ops.barrier()


def barriers_at_two_lines(out):
    if ops.thread_index() < 32:
        ops.barrier()
    else:
        ops.barrier()


def shuffle_by_some(out):
    if ops.thread_index() < 31:
        out[0] = ops.shuffle_down(np.float32(1), 1)


def shuffle_after_return(out):
    if ops.thread_index() == 5:
        return
    out[0] = ops.warp_sum(1)


def past_the_end(out):
    out[ops.thread_index() + 1] = np.float32(1)


def before_the_start(out):
    out[0] = out[ops.thread_index() - 1]


def crooked(out, w):
    out[0] = ops.load16(w, 40 * ops.thread_index() + 4)[0]


def endless(out):
    n = 0
    while n < 10:
        n -= 1


def unset(out):
    out[0] = nothing  # noqa: F821


@pytest.mark.parametrize(
    "kernel, message",
    [
        (barrier_for_some, "lanes \\[8, 9, .* do not reach"),
        (barrier_for_one_warp, "warps \\[1\\] have ended"),
        (barriers_at_two_lines, "different barriers"),
        (shuffle_by_some, "lanes \\[31\\] are not there"),
        (shuffle_after_return, "lanes \\[5\\] are not there"),
        (past_the_end, "lane 31 wants 4 bytes at byte 256 of out, which has 256"),
        (before_the_start, "lane 0 wants 4 bytes at byte -4"),
        (crooked, "lane 0 wants 16 bytes at byte 4 of w, which is no multiple of 16"),
        (endless, "and no end"),
        (unset, "nothing before anything was put into it"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_faulty_kernel_is_refused(kernel, message):
    arrays = (np.zeros(64, np.float32), np.zeros(4096, np.uint8))
    with pytest.raises(MinferError, match=message):
        simulate(kernel, 1, 64, arrays[: kernel.__code__.co_argcount], limit=5000)


def with_break(out):
    while True:
        break


def with_list(out):
    out[0] = [1, 2][0]


def with_call(out):
    out[0] = sum(range(3))


def lanes_that_loop_differently(out):
    for _ in range(ops.thread_index()):
        out[0] = ONE


@pytest.mark.parametrize("kernel", [with_break, with_list, with_call, lanes_that_loop_differently])
def test_what_is_not_simulated_is_named(kernel):
    with pytest.raises(UnsupportedError, match="line "):
        simulate(kernel, 1, 32, (np.zeros(1, np.float32),))


@pytest.mark.parametrize("grid, threads", [(0, 32), (1, 0), (1, 2048)])
def test_a_launch_that_no_gpu_takes(grid, threads):
    with pytest.raises(ArgumentError):
        simulate(endless, grid, threads, (np.zeros(1, np.float32),))


def test_arrays_are_lines():
    with pytest.raises(ArgumentError, match="one dimension"):
        simulate(endless, 1, 32, (np.zeros((2, 2), np.float32),))


def test_ops_alone_say_what_is_missing():
    with pytest.raises(UnsupportedError, match="simulate it"):
        total_of(EIGHT, EIGHT, 3)
