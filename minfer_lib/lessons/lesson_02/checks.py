"""Lesson 2: quantizers of 32-value blocks, and how far they are off."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minfer_lib.formats.table import FORMATS
from minfer_lib.lessons.shared.check_runner import Case, run
from minfer_lib.quantize.api import quantize


def quantize_q8_0(function: Callable) -> None:
    """function(x: f32[32]) -> the block's 34 bytes, uint8, by ggml's reference rule."""
    random = np.random.default_rng(5)
    uneven = random.normal(0, 3, 32)
    uneven[9] = -11.25  # the largest magnitude is negative
    blocks = [
        ("values between -127 and 127, the largest 127, so that d is 1", _padded(127, -3, 40, -126, 7),
         "d is amax / 127, an f16 whose low byte comes first; then the 32 codes, as int8."),
        ("a block whose largest magnitude is negative", uneven,
         "amax is the largest absolute value: np.abs(x).max(), not x.max()."),
        ("the ties 0.5, 1.5, 2.5 and their negatives, with d = 1", _padded(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 127),
         "ties. The reference rounds halves away from zero, to 1, 2, 3 and -1, -2, -3; np.round rounds them to even."),
        ("a block whose d is not exact in f16", _rounding_block(),
         "codes come from d as it was before it was rounded to f16; only the stored d is rounded."),
        ("32 zeros", np.zeros(32), "d is 0 here, and 0 / 0 is NaN: where d is 0, all codes are 0."),
        ("values near 1e-5, whose d is a subnormal f16", random.normal(0, 1e-5, 32),
         "d is small here but not zero: only an exact zero is special."),
    ]  # fmt: skip
    cases = []
    for what, values, cause in blocks:
        x = np.asarray(values, np.float32)
        cases.append(Case(what, (x,), quantize("Q8_0", x), cause))
    _run_quietly(function, cases)


def error_bound(function: Callable) -> None:
    """function(amax: float) -> how far a value of a Q8_0 block with that amax can be off."""
    amaxes = [
        (127.0, "d is 1, exact in f16: half a step is all."),
        (_amax_between_halves(), "the stored d can be off by 2^-11 of itself, and the largest code multiplies that."),
        (1.0, "how much d is off depends on d: compare it with its own f16, not with the worst that there is."),
        (0.0, "a block of zeros decodes exactly."),
        (2e-6, "d is so small that its f16 is 0: every value decodes to 0, and the largest is off by all of itself."),
        (50000.0, "nothing is special about large values: d / 2, and 127 times what f16 changes about d."),
    ]  # fmt: skip
    cases = []
    for amax, cause in amaxes:
        d = np.float64(amax) / 127
        rounding = abs(d - np.float64(np.float16(d)))
        bound = float(d / 2 + 127 * rounding)
        tolerance = 1.5 * rounding + 1e-6 * d  # 126 times instead of 127 is as good a reason
        cases.append(Case(f"amax = {amax:g}", (amax,), bound, cause, tolerance))
    _run_quietly(function, cases)


def round_trip(function: Callable) -> None:
    """function(x: f32[n_blocks, 32]) -> the same values after Q8_0, f32[n_blocks, 32], never NaN."""
    random = np.random.default_rng(6)
    ordinary = random.normal(0, 2, (2, 32))
    mixed = random.normal(0, 1, (3, 32))
    mixed[1] = 0
    small = random.normal(0, 3e-4, (1, 32))
    blocks = [
        ("two ordinary blocks", ordinary, "what was right before the repair must stay as it was."),
        ("one block of zeros", np.zeros((1, 32)), "0 / 0 is NaN: where d is 0, the result is 0."),
        ("a block of zeros between two others", mixed,
         "each block has its own d. Blocks of zeros and others come together: decide block by block."),
        ("a block of small values", small,
         "adding a small number to d avoids the division by zero, and changes the codes of small blocks."),
        ("values so small that amax / 127 is 0", np.full((1, 32), 2e-44),
         "the largest value is not zero here, but d is: it is d that must be asked."),
        ("values so small that 1 / d is infinite", np.full((1, 32), 1e-40),
         "1 / d overflows although d is not zero. Divide x by d itself."),
    ]  # fmt: skip
    cases = []
    for what, values, cause in blocks:
        x = values.astype(np.float32)
        d = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
        codes = np.rint(np.divide(x, d, out=np.zeros_like(x), where=d > 0))
        cases.append(Case(what, (x,), codes * d.astype(np.float16).astype(np.float32), cause))
    _run_quietly(function, cases)


def q4_0_scale(function: Callable) -> None:
    """function(x: f32[32]) -> d as it is stored, an f16."""
    random = np.random.default_rng(7)
    positive, negative = random.normal(0, 1, (2, 32))
    positive[3], negative[30] = 5.25, -4.75
    blocks = [
        ("a block whose largest magnitude is -8", _padded(1, 7, -8, 3),
         "there are 8 codes below zero: d is the value of largest magnitude divided by -8."),
        ("a block whose largest magnitude is positive", positive,
         "the sign stays: a positive largest value gives a negative d, so that it gets code 0."),
        ("a block whose largest magnitude is negative", negative,
         "the value of largest magnitude may be the smallest one, x.min()."),
        ("2 before -2", _padded(1, 2, 0, -2), "of two equal magnitudes the first counts, here 2: d is negative."),
        ("-2 before 2", _padded(1, -2, 0, 2), "of two equal magnitudes the first counts, here -2: d is positive."),
        ("a largest value of 0.3", _padded(0.1, 0.3, -0.2), "d is stored as f16: return it rounded, np.float16(...)."),
        ("32 zeros", np.zeros(32), "a block of zeros has scale 0."),
    ]  # fmt: skip
    cases = []
    for what, values, cause in blocks:
        x = np.asarray(values, np.float32)
        cases.append(Case(what, (x,), quantize("Q4_0", x).view(FORMATS["Q4_0"].dtype)["d"][0], cause))
    _run_quietly(function, cases)


def _run_quietly(function: Callable, cases: list[Case]) -> None:
    """A division by zero shows in the result; NumPy need not warn of it too."""
    with np.errstate(all="ignore"):
        run(function, cases)


def _padded(*values: float) -> np.ndarray:
    return np.array(values + (0,) * (32 - len(values)), np.float32)


def _amax_between_halves() -> float:
    """An amax whose d lies almost half way between two f16 numbers, just above a power of two: rounding costs most."""
    return float(np.float32(127 * 2.0**-5 * (1 + 0.98 * 2.0**-11)))


def _rounding_block() -> np.ndarray:
    """Codes of 100 and more, each 0.48 steps above: with the stored d, which is smaller, they would be one more."""
    d = np.float32(_amax_between_halves() / 127)
    return np.concatenate([(100 + np.arange(27) + np.float32(0.48)) * d, [127 * d], -np.arange(4) * d])
