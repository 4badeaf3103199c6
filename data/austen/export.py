"""build/austen.pt and build/tokenizer.json -> austen-f16.gguf; the runs' reports -> loss.json.

    python export.py

Matrices are float16, norms float32. train.py rotates the pairs (2i, 2i+1), as llama.cpp does for this architecture, and
names its modules as GGUF does, so every tensor is copied as it is.
"""

import json
from pathlib import Path

import gguf
import numpy as np
from model import Config, Llama, load

HERE = Path(__file__).parent
BUILD = HERE / "build"


def add_model(writer: gguf.GGUFWriter, config: Config) -> None:
    writer.add_context_length(config.context)
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.ffn)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.kv_heads)
    writer.add_layer_norm_rms_eps(config.eps)
    writer.add_rope_dimension_count(config.head_width)
    writer.add_rope_freq_base(config.rope_base)
    writer.add_vocab_size(config.vocab)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)


def add_tokenizer(writer: gguf.GGUFWriter, tokenizer: dict) -> None:
    """Byte-level BPE: tokens in GPT-2's byte alphabet, merges as "left right". Id 0 is the one control token."""
    tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL] + [gguf.TokenType.NORMAL] * (len(tokens) - 1))
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_add_bos_token(False)


def add_tensors(writer: gguf.GGUFWriter, model: Llama) -> None:
    for name, value in model.state_dict().items():
        if name == "output.weight" and model.config.tied:
            continue
        writer.add_tensor(name, value.numpy().astype(np.float16 if value.ndim == 2 else np.float32))


def write_losses() -> None:
    """loss.json: name -> report, of the model and of its teachers."""
    report = json.loads((BUILD / "austen.json").read_text())
    names = ["austen", *(Path(teacher).stem for teacher in report["options"]["teachers"])]
    losses = {name: json.loads((BUILD / f"{name}.json").read_text()) for name in names}
    (HERE / "loss.json").write_text(json.dumps(losses, indent=1) + "\n")


def main() -> None:
    model = load(BUILD / "austen.pt")
    writer = gguf.GGUFWriter(HERE / "austen-f16.gguf", "llama")
    writer.add_name("Austen")
    writer.add_size_label(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}M")
    writer.add_description("A small language model of Jane Austen's six novels, for teaching and for tests.")
    writer.add_license("cc0-1.0")
    writer.add_languages(["en"])
    writer.add_source_url("https://www.gutenberg.org/ebooks/author/68")
    add_model(writer, model.config)
    add_tokenizer(writer, json.loads((BUILD / "tokenizer.json").read_text()))
    add_tensors(writer, model)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    write_losses()


if __name__ == "__main__":
    main()
