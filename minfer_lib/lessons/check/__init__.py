"""The exercises' checks: `check.NAME(your_function)` raises CheckFailedError with a message that teaches."""

from minfer_lib.lessons.check.lesson_01 import decode_q4_0, find_row, tensor_bytes, unpack_scales
from minfer_lib.lessons.check.lesson_02 import error_bound, q4_0_scale, quantize_q8_0, round_trip
from minfer_lib.lessons.check.lesson_03 import block_sum, dot_q4_0_q8_0, find_fault, matmul_q4_0
from minfer_lib.lessons.check.lesson_04 import byte_dot, dot_q8_0, dot_without_signs, hsum, pack_fours
from minfer_lib.lessons.check.lesson_05 import crossed, dot_q4_k, group_sums, min_term
from minfer_lib.lessons.check.lesson_06 import chunk_bounds, largest_chunk, last_counter, take_chunks
from minfer_lib.lessons.check.lesson_07 import dp4a, find_culprit, launched, owner, warp_sum
from minfer_lib.lessons.check.lesson_08 import append_row, choose_token, rope_pairs, saved_share, sure_prompt
from minfer_lib.lessons.check.runner import CheckFailedError

__all__ = [
    "CheckFailedError",
    "append_row",
    "block_sum",
    "byte_dot",
    "choose_token",
    "chunk_bounds",
    "crossed",
    "decode_q4_0",
    "dot_q4_0_q8_0",
    "dot_q4_k",
    "dot_q8_0",
    "dot_without_signs",
    "dp4a",
    "error_bound",
    "find_culprit",
    "find_fault",
    "find_row",
    "group_sums",
    "hsum",
    "largest_chunk",
    "last_counter",
    "launched",
    "matmul_q4_0",
    "min_term",
    "owner",
    "pack_fours",
    "q4_0_scale",
    "quantize_q8_0",
    "rope_pairs",
    "round_trip",
    "saved_share",
    "sure_prompt",
    "take_chunks",
    "tensor_bytes",
    "unpack_scales",
    "warp_sum",
]
