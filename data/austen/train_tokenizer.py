"""build/chapters.json -> build/tokenizer.json: byte-level BPE on the training chapters.

    python train_tokenizer.py [VOCABULARY_SIZE]

The pre-tokenizer is llama.cpp's "smollm": every digit alone, then GPT-2's pattern. Ids: 0 is <|endoftext|>, then the
256 byte symbols, then one token a merge. All bytes are tokens, so every text can be encoded and nothing is unknown.
"""

import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

BUILD = Path(__file__).parent / "build"
END = "<|endoftext|>"


def main(size: int) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=[END], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    split = json.loads((BUILD / "chapters.json").read_text())
    tokenizer.train_from_iterator(split["train"], trainer)
    tokenizer.save(str(BUILD / "tokenizer.json"))
    for name, texts in split.items():
        tokens = sum(len(tokenizer.encode(text).ids) for text in texts)
        print(f"{name}: {tokens} tokens, {sum(len(text.encode()) for text in texts) / tokens:.3f} bytes a token")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4096)
