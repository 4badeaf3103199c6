"""The kernel that quantizes a row of activations, ahead of each MMVQ kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minfer_lib.gpu.ops import (
    bits_f32,
    block_index,
    divide,
    f32_bits,
    f32_to_f16,
    next_may_start,
    previous_done,
    round_even,
    store4,
    thread_index,
    warp_max,
    warp_sum,
)
from minfer_lib.gpu.unit import ActivationBlock

QUANTIZER_WARPS = 4
MAGNITUDE = np.uint32(0x7FFFFFFF)  # a float32 without its sign; as integers, magnitudes are in order, NaN last
INFINITY = np.float32(np.inf)


def quantizer(block: ActivationBlock) -> Callable:
    """Kernel: x, float32[32 n] -> out, uint8[n * block_bytes]: a warp a block, a lane a value.

    The bytes are those of mf.quantize_activations("Q8_0_PAD40", x), laid out as `block` says; bytes between the fields
    are left alone. NaN or infinity makes d NaN or infinite, and with it every row's result.
    """
    BYTES, SUM, CODES = block

    def quantize(x, out, n):
        next_may_start()
        previous_done()
        block = block_index() * QUANTIZER_WARPS + (thread_index() >> 5)
        lane = thread_index() & 31
        if block < n:
            value = x[32 * block + lane]
            amax = bits_f32(warp_max(f32_bits(value) & MAGNITUDE))
            inverse = divide(np.float32(127), amax)
            if not inverse < INFINITY:  # all zeros, or nearly: every code is zero
                inverse = np.float32(0)
            code = round_even(value * inverse)
            total = warp_sum(code)
            out[BYTES * block + CODES + lane] = np.uint8(code & 255)
            if lane == 0:
                store4(out, BYTES * block, f32_to_f16(divide(amax, np.float32(127))))
                store4(out, BYTES * block + SUM, total)

    return quantize
