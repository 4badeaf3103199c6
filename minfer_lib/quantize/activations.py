"""float32 activations -> the blocks that the dots take, at run time. One definition, the same bytes on every CPU.

    d = f16(amax / 127)      code = round_half_even(x * (127 / amax))      amax = the largest |x| of the block

The Q8_0 bytes are those of ggml's x86 path (`arch/x86/quants.c`, quantize_row_q8_0), not of its reference, which rounds
x * (1 / d) half away from zero. "Q8_K" (306 bytes, seed 1 §2.4) and "Q8_0_PAD40" (seed 3) are minfer's own blocks, by
the same rule. ggml's Q8_K, 292 bytes with a signed float32 scale, is `mf.quantize("Q8_K_GGML", x)`.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from minfer_lib.errors import ArgumentError
from minfer_lib.formats.arrays import float_array
from minfer_lib.formats.table import FORMATS
from minfer_lib.native.address import bytes_at, call_native, floats_at, native_address
from minfer_lib.native.jit import kernel
from minfer_lib.quantize.activations_simd import quantize_rows_q8_0_avx2, quantize_rows_q8_k_avx2
from minfer_lib.simd.isa import isas
from minfer_lib.simd.ops import f32_to_f16


@kernel
def quantize_block(x, out, at):
    """x: f32[n], one block -> its n int8 codes at byte `at` of out, uint8[:]. Returns (d as f16 bits, all finite?)."""
    finite = True
    amax = np.float32(0)
    for value in x:
        magnitude = abs(value)
        finite &= magnitude < np.inf  # false for NaN too
        amax = max(amax, magnitude)
    inverse = np.float32(127) / amax
    if not inverse < np.inf:  # all zeros, or so small that every code is zero anyway: d is zero too
        inverse = np.float32(0)
    for i in range(len(x)):
        out[at + i] = np.uint8(np.int8(np.rint(x[i] * inverse)))
    return f32_to_f16(amax / np.float32(127)), finite


@kernel
def store(out, at, value, n_bytes):
    """The lowest n_bytes bytes of an integer, the lowest first, from byte `at` of out on."""
    for i in range(n_bytes):
        out[at + i] = (value >> 8 * i) & 255


@kernel
def code_sum(out, at, n):
    """The sum of the n int8 codes from byte `at` of out on."""
    total = np.int32(0)
    for i in range(at, at + n):
        total += np.int32(np.int8(out[i]))
    return total


@kernel
def quantize_rows_q8_0(x, out):
    """x: f32[n_tokens, n] -> out: uint8[n_tokens, n / 32 * 34]. False if a value is NaN or infinite.

    Block: d at 0, 32 codes at 2.
    """
    finite = True
    for t in range(x.shape[0]):
        for b in range(x.shape[1] // 32):
            at = 34 * b
            d, ok = quantize_block(x[t, 32 * b : 32 * b + 32], out[t], at + 2)
            store(out[t], at, d, 2)
            finite &= ok
    return finite


@kernel
def quantize_rows_q8_k(x, out):
    """x: f32[n_tokens, n] -> out: uint8[n_tokens, n / 256 * 306]. False if a value is NaN or infinite.

    Block: d at 0, 256 codes at 2, 16 zero bytes at 258, at 274 the int16 sums of 16 codes each.
    """
    finite = True
    for t in range(x.shape[0]):
        for b in range(x.shape[1] // 256):
            at = 306 * b
            d, ok = quantize_block(x[t, 256 * b : 256 * b + 256], out[t], at + 2)
            store(out[t], at, d, 2)
            out[t, at + 258 : at + 274] = 0
            for g in range(16):
                store(out[t], at + 274 + 2 * g, code_sum(out[t], at + 2 + 16 * g, 16), 2)
            finite &= ok
    return finite


@kernel
def quantize_rows_q8_0_pad40(x, out):
    """x: f32[n_tokens, n] -> out: uint8[n_tokens, n / 32 * 40]. False if a value is NaN or infinite.

    Block: d at 0, two zero bytes, 32 codes at 4, at 36 the int32 sum of all codes.
    """
    finite = True
    for t in range(x.shape[0]):
        for b in range(x.shape[1] // 32):
            at = 40 * b
            d, ok = quantize_block(x[t, 32 * b : 32 * b + 32], out[t], at + 4)
            store(out[t], at, np.int32(d), 4)
            store(out[t], at + 36, code_sum(out[t], at + 4, 32), 4)
            finite &= ok
    return finite


_Q8_0 = quantize_rows_q8_0_avx2 if "avx2" in isas() else quantize_rows_q8_0
_Q8_K = quantize_rows_q8_k_avx2 if "avx2" in isas() else quantize_rows_q8_k

_QUANTIZERS = {  # activation format -> compiled rows quantizer
    "Q8_0": _Q8_0,
    "Q8_K": _Q8_K,
    "Q8_0_PAD40": quantize_rows_q8_0_pad40,
}


@kernel
def _q8_0_at(x, n_tokens, n, out):
    """_Q8_0 by addresses; 1 if all was finite."""
    rows = bytes_at(out, n_tokens * (n // 32 * 34)).reshape(n_tokens, n // 32 * 34)
    return np.int64(_Q8_0(floats_at(x, n_tokens, n), rows))


@kernel
def _q8_k_at(x, n_tokens, n, out):
    """_Q8_K by addresses; 1 if all was finite."""
    rows = bytes_at(out, n_tokens * (n // 256 * 306)).reshape(n_tokens, n // 256 * 306)
    return np.int64(_Q8_K(floats_at(x, n_tokens, n), rows))


@intrinsic
def call_quantizer(typingctx, address, x, n_tokens, n, out):
    """Call what `rows_quantizer` returned: n_tokens rows of n float32 at x -> blocks at out; 1 if all was finite."""
    return types.int64(*[types.int64] * 5), call_native


def rows_quantizer(name: str) -> int:
    """Native address of the quantizer of "Q8_0" or "Q8_K", for `call_quantizer`; compiled if need be."""
    return native_address({"Q8_0": _q8_0_at, "Q8_K": _q8_k_at}[name], *[types.int64] * 4)


def activation_rows(name: str | None, x: np.ndarray) -> np.ndarray:
    """x: f32[n_tokens, n] -> uint8[n_tokens, row_bytes] in the activation format `name`; None: its own float32 bytes.

    Raises ArgumentError: rows are not whole blocks, or a value is NaN or infinite.
    """
    if name is None:
        return x.view(np.uint8)
    row = FORMATS[name]
    if x.shape[1] % row.block_values:
        raise ArgumentError(f"{name} blocks hold {row.block_values} values; a row of {x.shape[1]} does not divide.")
    out = np.empty((x.shape[0], row.row_bytes(x.shape[1])), np.uint8)
    if not _QUANTIZERS[name](np.ascontiguousarray(x), out):
        raise ArgumentError(f"{name} activations must be finite; the values hold NaN or infinity.")
    return out


def quantize_activations(name: str, x: np.ndarray) -> np.ndarray:
    """Quantize one row, f32[n] -> uint8[bytes], exactly as the engine does. Formats: "Q8_0", "Q8_K", "Q8_0_PAD40".

    "Q8_K" is the 306-byte block. Raises ArgumentError (no such format, not one row of whole blocks, NaN or infinity).
    """
    if name not in _QUANTIZERS:
        raise ArgumentError(f"{name!r} is not a run-time activation format: those are {', '.join(_QUANTIZERS)}.")
    return activation_rows(name, float_array(x, "a row of activations", ndim=1)[None])[0]
