"""minfer: quantized language models in Python and numba, from the bytes of a GGUF file to text.

    import minfer_lib as mf
    model = mf.load_model("model.gguf")
    ids = model.tokenizer.encode("The capital of France is")
    print(model.tokenizer.decode(list(model.generate(ids))))

`dot`, `matmul` and `quantize` are functions here, and also the folders that they come from: write
`from minfer_lib.dot.registry import …` for what lies inside, not `import minfer_lib.dot.registry as …`.
"""

from minfer_lib.dot.api import dot
from minfer_lib.engine.session import Model, Session, load_model
from minfer_lib.errors import (
    ArgumentError,
    ContextFullError,
    GgufError,
    MinferError,
    ModelMissingError,
    PairingError,
    UnsupportedError,
)
from minfer_lib.formats.decode import dequantize
from minfer_lib.formats.gguf import Gguf, Tensor, read_gguf
from minfer_lib.formats.table import FORMATS, Format
from minfer_lib.matmul.api import matmul
from minfer_lib.quantize.activations import quantize_activations
from minfer_lib.quantize.api import quantize
from minfer_lib.simd.isa import isas
from minfer_lib.text import Greedy, Sampler, Tokenizer
from minfer_lib.version import __version__

__all__ = [
    "FORMATS", "ArgumentError", "ContextFullError", "Format", "Gguf", "GgufError", "Greedy", "MinferError", "Model",
    "ModelMissingError", "PairingError", "Sampler", "Session", "Tensor", "Tokenizer", "UnsupportedError", "__version__",
    "dequantize", "dot", "isas", "load_model", "matmul", "quantize", "quantize_activations", "read_gguf",
]  # fmt: skip
