"""The exercises' checks: `check.NAME(your_function)` raises CheckFailedError with a message that teaches."""

from minfer_lib.lessons.check.lesson_01 import decode_q4_0, find_row, tensor_bytes, unpack_scales
from minfer_lib.lessons.check.lesson_02 import error_bound, q4_0_scale, quantize_q8_0, round_trip
from minfer_lib.lessons.check.lesson_03 import block_sum, dot_q4_0_q8_0, find_fault, matmul_q4_0
from minfer_lib.lessons.check.runner import CheckFailedError

__all__ = [
    "CheckFailedError",
    "block_sum",
    "decode_q4_0",
    "dot_q4_0_q8_0",
    "error_bound",
    "find_fault",
    "find_row",
    "matmul_q4_0",
    "q4_0_scale",
    "quantize_q8_0",
    "round_trip",
    "tensor_bytes",
    "unpack_scales",
]
