"""How fast is it? `speed`: a model beside the ceiling of its memory; `kernels`: each dot; `peer`: beside llama.cpp."""

from minfer_lib.bench.speed import (
    CeilingProbe,
    DecodeSpeed,
    bytes_per_token,
    decode_speed,
    decode_tokens_per_second,
    prefill_tokens_per_second,
)

__all__ = [
    "CeilingProbe",
    "DecodeSpeed",
    "bytes_per_token",
    "decode_speed",
    "decode_tokens_per_second",
    "prefill_tokens_per_second",
]
