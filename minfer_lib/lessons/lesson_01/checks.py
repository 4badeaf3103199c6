"""Lesson 1: what the bytes of a file and of a block mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from minfer_lib.formats.decode import dequantize
from minfer_lib.formats.gguf import Gguf, Tensor
from minfer_lib.formats.packing import unpack_scales_mins
from minfer_lib.formats.table import FORMATS
from minfer_lib.lessons.shared.check_runner import Case, run


def decode_q4_0(function: Callable) -> None:
    """function(block: uint8[18]) -> its 32 values."""
    blocks = [
        # d = 0x3c3c reads the same in both byte orders, so the first case is about the codes alone
        ("sixteen bytes 0x99, so that all codes are 9", "3c3c" + "99" * 16,
         "code 8 stands for zero: subtract 8 from a code, as an int. In uint8, 3 - 8 is 251."),
        ("the same codes, but with d = 0.5, the bytes 00 38", "0038" + "99" * 16,
         "the scale d is an f16, and its low byte comes first: block[:2].view('<f2')."),
        ("codes below 8: sixteen bytes 0x33", "003c" + "33" * 16,
         "a uint8 that went below zero: 3 - 8 is 251 there. Make the codes ints before you subtract."),
        ("sixteen different bytes", "003c" + "f0e1d2c3b4a5968778695a4b3c2d1e0f",
         "the order. Byte j holds element j in its low half and element j + 16 in its high half, not 2j and 2j + 1."),
        ("d = -0.25, and codes at both ends, 0 and 15", "00b4" + "0ff0001f" * 4,
         "d can be negative; multiply with it as it is. Codes run from -8 to 7, so one end is larger than the other."),
        ("d = 0", "0000" + "07" * 16, "a block of zeros: nothing may be divided by d."),
        ("a block with an odd scale", "6f2b" + "a74f1c08e3d25b96807fc13ae4460d95",
         "a number that was rounded on the way; the values are exact in float32, not in float16."),
    ]  # fmt: skip
    cases = []
    for what, digits, cause in blocks:
        block = np.frombuffer(bytes.fromhex(digits), np.uint8)
        cases.append(Case(what, (block,), dequantize("Q4_0", block), cause))
    run(function, cases)


def unpack_scales(function: Callable) -> None:
    """function(packed: uint8[12]) -> (8 scales, 8 mins)."""
    packings = [
        ("bytes 8 to 11 and all upper bits zero", "11223304 293a3b05 00000000",
         "bytes 0 to 3 hold scales 0 to 3, and bytes 4 to 7 hold mins 0 to 3, six bits each: byte & 63."),
        ("only bytes 8 to 11 set", "00000000 00000000 3a91e70c",
         "scale 4 + j has its lower four bits in the low half of byte 8 + j, and min 4 + j in the high half."),
        ("only the upper two bits of bytes 0 to 3 set", "4080c040 00000000 00000000",
         "the upper two bits of scale 4 + j are bits 6 and 7 of byte j, worth 16 and 32. Those of a min are not."),
        ("only the upper two bits of bytes 4 to 7 set", "00000000 80c04080 00000000",
         "the upper two bits of min 4 + j are bits 6 and 7 of byte 4 + j."),
        ("all bits in use", "9b5ee13f 47fa8c26 d2709e5b",
         "bits 6 and 7 do not belong to the first four scales and mins: mask them off."),
    ]  # fmt: skip
    cases = []
    for what, digits, cause in packings:
        packed = np.frombuffer(bytes.fromhex(digits), np.uint8)
        scales, mins = unpack_scales_mins(packed[None])
        cases.append(Case(what, (packed,), np.stack([scales[0], mins[0]]), cause))
    run(function, cases)


def tensor_bytes(function: Callable) -> None:
    """function(format: str, shape: tuple) -> bytes; ValueError where a row is not a whole number of blocks."""
    shapes = [
        ("F32", (577,), "a vector has one dimension, and an F32 block is one value of 4 bytes."),
        ("Q4_0", (1, 896), "a block has a scale too: 32 values are 18 bytes, not 16."),
        ("Q4_1", (896, 896), "each format has a block size of its own: FORMATS[format].block_bytes."),
        ("Q3_K", (3, 768), "K-quants have super-blocks of 256 values: FORMATS[format].block_values."),
        ("Q8_0", (5, 2, 96), "every dimension counts: multiply all of them."),
        ("Q5_K", (0, 256), "a tensor without rows has no bytes; the first dimension may be 0."),
    ]
    cases = []
    for name, shape, cause in shapes:
        size = FORMATS[name].row_bytes(int(np.prod(shape)))
        cases.append(Case(f"{name}, shape {shape}", (name, shape), size, cause))
    cause = (
        "it is each row, the last dimension, that must be a whole number of blocks. 512 rows of 128 values are "
        "256 super-blocks' worth of values, but no row is one."
    )
    cases.append(Case("Q6_K, shape (512, 128)", ("Q6_K", (512, 128)), ValueError, cause))
    run(function, cases)


def find_row(function: Callable) -> None:
    """function(gguf, token: str) -> (position of its embedding row in the file, length of the row), in bytes."""
    small = _vocabulary_only("Q8_0", 64, 4096)
    other = _vocabulary_only("Q4_K", 768, 1056)
    whole_text = "the token must be equal to the text, not contain it or begin with it: 'Parisian' and 'ĠParis' differ."
    cases = [
        Case("the first token of a Q8_0 embedding, 64 values a row", (small, "<|end|>"), _row(small, 0),
             "the position counts from the start of the file: tensor.offset. The length is in bytes, not values."),
        Case("the second token", (small, "Parisian"), _row(small, 1),
             "each row before this one takes as many bytes as this one."),
        Case("'Paris', which other tokens begin with or contain", (small, "Paris"), _row(small, 3), whole_text),
        Case("'ĠParis', the same with a space before it", (small, "ĠParis"), _row(small, 2), whole_text),
        Case("a Q4_K embedding, 768 values a row", (other, "Paris"), _row(other, 3),
             "a row of n values takes n / block_values · block_bytes; both numbers are the format's own."),
    ]  # fmt: skip
    run(function, cases)


def _vocabulary_only(format_: str, width: int, offset: int) -> Gguf:
    """A file of five tokens and their embedding, after `offset` bytes of other things."""
    tokens = ["<|end|>", "Parisian", "ĠParis", "Paris", "Par"]
    data = np.zeros(offset + FORMATS[format_].row_bytes(len(tokens) * width), np.uint8)
    tensor = Tensor("token_embd.weight", format_, (len(tokens), width), offset, data[offset:])
    return Gguf(Path("five-tokens.gguf"), 3, {"tokenizer.ggml.tokens": tokens}, {}, {tensor.name: tensor}, data)


def _row(gguf: Gguf, token_id: int) -> tuple[int, int]:
    tensor = gguf.tensors["token_embd.weight"]
    n_bytes = FORMATS[tensor.format].row_bytes(tensor.shape[-1])
    return tensor.offset + token_id * n_bytes, n_bytes
