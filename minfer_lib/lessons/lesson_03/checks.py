"""Lesson 3: one output number, its bits and its place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minfer_lib.dot.api import dot
from minfer_lib.formats.table import FORMATS
from minfer_lib.lessons.shared.check_runner import Case, run
from minfer_lib.matmul.api import matmul
from minfer_lib.quantize.activations import quantize_activations
from minfer_lib.quantize.api import quantize

_BYTES = "a74f1c08e3d25b96807fc13ae4460d95"  # sixteen bytes in no order
_TWO = "4040"  # 2.125, an f16 that reads the same in both byte orders


def dot_q4_0_q8_0(function: Callable) -> None:
    """function(w: uint8[18 * n], a: uint8[34 * n]) -> the scalar kernel's float32, to the last bit."""
    ones, steps = "01" * 32, bytes((5 * i + 3) % 13 for i in range(32)).hex()
    signed = np.array([(5 * i + 2) % 27 - 13 for i in range(32)], np.int8).tobytes().hex()
    rows = [
        ("one block, all activations 1", _TWO + "21" * 16, _TWO + ones,
         "a code stands for code - 8: subtract 8 from each, as an int. In uint8, 1 - 8 is 249."),
        ("activations from 0 to 12", _TWO + _BYTES, _TWO + steps,
         "the order. Byte j holds element j low and element j + 16 high; element j + 16 meets a[2 + j + 16]."),
        ("activations below zero too", _TWO + _BYTES, _TWO + signed,
         "activation codes are signed: a[2:].view(np.int8). As uint8, -1 is 255."),
        ("codes 0 and activations 127, the largest products", _TWO + "00" * 16, _TWO + "7f" * 32,
         "-8 · 127 does not fit in an int8: widen both sides before you multiply."),
        ("d_w = 0.5, d_a = -0.25", "0038" + _BYTES, "00b4" + steps,
         "both scales count once: an f16 each, low byte first, block[:2].view('<f2')."),
        ("two blocks with different scales", "0038" + _BYTES + "0040" + "21" * 16, "003c" + steps + "0039" + ones,
         "each block has scales of its own, and takes 18 bytes here and 34 there."),
        ("three blocks", "003c" + "9a" * 16 + "0038" + _BYTES + "0042" + "17" * 16,
         "003c" + steps + "0034" + signed + "0039" + ones,
         "every block counts, the last one too: a row may have an odd number of them."),
    ]  # fmt: skip
    cases = []
    for what, w, a, cause in rows:
        w, a = (np.frombuffer(bytes.fromhex(digits), np.uint8) for digits in (w, a))
        cases.append(Case(what, (w, a), dot("Q4_0", w, a, "scalar"), cause))
    order = (
        "the last bits: that is rounding, in another order than the kernel's. Each block is (isum · d_w) · d_a in "
        "float32, added to a float32 total, block after block. Python floats, np.dot and np.sum round elsewhere. "
        "If only three digits agree, the scales were multiplied as f16: make each a float32 first."
    )
    for w, a in _long_rows():
        cases.append(Case("a row of 4096", (w, a), dot("Q4_0", w, a, "scalar"), order))
    run(function, cases)


def _long_rows() -> list[tuple[np.ndarray, np.ndarray]]:
    """Four pairs of rows of 128 blocks; in two of them isum is so large that isum · d_w must be rounded."""
    random = np.random.default_rng(31)
    pairs = []
    for low in (0, 0, 4, 4):
        w = quantize("Q4_0", random.normal(0.3, 1, 4096).astype(np.float32))
        x = random.uniform(low - 2, 6, (128, 32)) * random.choice([-1, 1], (128, 1))  # so that the total stays small
        a = quantize_activations("Q8_0", x.ravel().astype(np.float32))
        if low:
            w.view(FORMATS["Q4_0"].dtype)["qs"] &= 0x11  # codes -8 and -7
        pairs.append((w, a))
    return pairs


def block_sum(function: Callable) -> None:
    """function(codes: uint8[32], 0 to 15; a: int8[32]) -> the sum of (code - 8) * a, the 8 taken off last."""
    random = np.random.default_rng(32)
    codes = random.integers(0, 16, 32)
    small = random.integers(-8, 9, 16)
    balanced = np.concatenate([small, -small])
    one = balanced.copy()
    one[31] += 1
    pairs = [
        ("small activations that add up to 1", codes, one,
         "the first part is Σ code · a, as before. What is taken off must be right here too, where Σa = 1."),
        ("all codes 8, all activations 3", np.full(32, 8), np.full(32, 3),
         "every product loses 8 times its own activation. That is 8 · Σa in all, not 8."),
        ("activations that add up to 0", codes, balanced,
         "8 · Σa is 0 here: what is taken off depends on the activations, not on how many there are."),
        ("all codes 15, all activations 127", np.full(32, 15), np.full(32, 127),
         "15 · 127 does not fit in an int8, nor in a uint8: widen before you multiply."),
        ("all codes 0, all activations -127", np.zeros(32), np.full(32, -127),
         "activations are signed, and so is their sum: 8 · Σa is negative here, and taking it off adds."),
        ("random codes and activations", codes, random.integers(-127, 128, 32),
         "Σ (code - 8) · a = Σ code · a - 8 · Σ a, all of it in integers."),
    ]  # fmt: skip
    cases = []
    for what, codes, a, cause in pairs:
        right = int(((codes.astype(int) - 8) * a.astype(int)).sum())
        cases.append(Case(what, (codes.astype(np.uint8), a.astype(np.int8)), right, cause))
    run(function, cases)


def matmul_q4_0(function: Callable) -> None:
    """function(w: uint8[n_out * row], a: uint8[n_tokens * row], n_out, n_tokens) -> f32[n_tokens * n_out].

    The output is token-major.
    """
    random = np.random.default_rng(33)
    shapes = [
        (3, 1, 32, "one token: output o is row o of w times the only row of a. Rows of w are 18 bytes a block."),
        (1, 4, 32, "one output, four tokens: each token has a row of its own in a, 34 bytes a block."),
        (3, 2, 64, "1e0 off is a layout fault. Output o of token t stands at t · n_out + o; o · n_tokens + t is "
                   "transposed. With one token the two are the same."),
        (3, 3, 96, "a square: the shapes agree, the places must too. Rows of w and of a have different lengths."),
        (2, 5, 160, "more tokens than outputs, and five blocks a row: row t of a begins at t · (its own row length)."),
    ]  # fmt: skip
    cases = []
    for n_out, n_tokens, n_in, cause in shapes:
        w = quantize("Q4_0", random.normal(0, 1, n_out * n_in).astype(np.float32))
        x = random.normal(1, 2, (n_tokens, n_in)).astype(np.float32)
        right = matmul("Q4_0", w.reshape(n_out, -1), x, threads=1).ravel()
        arguments = (w, quantize_activations("Q8_0", x.ravel()), n_out, n_tokens)
        what = f"{n_tokens} token{'s' * (n_tokens > 1)}, {n_out} output{'s' * (n_out > 1)}, rows of {n_in}"
        cases.append(Case(what, arguments, right, cause, tolerance=1e-4))
    run(function, cases)


def find_fault(function: Callable) -> None:
    """function(format, n_in, n_out, n_tokens, blocks, row_bytes, out_bytes) -> "rows", "blocks", "stride", "output" or
    "values": which of the numbers of a run cannot be, in that order.
    """
    runs = [
        ("a run of 100 tokens whose three numbers are right", ("Q4_0", 896, 896, 100, 28, 504, 358_400), "values",
         "28 = 896 / 32, 504 = 28 · 18, 358,400 = 100 · 896 · 4: nothing is wrong with them. A transposed output has "
         "the right size too."),
        ("a row of w that is as long as a row of a", ("Q4_0", 896, 896, 100, 28, 952, 358_400), "stride",
         "952 is 28 · 34, the activations' rows. A weight row is blocks · block_bytes of its own format."),
        ("K-quants counted in 32s", ("Q4_K", 3584, 512, 7, 112, 16_128, 14_336), "blocks",
         "K-quants have blocks of 256: mf.FORMATS[format].block_values. A consistent stride hides it."),
        ("Q6_K with rows of 2176", ("Q6_K", 2176, 64, 3, 8, 1680, 768), "rows",
         "2176 is eight and a half times 256: a row must be a whole number of blocks, else nothing else can be right."),
        ("Q5_1, whose three numbers are right", ("Q5_1", 96, 5, 2, 3, 72, 40), "values",
         "each format has a block size of its own, here 24 bytes: mf.FORMATS[format].block_bytes."),
        ("an output for one token of seven", ("Q8_0", 576, 1536, 7, 18, 612, 6144), "output",
         "the output is n_tokens · n_out numbers."),
        ("an output of two bytes a number", ("Q8_0", 576, 1536, 7, 18, 612, 21_504), "output",
         "the outputs are float32: four bytes each."),
        ("several faults: K-quants counted in 32s, and the stride of Q4_0", ("Q4_K", 1024, 8, 1, 32, 576, 16), "blocks",
         "a wrong number explains those after it: name the first, in the order rows, blocks, stride, output."),
        ("a vector of one block", ("Q4_0", 32, 1, 1, 1, 18, 4), "values", "this one is right too."),
    ]  # fmt: skip
    run(function, [Case(what, arguments, right, cause) for what, arguments, right, cause in runs])
