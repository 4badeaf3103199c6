"""The warp simulator: kernels give the bits of a plain NumPy model, and what would hang or corrupt a GPU is refused."""

import ast
import operator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numba.core.registry import cpu_target
from numba.np.numpy_support import from_dtype

import minfer_lib as mf
from minfer_lib.errors import ArgumentError, MinferError, UnsupportedError
from minfer_lib.formats.packing import unpack, unpack_scales_mins
from minfer_lib.gpu import ops
from minfer_lib.gpu.device import SPARE_BYTES
from minfer_lib.gpu.f32_rows import f32_rows, q4_k_block
from minfer_lib.gpu.geometry import OLD, Geometry, Launch
from minfer_lib.gpu.mmvq import mmvq
from minfer_lib.gpu.q4_k_steps import SEED
from minfer_lib.gpu.quantizer import quantizer
from minfer_lib.gpu.reading import probe
from minfer_lib.gpu.unit import PAD40, PAD48
from minfer_lib.gpu.units import UNITS
from minfer_lib.gpu.warp_sim import simulate
from minfer_lib.gpu.warp_values import binary

RANDOM = np.random.default_rng(7)
ONE, EIGHT = np.float32(1), np.arange(8)


def matrix(name, n_out, n_in):
    return mf.quantize(name, RANDOM.normal(0, 1, n_out * n_in).astype(np.float32)).reshape(n_out, -1)


def activations(n_in, block=PAD40):
    """x in blocks of 32, made by the simulated quantizer."""
    x, n = RANDOM.normal(0, 1, n_in).astype(np.float32), n_in // 32
    out = np.zeros(n * block.block_bytes, np.uint8)
    simulate(quantizer(block), -(-n // 4), 128, (x, out, n))
    return x, out


def run(unit, launch, w, x):
    n_out, n_units = len(w), x.size // unit.block.block_bytes
    out = np.full(n_out, np.nan, np.float32)
    grid = -(-n_out // launch.rows)
    padded = np.concatenate([w.ravel(), np.zeros(SPARE_BYTES, np.uint8)])
    arguments = (padded, x, out, n_out, n_units, w.shape[1])
    return out, simulate(mmvq(unit, launch), grid, launch.threads, arguments)


# The kernels


def seed_units(row, x):
    """f32[n_units]: what seed 3's loop adds for each sub-block, in plain NumPy, one operation at a time."""
    blocks, a = row.view(mf.FORMATS["Q4_K"].dtype), x.view(mf.FORMATS["Q8_0_PAD40"].dtype)
    codes = unpack(blocks["qs"], 32, 4).reshape(-1, 32).astype(np.int32)
    scales, mins = (s.astype(np.float32).ravel() for s in unpack_scales_mins(blocks["scales"]))
    d, dmin = (np.repeat(blocks[field].astype(np.float32), 8) for field in ("d", "dmin"))
    qs = a["qs"].astype(np.int32)
    dot, total = (codes * qs).sum(1).astype(np.float32), qs.sum(1).astype(np.float32)
    return a["d"].astype(np.float32) * (scales * d * dot - mins * dmin * total)


def in_the_kernels_order(units, launch):
    """float32: each thread its units one by one; 32 lanes as a tree; the row's warps one after the other."""
    total = np.float32(0)
    for warp in range(launch.row_warps):
        lanes = np.zeros(32, np.float32)
        for lane in range(32):
            for u in range(32 * warp + lane, len(units), launch.row_threads):
                lanes[lane] += units[u]
        for by in (16, 8, 4, 2, 1):
            lanes[:by] += lanes[by : 2 * by]
        total += lanes[0]
    return total


@pytest.mark.parametrize(
    "n_out, n_in, launch",
    [
        (2, 3584, Launch(8, 1)),  # 112 units: 144 of 256 threads idle
        (3, 256, Launch(8, 1)),  # 8 units: seven warps have none
        (5, 1280, Launch(4, 4)),  # 40 units, a warp a row; the last block has one row of four
        (1, 8448, Launch(8, 1)),  # 264 units: eight threads take two
        (3, 768, Launch(2, 4, 2)),
        (6, 512, Launch(1, 4, 4)),  # the last block: two rows of four
    ],
    ids=str,
)
def test_the_seeds_kernel_gives_the_bits_of_a_model_without_warps(n_out, n_in, launch):
    w, (_, x) = matrix("Q4_K", n_out, n_in), activations(n_in)
    out, _ = run(SEED, launch, w, x)
    model = [in_the_kernels_order(seed_units(row, x), launch) for row in w]
    assert out.tobytes() == np.array(model, np.float32).tobytes()


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("launch", [Launch(8, 1), Launch(4, 4), Launch(1, 2, 2)], ids=str)
def test_every_format_is_near_the_exact_product(name, launch):
    n_out, n_in = 3, 768
    w, (x, blocks) = matrix(name, n_out, n_in), activations(n_in, PAD48)
    out, _ = run(UNITS[name], launch, w, blocks)
    weights = mf.dequantize(name, w).reshape(n_out, n_in).astype(np.float64)
    rounded = mf.dequantize("Q8_0_PAD40", mf.quantize_activations("Q8_0_PAD40", x)).astype(np.float64)
    exact = weights @ rounded
    row = mf.FORMATS[name]
    block = w.view(row.dtype)
    most = np.abs(weights).max() + np.abs(block["dmin"] if "dmin" in block.dtype.names else 0).max() * 63
    bound = 40 * 2.0**-24 * n_in * most * np.abs(rounded).max()  # at most 40 roundings of what is no larger than that
    assert np.abs(out - exact).max() < bound


def test_the_old_kernel_walks_whole_blocks():
    n_out, n_in = 9, 512
    w, x = matrix("Q4_K", n_out, n_in), RANDOM.normal(0, 1, n_in).astype(np.float32)
    out = np.full(n_out, np.nan, np.float32)
    trace = simulate(f32_rows(q4_k_block, 144, OLD), 2, 64, (w.ravel(), x, out, n_out, n_in // 256, w.shape[1]))
    exact = mf.dequantize("Q4_K", w).reshape(n_out, n_in).astype(np.float64) @ x
    assert np.abs(out - exact).max() < 1e-4
    loads = [s.accesses[0] for s in trace.of(0) if s.accesses and s.accesses[0].array == "w"]
    assert all(a.active.sum() == 2 for a in loads), "two super-blocks a row: two lanes work, thirty are idle"


def test_the_quantizer_writes_the_librarys_bytes():
    x, out = activations(32 * 9)
    assert out.tobytes() == mf.quantize_activations("Q8_0_PAD40", x).tobytes()


def test_the_probe_reads_every_byte():
    w, out = RANDOM.integers(0, 256, 16 * 3001).astype(np.uint8), np.zeros(1, np.uint32)
    trace = simulate(probe, 2, 256, (w, out, 3001))
    read = {int(at) + i for s in trace.steps for a in s.accesses for at in a.addresses[a.active] for i in range(16)}
    assert len(read) == w.size
    full = [a for s in trace.steps for a in s.accesses if a.active.all()]
    assert {(a.used, a.sectors) for a in full} == {(512, 16)}, "32 lanes side by side"


@pytest.mark.parametrize("n_out, n_in, launch", [(3, 3584, Launch(8, 1)), (5, 768, Launch(4, 4))], ids=str)
def test_lanes_take_the_units_that_geometry_says(n_out, n_in, launch):
    geometry = Geometry(n_out, n_in, launch)
    w, (_, x) = matrix("Q4_K", n_out, n_in), activations(n_in)
    _, trace = run(SEED, launch, w, x)
    for block in range(geometry.blocks):
        for warp in range(launch.warps):
            taken = [s.changed["u < n_units"] for s in trace.of(warp, block) if "u < n_units" in s.changed]
            for lane in range(32):
                place = geometry.place(block, 32 * warp + lane)
                units = place.units or geometry.place(block, 32 * (warp % launch.row_warps) + lane).units
                assert sum(bool(t[lane]) for t in taken) == len(units)  # rows beyond the matrix repeat the last one


# What a step holds


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


# Numbers


INTEGERS = [np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Div: operator.truediv,
}  # fmt: skip


@pytest.mark.parametrize("node", OPERATORS)
def test_types_are_those_of_numba(node):
    cpu_target.typing_context.refresh()
    bitwise = node in (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
    floats = [] if bitwise else [np.dtype(np.float32), np.dtype(np.float64)]
    for a, b in product([*INTEGERS, *floats], repeat=2):
        if {a, b} == {np.dtype(np.uint16), np.dtype(np.float32)}:  # float64 in numba, float32 in NumPy; kernels cast
            continue
        types = from_dtype(a), from_dtype(b)
        signature = cpu_target.typing_context.resolve_function_type(OPERATORS[node], types, {})
        result = binary(node(), np.ones(32, a), np.ones(32, b))
        assert from_dtype(result.dtype) == signature.return_type, f"{a} {node.__name__} {b}"


def test_int32_wraps_and_float32_rounds():
    def arithmetic(out, floats, third):
        big = np.int32(2147483647)
        out[0] = np.int32(big + 1)
        out[1] = np.int32(np.uint32(4294967295))
        floats[0] = third + third * third

    out, floats, third = np.zeros(2, np.int32), np.zeros(1, np.float32), np.float32(1 / 3)
    simulate(arithmetic, 1, 1, (out, floats, third))
    assert out.tolist() == [-2147483648, -1] and floats[0] == third + third * third


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


# What would hang or corrupt a GPU


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
