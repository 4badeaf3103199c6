"""How fast is it? `speed`: a model beside its memory; `dot_kernels`; `gpu_kernels`; `peer`: beside llama.cpp."""

from minfer_lib.bench.speed import CeilingProbe, bytes_per_token, decode_speed

__all__ = ["CeilingProbe", "bytes_per_token", "decode_speed"]
