"""float32 -> K-quants, super-blocks of 256 weights, byte for byte as ggml's quantize_row_*_ref writes them.

Every K-quant is made in four steps: search a scale (and a minimum) for each sub-block; write those as small integers
times one f16 number of the super-block; with the scales as they will be read back, round every weight again; pack.
The kernels here do the middle two, `search.py` the first, `formats/packing.py` the last. Source: ggml `ggml-quants.c`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minfer_lib.formats.packing import pack, pack_codes, pack_scales_mins
from minfer_lib.formats.table import FORMATS
from minfer_lib.native.jit import kernel
from minfer_lib.quantize.search import (
    GROUP_MAX_EPS,
    clamp,
    nearest,
    refine_scale,
    search_scale,
    search_scale_min,
    signed_max,
)
from minfer_lib.simd.ops import f16_to_f32, f32_to_f16


@kernel
def sub_block_weights(x, absolute, weights):
    """x: f32[n] -> weights: f32[n], how much an error counts: |x| for Q2_K, |x| + rms(x) for Q4_K and Q5_K."""
    total = np.float32(0)
    for value in x:
        total += value * value
    rms = np.float32(0) if absolute else np.sqrt(total / np.float32(len(x)))
    for i in range(len(x)):
        weights[i] = rms + abs(x[i])


@kernel
def fit_scale_min(x, most, top, start, step, tries, absolute, codes, scales, mins, halves):
    """x: f32[n_blocks, subs, size] -> codes u8, same shape; scales, mins u8[n_blocks, subs]; halves u16[n_blocks, 2].

    value = d * scale * code - dmin * min, where halves holds d and dmin as f16. Codes reach to `most`, scales and mins
    to `top`; start, step, tries and absolute are search_scale_min's. ggml: quantize_row_q2_K_ref, q4_K, q5_K.
    """
    n_blocks, subs, size = x.shape
    found, fits = np.empty((subs, size), np.float32), np.empty((2, subs), np.float32)
    weights, trial = np.empty(size, np.float32), np.empty(size, np.float32)
    for b in range(n_blocks):
        for j in range(subs):
            sub_block_weights(x[b, j], absolute, weights)
            fits[0, j], fits[1, j] = search_scale_min(
                x[b, j], weights, most, start, step, tries, absolute, found[j], trial, None
            )
        for side in range(2):
            largest = max(np.float32(0), fits[side].max())
            inverse = np.float32(top) / largest if largest > 0 else np.float32(0)
            halves[b, side] = f32_to_f16(largest / np.float32(top))
            stored = mins if side else scales
            for j in range(subs):
                stored[b, j] = min(np.uint8(nearest(inverse * fits[side, j])), np.uint8(top))
        for j in range(subs):
            scale = f16_to_f32(halves[b, 0]) * np.float32(scales[b, j])
            low = f16_to_f32(halves[b, 1]) * np.float32(mins[b, j])
            for i in range(size):
                if scale != 0:
                    codes[b, j, i] = clamp(nearest((x[b, j, i] + low) / scale), 0, most)
                else:
                    codes[b, j, i] = found[j, i]


@kernel
def fit_scale(x, most, top, offset, refine, codes, scales, halves):
    """x: f32[n_blocks, 16, 16] -> codes u8 of that shape, scales i8[n_blocks, 16], halves u16[n_blocks].

    value = d * (scale - offset) * (code - most), where halves holds d as f16. Scales lie between -top and top - 1
    before the offset. `refine` chooses the search. ggml: quantize_row_q3_K_ref, quantize_row_q6_K_ref.
    """
    n_blocks, subs, size = x.shape
    found, fits = np.empty((subs, size), np.float32), np.empty(subs, np.float32)
    for b in range(n_blocks):
        for j in range(subs):
            fits[j] = refine_scale(x[b, j], most, found[j]) if refine else search_scale(x[b, j], most, found[j])
        largest = signed_max(fits)
        if largest == 0 or (not refine and abs(largest) < GROUP_MAX_EPS):
            scales[b], halves[b] = 0, 0
            for j in range(subs):  # d is 0, so the codes do not count; ggml leaves them so
                for i in range(size):
                    codes[b, j, i] = np.int32(found[j, i]) + most if refine else 0
            continue
        inverse = -np.float32(top) / largest
        halves[b] = f32_to_f16(np.float32(1) / inverse)
        for j in range(subs):
            scale = clamp(nearest(inverse * fits[j]), -top, top - 1)
            scales[b, j] = scale + offset
            step = f16_to_f32(halves[b]) * np.float32(scale)
            for i in range(size):
                code = clamp(nearest(x[b, j, i] / step), -most, most - 1) if step != 0 else np.int32(found[j, i])
                codes[b, j, i] = code + most


def _with_mins(x: np.ndarray, blocks: np.ndarray, size: int, most: int, top: int, *search) -> tuple[np.ndarray, ...]:
    """Writes d and dmin; returns codes uint8[n_blocks, 256] and the sub-blocks' scales and mins, uint8[n_blocks, ·]."""
    n = len(x)
    codes, (scales, mins) = np.empty((n, 256 // size, size), np.uint8), np.empty((2, n, 256 // size), np.uint8)
    halves = np.empty((n, 2), np.uint16)
    fit_scale_min(x.reshape(codes.shape), most, top, *search, codes, scales, mins, halves)
    blocks["d"], blocks["dmin"] = halves.view(np.float16).T
    return codes.reshape(n, 256), scales, mins


def _symmetric(x: np.ndarray, blocks: np.ndarray, *how) -> tuple[np.ndarray, np.ndarray]:
    """Writes d; returns codes uint8[n_blocks, 256] and scales int8[n_blocks, 16]."""
    n = len(x)
    codes, scales, halves = np.empty((n, 16, 16), np.uint8), np.empty((n, 16), np.int8), np.empty(n, np.uint16)
    fit_scale(x.reshape(codes.shape), *how, codes, scales, halves)
    blocks["d"] = halves.view(np.float16)
    return codes.reshape(n, 256), scales


Q2_K_SEARCH = (np.float32(-0.5), np.float32(0.1), 15, True)  # start, step, tries, absolute
Q4_K_SEARCH = (np.float32(-1.0), np.float32(0.1), 20, False)
Q5_K_SEARCH = (np.float32(-0.5), np.float32(0.1), 15, False)


def _q2_k(x: np.ndarray, blocks: np.ndarray) -> None:
    codes, scales, mins = _with_mins(x, blocks, 16, 3, 15, *Q2_K_SEARCH)
    blocks["scales"] = scales | mins << 4
    pack_codes(FORMATS["Q2_K"].fields, codes, blocks)


def _q3_k(x: np.ndarray, blocks: np.ndarray) -> None:
    codes, scales = _symmetric(x, blocks, 4, 32, 32, True)
    scales = scales.view(np.uint8)
    blocks["scales"] = np.concatenate([pack(scales & 15, 8, 4), pack(scales >> 4, 4, 2)], axis=1)
    pack_codes(FORMATS["Q3_K"].fields, codes, blocks)


def _q4_k(x: np.ndarray, blocks: np.ndarray) -> None:
    codes, scales, mins = _with_mins(x, blocks, 32, 15, 63, *Q4_K_SEARCH)
    blocks["scales"] = pack_scales_mins(scales, mins)
    pack_codes(FORMATS["Q4_K"].fields, codes, blocks)


def _q5_k(x: np.ndarray, blocks: np.ndarray) -> None:
    codes, scales, mins = _with_mins(x, blocks, 32, 31, 63, *Q5_K_SEARCH)
    blocks["scales"] = pack_scales_mins(scales, mins)
    pack_codes(FORMATS["Q5_K"].fields, codes, blocks)


def _q6_k(x: np.ndarray, blocks: np.ndarray) -> None:
    codes, blocks["scales"] = _symmetric(x, blocks, 32, 128, 0, False)
    pack_codes(FORMATS["Q6_K"].fields, codes, blocks)


@kernel
def _q8_k_codes(x, d, codes):
    """x: f32[n_blocks, 256] -> d: f32[n_blocks], codes: i8[n_blocks, 256]; zeros where a block is zero."""
    for b in range(len(x)):
        top = signed_max(x[b])
        inverse = np.float32(-127) / top
        d[b] = np.float32(1) / inverse if top != 0 else np.float32(0)
        for i in range(256):
            codes[b, i] = min(np.int32(127), nearest(inverse * x[b, i])) if top != 0 else 0


def _q8_k_ggml(x: np.ndarray, blocks: np.ndarray) -> None:
    """quantize_row_q8_K_ref. The largest weight always becomes -127, so d is negative where that weight is positive."""
    d, codes = np.empty(len(x), np.float32), np.empty((len(x), 256), np.int8)
    _q8_k_codes(x, d, codes)
    blocks["d"], blocks["qs"] = d, codes
    blocks["bsums"] = codes.reshape(-1, 16, 16).sum(axis=2)


QUANTIZERS: dict[str, Callable[[np.ndarray, np.ndarray], None]] = {
    "Q2_K": _q2_k,
    "Q3_K": _q3_k,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
    "Q8_K_GGML": _q8_k_ggml,
}
