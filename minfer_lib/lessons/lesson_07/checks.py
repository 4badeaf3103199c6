"""Lesson 7: one instruction, who computes which unit, how many threads, a sum over 32 lanes, and a test that lies."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np

from minfer_lib.formats.decode import dequantize
from minfer_lib.formats.table import FORMATS
from minfer_lib.gpu import ops
from minfer_lib.gpu.geometry import Geometry, Launch
from minfer_lib.lessons.shared.check_runner import Case, run


def dp4a(function: Callable) -> None:
    """function(a, b, c) -> c + the dot product of the four int8 in word a with those in word b, as an int32."""
    words = [
        ("the bytes 1, 0, 0, 0 and 5, 0, 0, 0", 0x00000001, 0x00000005, 0,
         "byte 0 is the lowest of a word: word & 255, then word >> 8 & 255, and so on."),
        ("a different number in each byte", 0x04030201, 0x08070605, 0,
         "bytes of the same position meet: 1 · 5 + 2 · 6 + 3 · 7 + 4 · 8."),
        ("the same, added to 1000", 0x04030201, 0x08070605, 1000, "c is where the sum begins."),
        ("bytes −1, −2, 3 and 4", 0x0403FEFF, 0x01020304, 0,
         "the bytes are signed: 255 stands for −1. A byte of 128 or more is that minus 256."),
        ("the byte −128, four times, on both sides", 0x80808080, 0x80808080, 0,
         "(−128) · (−128) = 16384 does not fit in an int8: make the bytes ints before you multiply."),
        ("four ones times four activations", 0x01010101, 0xF67F0581, -3,
         "with ones on one side it adds up the other side's bytes, which are signed too."),
        ("a sum that is too large for an int32", 0x7F7F7F7F, 0x7F7F7F7F, 2147483647,
         "the result has 32 bits and wraps around: what is 2^31 or more is that minus 2^32."),
        ("a sum that is too small for an int32", 0x80808080, 0x7F7F7F7F, -2147483648,
         "the result wraps around at both ends: add 2^31, take the remainder by 2^32, subtract 2^31."),
    ]  # fmt: skip
    with np.errstate(over="ignore"):
        run(function, [Case(what, (a, b, c), _dp4a(a, b, c), cause) for what, a, b, c, cause in words])


def _dp4a(a: int, b: int, c: int) -> int:
    exact = c + int(ops.dp4a(a, b, 0))
    return (exact + 2**31) % 2**32 - 2**31


def owner(function: Callable) -> None:
    """function(row, unit, warps, rows) -> (block, warp, lane, super-block, sub-block)

    A grid's block has `warps` warps for `rows` rows, and warps / rows of them share each row.
    """
    cases = [
        ("the first unit of the first row, seed 3's launch", (0, 0, 8, 1),
         "block, warp and lane are counted from 0; so are super-block and sub-block."),
        ("unit 100 of row 7", (7, 100, 8, 1),
         "with one row a block, row 7 is block 7's. Thread 100 is lane 4 of warp 3. Eight units make a super-block."),
        ("unit 512: which thread computes it?", (3, 512, 8, 1),
         "256 threads take the units in turn: unit 512 is the third one of thread 0. Super-block 64 begins with it."),
        ("unit 300", (0, 300, 8, 1),
         "unit 300 is thread 300 − 256 = 44's: lane 12 of warp 1. Its super-block is 300 // 8, whoever computes it."),
        ("four rows a block, a warp for each", (6, 40, 4, 4),
         "row 6 is in block 1, the third of its rows, so warp 2's. 32 lanes share it: unit 40 is lane 8's."),
        ("eight warps for two rows", (3, 70, 8, 2),
         "four warps share a row. Row 3 is the second of block 1, so its warps are 4 to 7: 128 threads take turns."),
        ("a single warp", (11, 95, 1, 1), "32 threads: unit 95 is lane 31's."),
    ]  # fmt: skip
    run(function, [Case(what, arguments, _owner(*arguments), cause) for what, arguments, cause in cases])


def _owner(row: int, unit: int, warps: int, rows: int) -> tuple[int, ...]:
    geometry = Geometry(row + 1, 32 * 8 * (unit // 8 + 1), Launch(warps, rows))
    block, thread = geometry.owner(row, unit)
    return block, *divmod(thread, 32), *divmod(unit, 8)


def launched(function: Callable) -> None:
    """function(n_out, n_in, warps, rows) -> (threads launched, threads of those sharing a row that get no unit)"""
    cases = [
        ("7B ffn_down, seed 3's launch", (3584, 18944, 8, 1),
         "one block a row: 3584 blocks of 8 · 32 threads. A row has 592 units, more than 256 threads."),
        ("7B attn_q", (3584, 3584, 8, 1), "3584 / 32 = 112 units for 256 threads: the others are idle."),
        ("as many rows, but shorter", (3584, 2048, 8, 1),
         "idle threads follow from the length of a row, not from how many rows there are."),
        ("few rows", (512, 18944, 8, 1), "few rows are few blocks; what a thread of a block does stays the same."),
        ("a warp a row, four rows a block", (3584, 3584, 4, 4),
         "896 blocks of 128 threads. 32 threads share a row of 112 units: none is idle."),
        ("rows that do not fill the last block", (510, 768, 4, 4),
         "the last block is launched whole: 510 / 4, rounded up. 24 units for 32 threads."),
        ("eight warps for two rows", (1000, 2048, 8, 2), "128 threads share a row: 4 warps. 2048 values are 64 units."),
    ]  # fmt: skip
    run(function, [Case(what, arguments, _launched(*arguments), cause) for what, arguments, cause in cases])


def _launched(n_out: int, n_in: int, warps: int, rows: int) -> tuple[int, int]:
    geometry = Geometry(n_out, n_in, Launch(warps, rows))
    return geometry.threads, geometry.idle_threads


def warp_sum(function: Callable) -> None:
    """function(value, shuffle_down) -> f32[32], whose lane 0 is the sum of all 32; five shuffles.

    value: f32[32], one number a lane. shuffle_down(value, n): each lane gets the value of the lane n further.
    """

    @wraps(function)
    def counted(value: np.ndarray) -> str:
        shuffles = []

        def shuffle_down(lanes: np.ndarray, n: int) -> np.ndarray:
            shuffles.append(n)
            lane = np.arange(32)
            return np.asarray(lanes, np.float32)[np.where(lane + n < 32, lane + n, lane)]

        result = function(value, shuffle_down)
        return told(np.broadcast_to(result, 32)[0], value, len(shuffles))

    def told(first: float, value: np.ndarray, shuffles: int) -> str:
        return f"lane 0: {first:g}, {'right' if first == value.sum() else 'wrong'}; shuffles: {shuffles}, needed 5"

    one = np.eye(32, dtype=np.float32)
    values = [
        ("1 in lane 0, zero elsewhere", one[0],
         "lanes see each other through shuffles alone, and five are enough: add what comes to what is there."),
        ("1 in lane 31", one[31],
         "the last lane's value must reach lane 0: five shuffles, 31 lanes. Beyond the last lane each gets its own."),
        ("1 in lane 3", one[3],
         "a value that lies between must come too: each step goes on with the sums of the step before."),
        ("0 to 31", np.arange(32, dtype=np.float32),
         "each value counts once. Five shuffles are enough: each halves the number of sums that still count. Only "
         "shuffles bring a value to another lane; a sum over all lanes at once does not exist on the GPU."),
    ]  # fmt: skip
    run(counted, [Case(what, (value,), told(value.sum(), value, 5), cause) for what, value, cause in values])


def find_culprit(function: Callable) -> None:
    """function(make, kernel) -> "generator", "kernel" or "neither": what is wrong first.

    make(d, ql, qh, scales) -> uint8[210], a Q6_K block; kernel(block, a: f32[256]) -> float, its dot product with a.
    """
    cases = [
        ("a generator that puts d at offset 0, and a kernel that is right", _d_first, _kernel, "generator",
         "the kernel is right; the block is not. A Q6_K block ends with d, at byte 208: look at what make returns "
         "before you suspect the kernel."),
        ("both right", _right, _kernel, "neither",
         "floats are added in some order: allow for rounding. And a random block must be a possible one: d must not be "
         "NaN."),
        ("a right generator, and a kernel that takes scales for unsigned", _right, _unsigned_kernel, "kernel",
         "scales are int8. Try blocks whose scales have both signs: with positive ones alone this kernel passes."),
        ("a right generator, and a kernel that forgets the upper two bits", _right, _low_kernel, "kernel",
         "codes have six bits, four of them in ql. Try random qh, not zeros."),
        ("generator and kernel both with d at offset 0", _d_first, _d_first_kernel, "generator",
         "they agree with each other, and both are wrong. Compare with something that is independent of both: "
         "mf.FORMATS['Q6_K'] says where the fields are."),
        ("a generator that swaps qh and ql", _swapped, _kernel, "generator",
         "all fields must be where the format says, not d alone: compare ql, qh, scales and d."),
    ]  # fmt: skip
    run(function, [Case(what, (make, kernel), word, cause) for what, make, kernel, word, cause in cases])


def _right(d: float, ql: np.ndarray, qh: np.ndarray, scales: np.ndarray) -> np.ndarray:
    block = np.zeros(1, FORMATS["Q6_K"].dtype)
    block["d"], block["ql"], block["qh"], block["scales"] = d, ql, qh, scales
    return block.view(np.uint8)


def _d_first(d: float, ql: np.ndarray, qh: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return np.roll(_right(d, ql, qh, scales), 2)


def _swapped(d: float, ql: np.ndarray, qh: np.ndarray, scales: np.ndarray) -> np.ndarray:
    block = _right(d, ql, qh, scales)
    return np.concatenate([block[128:192], block[:128], block[192:]])


def _kernel(block: np.ndarray, a: np.ndarray) -> float:
    return float(dequantize("Q6_K", block).astype(np.float64) @ a)


def _d_first_kernel(block: np.ndarray, a: np.ndarray) -> float:
    return _kernel(np.roll(block, -2), a)


def _unsigned_kernel(block: np.ndarray, a: np.ndarray) -> float:
    """Splits the scales into what an int8 holds and the 256 that it lost."""
    lost = block.copy()
    lost.view(FORMATS["Q6_K"].dtype)["scales"] = np.where(block[192:208] > 127, 64, 0)
    return _kernel(block, a) + 4 * _kernel(lost, a)


def _low_kernel(block: np.ndarray, a: np.ndarray) -> float:
    low = block.copy()
    low[128:192] = 0
    return _kernel(low, a)
