"""Which activation format a weight format is multiplied with. Every entry to a dot or a matmul asks here.

32-value weight blocks take Q8_0 activations, K-quants take Q8_K; F32, F16 and BF16 take plain float32 (seed 1, §2.4).
ggml pairs Q4_1 and Q5_1 with Q8_1 instead.
"""

from __future__ import annotations

from minfer_lib.errors import ArgumentError, PairingError
from minfer_lib.formats.table import FORMATS, WEIGHT_FORMATS, Format


def weight_format(name: str) -> Format:
    """The row of a format that holds weights; ArgumentError for any other name."""
    if name not in WEIGHT_FORMATS:
        raise ArgumentError(f"{name!r} is not a weight format. Choose one of: {', '.join(WEIGHT_FORMATS)}.")
    return FORMATS[name]


def check_pairing(weight: str, activation: str | None) -> None:
    """PairingError unless `activation` (None: float32) is what weights of format `weight` are multiplied with."""
    wanted = weight_format(weight).activation
    if activation != wanted:
        raise PairingError(
            f"{weight} weights take {wanted or 'float32'} activations, not {activation or 'float32'}: "
            "the blocks would not line up, and the dot product would be a wrong number."
        )


def check_rows(weight: str, w_bytes: int, a_bytes: int) -> int:
    """Number of blocks in two rows of blocks that belong together, or an error.

    The bytes carry no tag, so the lengths decide: a row of the other activation format is a PairingError,
    any other mismatch an ArgumentError.
    """
    row = weight_format(weight)
    if w_bytes % row.block_bytes or not w_bytes:
        raise ArgumentError(f"a {weight} row is a whole number of {row.block_bytes}-byte blocks, not {w_bytes} bytes.")
    n_values = w_bytes // row.block_bytes * row.block_values
    paired = FORMATS[row.activation or "F32"]
    if a_bytes == paired.row_bytes(n_values):
        return n_values // row.block_values
    for other in ("Q8_0", "Q8_K", "F32", "Q8_1", "Q8_K_GGML", "Q8_0_PAD40"):
        if n_values % FORMATS[other].block_values == 0 and a_bytes == FORMATS[other].row_bytes(n_values):
            check_pairing(weight, None if other == "F32" else other)
    raise ArgumentError(
        f"the {weight} row holds {n_values} values, so its {paired.name} activation row has "
        f"{paired.row_bytes(n_values)} bytes, not {a_bytes}."
    )
