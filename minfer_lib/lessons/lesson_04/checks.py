"""Lesson 4: kernels in registers. The learner's function is run on emulated registers, so any machine will do."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np
from numba import njit

from minfer_lib.dot.q4_0 import dot_q4_0_avx2
from minfer_lib.dot.q8_0 import dot_q8_0_avx2
from minfer_lib.formats.table import FORMATS
from minfer_lib.lessons.shared.check_runner import Case, CheckFailedError, run
from minfer_lib.simd.ops import load
from minfer_lib.simd.registers import f32x8
from minfer_lib.simd.step import step


def dot_q8_0(function: Callable) -> None:
    """function(w, a, n_blocks): Q8_0 rows as uint8 -> float32. The order of the float sums is free."""
    random = np.random.default_rng(41)
    steps, signed = np.arange(1, 33), random.integers(-127, 128, 32)
    lowest = np.where(np.arange(32) % 3, signed, -128)
    rows = [
        ("weights and activations above zero", [steps], [2 * steps],
         "32 codes begin at byte 2 of each block, after the scale."),
        ("weights below zero", [-steps], [2 * steps],
         "maddubs reads its first operand as unsigned: −1 becomes 255. Take the sign of the weights away first, and "
         "give it to the activations."),
        ("activations below zero", [steps], [signed], "the activations keep their own sign, too."),
        ("signs of all kinds, zeros among them", [signed[::-1]], [np.where(steps % 4, signed, 0)],
         "sign(x, y) is x with the sign of y. The weights' signs go to both: sign(qw, qw) and sign(qa, qw)."),
        ("weights of −128, activations of −127", [lowest], [np.full(32, -127)],
         "the sides. −128 has no positive int8: as a magnitude it is right only where it is read as unsigned, and "
         "that is the weights' side."),
        ("two blocks with different scales", [signed, steps], [steps, -signed],
         "each block has its own d_w · d_a: multiply its int32 lanes by it before you add."),
        ("three blocks", [signed, steps, lowest], [steps, signed, signed],
         "every block counts: rows may have any length."),
    ]  # fmt: skip
    cases = []
    for what, weights, activations, cause in rows:
        w, a = (_q8_0(codes, first) for codes, first in ((weights, 0.5), (activations, 0.75)))
        right = step(dot_q8_0_avx2, w, 0, a, 0, len(weights)).result
        size = sum(np.abs(np.multiply(x, y)).sum() for x, y in zip(weights, activations, strict=True))
        cases.append(Case(what, (w, a, len(weights)), right, cause, tolerance=2e-6 * float(size)))
    run(_emulated(function), cases)


def _q8_0(blocks: list[np.ndarray], d: float) -> np.ndarray:
    """Blocks of these codes; their scales are d, d / 2, d / 3 … as f16."""
    made = np.zeros(len(blocks), FORMATS["Q8_0"].dtype)
    for b, codes in enumerate(blocks):
        made[b] = d / (b + 1), codes
    return made.view(np.uint8)


def _emulated(function: Callable, forbidden: dict[str, str] | None = None) -> Callable:
    """`function` on emulated registers; using a forbidden operation (name -> why) fails the check."""

    @wraps(function)
    def emulated(*arguments):
        try:
            trace = step(njit(function), *arguments, isa="avx2")
        except NotImplementedError as error:
            if str(error):  # numba's, of an operation that was called in plain Python
                raise TypeError("an operation was used outside the kernel: a helper of it needs @njit.") from error
            raise
        for name, why in (forbidden or {}).items():
            if any(s.name == name for s in trace.steps):
                raise CheckFailedError(f"{function.__name__} uses {name}: {why}")
        return trace.result

    return emulated


def hsum(function: Callable) -> None:
    """function(v: f32x8) -> float32, in the order ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7))."""
    own = njit(function)

    def loaded(raw):
        return own(load(f32x8, raw, 0))

    @wraps(function)
    def emulated(lanes):
        return step(njit(loaded), lanes.view(np.uint8), isa="avx2").result

    big = np.float32(2**24)
    order = (
        "the last bits: that is another order. First half + second half; of the four sums the first two + the last "
        "two; then lane 0 + lane 1."
    )
    lanes = [
        ("the numbers 1 to 8", range(1, 9), "every lane counts once: 36."),
        ("powers of ten", 10.0 ** np.arange(8), "every lane counts once: 11,111,111."),
        ("a large number in lane 0, its opposite in lane 4", [big, 1, 1, 1, -big, 1, 1, 1], order),
        ("a large number in lane 0, its opposite in lane 2", [big, 1, -big, 1, 1, 1, 1, 1], order),
        ("a large number in lane 1, its opposite in lane 3", [1, big, 3, -big, 1, 1, 1, 1], order),
        ("random numbers", np.random.default_rng(42).normal(0, 1, 8), order),
        ("a NaN in lane 7", [0, 0, 0, 0, 0, 0, 0, np.nan], "a NaN stays one."),
    ]
    cases = []
    for what, values, cause in lanes:
        v = np.array(values, np.float32)
        right = ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))
        cases.append(Case(what, (v,), right, cause))
    run(emulated, cases)


def dot_without_signs(function: Callable) -> None:
    """function(w, a, n_blocks): Q4_0 and Q8_0 rows as uint8 -> float32, without `sign`; the AVX2 kernel's bits."""
    random = np.random.default_rng(43)
    ones, signed = np.ones(32), random.integers(-127, 128, 32)
    balanced = np.concatenate([signed[:16], -signed[:16]])
    codes = [random.integers(0, 256, 16) for _ in range(3)]
    eights = np.full(16, 0x88)
    rows = [
        ("all codes 8, which stand for 0", [eights], [signed],
         "code · a − 8 · a is 0 here. What is taken off is 8 times the sum of the activations, not a constant."),
        ("all activations 1", [codes[0]], [ones], "Σ code · a, minus 8 · Σ a, which is 256 here."),
        ("activations that add up to 0", [codes[0]], [balanced],
         "8 · Σa is 0 over the block, but not in each lane; and the codes' own sum must be right."),
        ("signs of all kinds", [codes[1]], [signed],
         "both sums are signed. Take the second from the first in int32, before the scales."),
        ("codes 0, activations −127", [np.zeros(16)], [np.full(32, -127)],
         "−8 · Σa is positive here: 8 · 32 · 127."),
        ("two blocks with different scales", [codes[1], codes[2]], [signed, ones],
         "8 · Σa belongs to its block: it takes that block's d_w · d_a, as the rest does."),
        ("eight blocks", codes * 2 + codes[:2],
         [ones, signed, balanced, signed[::-1], -signed, signed, balanced, signed],
         "the last bits. Both sums are integers: subtract lane by lane, then one fmadd a block, and hsum8 at the end."),
    ]  # fmt: skip
    cases = []
    for what, weights, activations, cause in rows:
        w = np.zeros(len(weights), FORMATS["Q4_0"].dtype)
        for b, packed in enumerate(weights):
            w[b] = 1.3 / (b + 1), packed
        w, a = w.view(np.uint8), _q8_0(activations, 0.75)
        cases.append(Case(what, (w, a, len(weights)), step(dot_q4_0_avx2, w, 0, a, 0, len(weights)).result, cause))
    run(_emulated(function, {"sign": "that is the trick to do without. Leave the codes unsigned."}), cases)


def byte_dot(function: Callable) -> None:
    """function(w, a): uint8[32], read as unsigned and as signed -> int32[8], lane k the products 4k to 4k + 3."""
    random = np.random.default_rng(44)
    steps, signed = np.arange(32), random.integers(-127, 128, 32)
    pairs = [
        ("small numbers", steps, steps[::-1],
         "lane k is the sum of products 4k to 4k + 3. Two registers of pair sums: add them lane by lane."),
        ("signs on the second side", steps, signed, "the second side is signed, the first is not."),
        ("weights of 200 and more", 200 + steps, signed,
         "the first side is unsigned: 200 stays 200. Do not read it as int8, do not clip it."),
        ("255 times 127 everywhere", np.full(32, 255), np.full(32, 127),
         "a pair of these is 64,770 and does not fit into int16: maddubs saturates. One product alone is 32,385 and "
         "fits."),
        ("255 times −127 everywhere", np.full(32, 255), np.full(32, -127),
         "the pair sums saturate below zero as well."),
        ("255 and 127 in even places only", np.where(steps % 2, 3, 255), np.where(steps % 2, -5, 127),
         "even and odd bytes both count, each once."),
        ("random bytes", random.integers(0, 256, 32), signed, "every byte counts, in its own lane."),
    ]  # fmt: skip
    cases = []
    for what, weights, activations, cause in pairs:
        w, a = weights.astype(np.uint8), activations.astype(np.int8).view(np.uint8)
        cases.append(Case(what, (w, a), (weights * activations).reshape(8, 4).sum(axis=1), cause))
    run(_emulated(function, {"dpbusd": "AVX2 does not have it. Repair the kernel with what AVX2 has."}), cases)


def pack_fours(function: Callable) -> None:
    """function(a): int8[n_tokens, n] -> int8[n / 4, 4 * n_tokens]: row j has values 4 j to 4 j + 3 of every token."""
    random = np.random.default_rng(45)
    steps = np.arange(1, 9)
    rows = [
        ("one token of eight values", [steps],
         "row 0 has the token's values 0 to 3, row 1 its values 4 to 7: n / 4 rows."),
        ("two tokens of four values", [steps[:4], 10 * steps[:4]],
         "there is one row of B. In it stand the four values of token 0, then those of token 1: no token is mixed with "
         "another inside a four."),
        ("two tokens of eight values", [steps, 10 * steps],
         "a row of B holds one four of every token. Flat memory cut into other rows holds one token after the other."),
        ("three tokens of sixteen values", random.integers(1, 128, (3, 16)),
         "byte 4 c + i of row j is value 4 j + i of token c, whatever the numbers of tokens and of values are."),
        ("values below zero", -10 * np.stack([steps, steps + 1]),
         "the bytes keep their sign: int8 in, int8 out."),
        ("16 tokens of 64 values", random.integers(-127, 128, (16, 64)),
         "a full tile: 16 rows of 64 bytes."),
    ]  # fmt: skip
    cases = []
    for what, values, cause in rows:
        a = np.array(values, np.int8)
        right = np.zeros((a.shape[1] // 4, 4 * len(a)), np.int8)
        for c, i in np.ndindex(a.shape):
            right[i // 4, 4 * c + i % 4] = a[c, i]
        cases.append(Case(what, (a,), right, cause))
    run(function, cases)
