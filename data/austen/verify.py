"""austen-f16.gguf in llama.cpp against the tokenizer and the model it was made from, and its perplexity on heldout.txt.

    pip install llama-cpp-python && python verify.py
"""

import math
from pathlib import Path

import llama_cpp
import numpy as np
import torch
from model import load
from tokenizers import Tokenizer

HERE = Path(__file__).parent
PROMPTS = ("It is a truth universally acknowledged, that", '"My dear Mr. Bennet,"', "The evening was")


def open_model(context: int) -> llama_cpp.Llama:
    path = str(HERE / "austen-f16.gguf")
    return llama_cpp.Llama(path, n_ctx=context, n_batch=context, logits_all=True, verbose=False)


def logits(llm: llama_cpp.Llama, ids: list[int]) -> np.ndarray:
    """[tokens, vocab] float32, in a fresh context."""
    llm.reset()
    llm.eval(ids)
    return np.array(llm.scores[:len(ids)])


def surprise(rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """[tokens]: nats, -log softmax(row)[target], in float64."""
    rows = rows.astype(np.float64) - rows.max(axis=1, keepdims=True)
    return np.log(np.exp(rows).sum(axis=1)) - rows[np.arange(len(rows)), targets]


def perplexity(ids: list[int], context: int, bos: int | None) -> tuple[float, int]:
    """llama.cpp's tools/perplexity: chunks of `context` tokens side by side, the later half of each counted.

    bos, if given, takes the place of each chunk's first token, as it does there when the vocabulary adds one.
    """
    llm, nats = open_model(context), []
    for start in range(0, len(ids) - context + 1, context):
        chunk = ids[start:start + context]
        rows = logits(llm, chunk if bos is None else [bos, *chunk[1:]])
        first = context // 2
        nats.append(surprise(rows[first:-1], np.array(chunk[first + 1:])))
    return math.exp(np.concatenate(nats).mean()), len(nats)


def compare(ids: list[int]) -> None:
    """llama.cpp's logits against PyTorch's in float32, over one context."""
    with torch.no_grad():
        ours = load(HERE / "build/austen.pt")(torch.tensor([ids]))[0].numpy()
    theirs, spread = logits(open_model(len(ids)), ids), ours.std()
    top = np.sort(ours, axis=1)
    clear = top[:, -1] - top[:, -2] > 0.1 * spread
    same = ours.argmax(axis=1) == theirs.argmax(axis=1)
    difference = np.abs(ours - theirs)
    print(f"logits of {len(ids)} tokens: standard deviation {spread:.3f}, rms difference "
          f"{(difference**2).mean() ** 0.5:.5f}, largest {difference.max():.5f}")
    print(f"same arg max at {same.sum()}, and at {same[clear].sum()} of the {clear.sum()} clear ones")


def write(llm: llama_cpp.Llama, prompt: str, temperature: float, tokens: int = 80) -> str:
    llm.reset()
    made = llm(prompt, max_tokens=tokens, temperature=temperature, top_k=0, top_p=1.0, min_p=0.0, repeat_penalty=1.0)
    return prompt + made["choices"][0]["text"]


def main() -> None:
    text, llm = (HERE / "heldout.txt").read_text(), open_model(1024)
    ids = Tokenizer.from_file(str(HERE / "build/tokenizer.json")).encode(text).ids
    assert ids == llm.tokenize(text.encode(), add_bos=False, special=False)
    assert llm.detokenize(ids) == text.encode()
    print(f"heldout.txt: {len(text.encode())} bytes, {len(ids)} tokens, the same in both")
    compare(ids[:1024])
    for context in (512, 256):
        for bos in (None, 0):
            value, chunks = perplexity(ids, context, bos)
            print(f"perplexity, n_ctx {context}, {chunks} chunks, BOS {bos}: {value:.4f}", flush=True)
    llm.set_seed(42)
    for temperature in (0.0, 0.8):
        for prompt in PROMPTS:
            print(f"--- temperature {temperature}\n{write(llm, prompt, temperature)}")


if __name__ == "__main__":
    main()
