"""Lesson 5: the min term, the sums that it takes, and the activations that are none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minfer_lib.dot.api import dot
from minfer_lib.formats.decode import dequantize
from minfer_lib.formats.packing import pack_scales_mins
from minfer_lib.formats.table import FORMATS
from minfer_lib.lessons.shared.check_runner import Case, run

Q4_K, Q8_K = FORMATS["Q4_K"].dtype, FORMATS["Q8_K"].dtype


def _weights(d: float, dmin: float, scales, mins, codes) -> np.ndarray:
    """uint8[144]; scales and mins: a number or 8 of them; codes: uint8[8, 32], or one for all."""
    block = np.zeros(1, Q4_K)
    scales, mins = (np.broadcast_to(v, 8).astype(np.uint8)[None] for v in (scales, mins))
    pairs = np.broadcast_to(codes, (8, 32)).astype(np.uint8).reshape(4, 2, 32)
    block["d"], block["dmin"], block["scales"] = d, dmin, pack_scales_mins(scales, mins)
    block["qs"] = (pairs[:, 0] | pairs[:, 1] << 4).ravel()
    return block.view(np.uint8)


def _activations(d: float, codes) -> np.ndarray:
    """uint8[306]; codes: int8[256], or one for all."""
    block = np.zeros(1, Q8_K)
    block["d"], block["qs"] = d, codes
    block["bsums"] = block["qs"].reshape(16, 16).sum(axis=1, dtype=np.int16)
    return block.view(np.uint8)


def min_term(function: Callable) -> None:
    """function(w: uint8[144], a: uint8[306]) -> dmin * d_a * the sum of min * (sum of its 32 activations)."""
    random = np.random.default_rng(51)
    codes, some = random.integers(0, 16, (8, 32)), random.integers(-127, 128, 256)
    mins, scales = np.array([3, 60, 1, 33, 17, 52, 40, 9]), np.array([11, 2, 63, 30, 47, 5, 21, 36])
    by_group = np.repeat(np.arange(16), 16)
    rows = [
        ("all mins 1, all activations 1", _weights(1, 1, 2, 1, 3), _activations(1, 1),
         "eight groups of 32 ones: 256. A group of 32 takes two of the sixteen sums."),
        ("dmin = 0.5, d = 2, d_a = 0.25", _weights(2, 0.5, 2, 1, 3), _activations(0.25, 1),
         "the min is scaled by dmin, bytes 2 and 3, not by d, and by the activations' scale d_a, their bytes 0 and 1."),
        ("a different min in each group", _weights(1, 1, scales, mins, codes), _activations(1, by_group),
         "mins, not scales, and the sums in their pairs: group g takes sums 2 g and 2 g + 1."),
        ("activations below zero", _weights(1, 0.25, scales, mins, codes), _activations(0.5, -3),
         "the sums are signed, two bytes each: .view('<i2')."),
        ("the largest mins and sums", _weights(1, 1, 63, 63, 15), _activations(1, 127),
         "63 · 4064 does not fit in 16 bits: widen mins and sums before you multiply."),
        ("random bytes", _weights(0.0625, 0.03125, scales, mins, codes), _activations(0.5, some),
         "the term is what will be subtracted: dmin · d_a · Σ m · Σa, with its sign. The codes q have no part in it."),
    ]  # fmt: skip
    cases = []
    for what, w, a, cause in rows:
        block, act = w.view(Q4_K)[0], a.view(Q8_K)[0]
        bare = w.copy()
        bare[16:] = 0  # codes 0: what is left of every weight is its min
        right = -float(dequantize("Q4_K", bare).astype(np.float64) @ dequantize("Q8_K", a))
        size = float(block["dmin"]) * float(act["d"]) * 63 * 256 * 127
        cases.append(Case(what, (w, a), right, cause, tolerance=1e-6 * size))
    run(function, cases)


def group_sums(function: Callable) -> None:
    """function(a: uint8[306 * n]) -> int[n, 16], the sums of 16 codes each; the sums in `a` are not to be trusted."""
    random = np.random.default_rng(52)
    rising = np.arange(256) % 16 - 3
    pieces = [
        ("one block of ones", [np.ones(256)], "sixteen sums of sixteen ones, as an array [1, 16]."),
        ("codes that differ in each group", [np.repeat(np.arange(16) % 7, 16)],
         "sum g is of codes 16 g to 16 g + 15; the codes begin at byte 2."),
        ("codes below zero", [rising], "codes are signed: .view(np.int8) or .astype(np.int8). As uint8, -3 is 253."),
        ("all 127", [np.full(256, 127)], "16 · 127 does not fit in a byte: widen before you sum."),
        ("two blocks, and a scale of other bytes", [rising, random.integers(-127, 128, 256)],
         "306 bytes a block: 2 of scale, 256 of codes, 16 zeros, 32 of sums."),
        ("three random blocks", list(random.integers(-127, 128, (3, 256))), "every block has its own row."),
    ]  # fmt: skip
    cases = []
    for what, blocks, cause in pieces:
        rows = [_activations(0.37 + i, codes) for i, codes in enumerate(blocks)]
        right = np.array([row.view(Q8_K)["bsums"][0] for row in rows])
        for row in rows:
            row[274:] = 0xA5  # lost
        cases.append(Case(what, (np.concatenate(rows),), right, cause))
    run(function, cases)


def dot_q4_k(function: Callable) -> None:
    """function(w: uint8[144 * n], a: uint8[306 * n]) -> the library's number, but for rounding."""
    random = np.random.default_rng(53)
    codes = random.integers(0, 16, (3, 8, 32))
    acts = random.integers(-127, 128, (3, 256))
    mins, scales = random.integers(0, 64, (2, 3, 8))
    ramp = np.repeat(np.arange(8), 32).reshape(8, 32)
    rows = [
        ("all scales 1, no mins", [_weights(1, 0, 1, 0, 5)], [_activations(1, 1)],
         "without mins the value term is all: 256 · 5."),
        ("a code for each group", [_weights(1, 0, 1, 0, ramp)], [_activations(1, np.repeat(np.arange(8), 32))],
         "the order of the codes: byte 32 c + l has code 64 c + l low and code 64 c + 32 + l high, not neighbours."),
        ("a different scale in each group", [_weights(1, 0, scales[0], 0, codes[0])], [_activations(1, acts[0])],
         "each group's integer sum is multiplied by its own scale; scales 4 to 7 lie in pieces."),
        ("mins too", [_weights(0.5, 0.25, scales[0], mins[0], codes[0])], [_activations(0.5, acts[0])],
         "the min term is subtracted, scaled by dmin, and taken from the sums of the activations."),
        ("two super-blocks with different scales",
         [_weights(0.5, 0.25, scales[i], mins[i], codes[i]) for i in range(2)],
         [_activations(2.0 - i, acts[i]) for i in range(2)],
         "each super-block has d, dmin and d_a of its own: fold its integers, then start them at zero again."),
        ("three super-blocks",
         [_weights(0.125 + i, 0.5, scales[i], mins[i], codes[i]) for i in range(3)],
         [_activations(0.75 - i / 4, acts[i]) for i in range(3)],
         "every block counts, the last one too: a row may have an odd number of them."),
    ]  # fmt: skip
    cases = []
    for what, w, a, cause in rows:
        w, a = np.concatenate(w), np.concatenate(a)
        size = float(np.abs(dequantize("Q4_K", w).astype(np.float64) * dequantize("Q8_K", a)).sum())
        cases.append(Case(what, (w, a), dot("Q4_K", w, a, "scalar"), cause, tolerance=1e-5 * size))
    run(function, cases)


def crossed(function: Callable) -> None:
    """function(b, i) -> the element whose code lies where a Q8_K kernel reads activation i of block b; -1: a scale."""
    asked = [
        (0, 0, "both blocks begin with a scale of two bytes: the first code is in its place."),
        (0, 31, "the last code of the first Q8_0 block is byte 33, and still in its place."),
        (0, 32, "byte 34 is the next block's scale, no code: -1."),
        (0, 33, "a scale has two bytes."),
        (0, 34, "after the scale: element 32, read as activation 34."),
        (0, 100, "each Q8_0 block that was passed shifts the codes by two more bytes."),
        (0, 255, "byte 257 lies in Q8_0 block 7, byte 19 of it."),
        (1, 0, "the second block begins at byte 306, and 306 is nine times 34."),
        (1, 200, "add 306 · b before you divide; elements are counted through the row."),
        (2, 171, "and so on: 306 · 2 + 2 + 171 = 785."),
    ]
    cases = []
    for b, i, cause in asked:
        block, byte = divmod(306 * b + 2 + i, FORMATS["Q8_0"].block_bytes)
        right = 32 * block + byte - 2 if byte >= 2 else -1
        cases.append(Case(f"activation {i} of block {b}", (b, i), right, cause))
    run(function, cases)
