"""The exercises' checks: `check.NAME(your_function)` raises CheckFailedError with a message that teaches."""

# ruff: noqa: F401  the notebooks use what is imported here, as check.NAME

from minfer_lib.lessons.lesson_01.checks import decode_q4_0, find_row, tensor_bytes, unpack_scales
from minfer_lib.lessons.lesson_02.checks import error_bound, q4_0_scale, quantize_q8_0, round_trip
from minfer_lib.lessons.lesson_03.checks import block_sum, dot_q4_0_q8_0, find_fault, matmul_q4_0
from minfer_lib.lessons.lesson_04.checks import byte_dot, dot_q8_0, dot_without_signs, hsum, pack_fours
from minfer_lib.lessons.lesson_05.checks import crossed, dot_q4_k, group_sums, min_term
from minfer_lib.lessons.lesson_06.checks import chunk_bounds, largest_chunk, last_counter, take_chunks
from minfer_lib.lessons.lesson_07.checks import dp4a, find_culprit, launched, owner, warp_sum
from minfer_lib.lessons.lesson_08.checks import append_row, choose_token, rope_pairs, saved_share, sure_prompt
from minfer_lib.lessons.shared.check_runner import CheckFailedError
