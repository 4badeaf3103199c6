"""Small random models and llama.cpp's logits for them: models/NAME.gguf and NAME.json, for the tests.

    pip install llama-cpp-python gguf
    python make_models.py [NAME …]      all of SPECS, or some

The models are those of tests/helpers/tiny_models.py, without a vocabulary. The JSON holds the token ids of a `prompt`,
those `then` fed one by one, and `logits` after the prompt and after each of them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gguf
import numpy as np
from make_kernels import quantize_chunk

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "helpers"))
from tiny_models import Spec, write_model  # noqa: E402

SMALL = {"ffn_width": 160, "n_vocab": 128, "context": 512, "vocabulary": False}
YARN = {"type": "yarn", "factor": 4.0, "original_context_length": 600}


def _scaling(**values: object) -> dict[str, object]:
    return {f"rope.scaling.{key}": value for key, value in values.items()}


SPECS = {
    "llama_q4_0": Spec(**SMALL, width=96, n_heads=2, n_kv_heads=2, format="Q4_0", formats={"ffn_down": "Q4_1"}),
    "qwen3_iq4_nl": Spec(**SMALL, architecture="qwen3", head_dim=32, rope_base=1e6, format="IQ4_NL"),
    "llama_rope_freqs": Spec(**SMALL, n_kv_heads=1, rope_freqs=True, formats={"attn_k": "F16"}),
    "llama_linear": Spec(**SMALL, fused=True, qkv_bias=True, format="F16", metadata={"rope.scale_linear": 4.0}),
    "qwen2_yarn": Spec(
        **SMALL, architecture="qwen2", qkv_bias=True, rope_base=1e6, format="F16", metadata=_scaling(**YARN)
    ),
    "qwen3_yarn": Spec(
        **SMALL, architecture="qwen3", head_dim=32, rope_base=1e6, format="F16",
        metadata=_scaling(**YARN, attn_factor=1.2),
    ),
    "qwen3_bf16_tied": Spec(
        **SMALL, architecture="qwen3", n_heads=2, n_kv_heads=1, head_dim=80, tied=True, rope_base=1e6, format="BF16",
        formats={"ffn_up": "F16"},
    ),
}  # fmt: skip


def quantized(values: np.ndarray, kind: gguf.GGMLQuantizationType) -> np.ndarray:
    """values: f32[n_out, n_in] -> uint8[n_out, row_bytes], by ggml where the `gguf` package cannot."""
    try:
        return gguf.quants.quantize(values, kind)
    except NotImplementedError:
        return quantize_chunk(kind, values)


def logits(path: Path, prompt: list[int], then: list[int]) -> list[list[float]]:
    """After the prompt, then after each further token: by llama.cpp without flash attention, cache in f16."""
    import llama_cpp

    model = llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = 512
    params.n_threads = params.n_threads_batch = 2
    params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
    context = llama_cpp.llama_init_from_model(model, params)
    n_vocab, rows = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model)), []
    for ids in (prompt, *([token] for token in then)):
        tokens = (llama_cpp.llama_token * len(ids))(*ids)
        if llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(tokens, len(ids))):
            raise SystemExit(f"llama.cpp cannot run {path}")
        last = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, -1), (n_vocab,))
        rows.append([round(float(value), 5) for value in last])
    llama_cpp.llama_free(context)
    llama_cpp.llama_model_free(model)
    return rows


def main(names: list[str]) -> None:
    folder = HERE / "models"
    for name in names or SPECS:
        path = write_model(folder / f"{name}.gguf", SPECS[name], quantize=quantized)
        rng = np.random.default_rng(len(name))
        prompt, then = (rng.integers(0, SPECS[name].n_vocab, n).tolist() for n in (150, 8))
        case = {"prompt": prompt, "then": then, "logits": logits(path, prompt, then)}
        (folder / f"{name}.json").write_text(json.dumps(case) + "\n")
        print(f"{name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
