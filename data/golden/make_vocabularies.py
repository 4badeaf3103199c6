"""What llama.cpp makes of texts with small vocabularies of our own: data/golden/vocabularies.json, for the tests.

    pip install llama-cpp-python gguf tokenizers
    python make_vocabularies.py

The vocabularies are trained on such texts, without any rule for words, so that their tokens reach across every place
where a rule may cut: wherever it does, the ids change. `spm_words` alone keeps spaces at the beginning of tokens, as
real SentencePiece files do.
"""

from __future__ import annotations

import ctypes
import json
import random
import tempfile
from pathlib import Path

import gguf
import llama_cpp
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

HERE = Path(__file__).parent
PRE = ("default", "gpt-2", "smollm", "starcoder", "refact", "command-r", "qwen2", "deepseek-r1-qwen")
PRE += ("llama-bpe", "llama3", "llama-v3")

# name -> type. Some overlap; <end_of_turn> and <PRE> are called normal, as some files do.
SPECIAL = {
    "<unk>": 2, "<s>": 3, "</s>": 3, "<|im_start|>": 3, "<|im_end|>": 3, "<|im_end|>!": 3, "<tool>": 4, "<tool> x": 4,
    "  ~": 4, "<end_of_turn>": 1, "<PRE>": 1, "<unused_1>": 5,
}  # fmt: skip

# What the rules for words are about comes often, so that tokens reach across it; the rest of the world now and then.
OFTEN = (
    *(
        " ",
        " ",
        "  ",
        "   ",
        "\n",
        "\n\n",
        "\r\n",
        "\t",
        "\u3000",
        "'s",
        "'LL",
        "'t",
        "'Re",
        "'",
        "1",
        "12",
        "1234",
        "½",
        "٣",
    ),
    *("!", "--", "+", "<", "~", "_", "。", "a", "the", " the", "hello", " World", "é", "И", "文"),
)
PARTS = (
    *(" ", "  ", "       ", "\n", "\n\n", "\r\n", "\t", " \n", "\n ", "\u00a0", "\u3000", "\u2028", "\v", "\u200b"),
    *("'s", "'S", "'t", "'Re", "'ve", "'m", "'LL", "'d", "'x", "\u2019s", "'", "it's", "don't", "I'M", "WE'LL"),
    *("0", "12", "123", "1234", "12345678", "٣٤", "१२३", "½", "²", "Ⅷ", "①", "𝟙𝟚", "3.14", "1,000", "一二三"),
    *("!", "?!", "...", "--", "—", "(", ")", "[]", "<", "$", "+", "==", "^", "~", "|", "#", "/*", "__", "…", "。"),
    *("🎉", "👩\u200d👩\u200d👧", "🇩🇪", "👍🏽", "❤️", "€", "©"),
    *("a", "the", " the", "hello", " World", "café", "naïve", "ß", "ŁÓDŹ", "привет", " Мир", "γειά", "שלום", "مرحبا"),
    *("नमस्ते", "தமிழ்", "ไทย", "中文", "日本語", "テキスト", "한국어", "𝒳𝓎", "𐍈", "e\u0301", "o\u0308\u0323", "ʰ", "ª"),
    *("aaaa", "snake_case", "x=1;", "def f(x):", "\x00", "\x04", "▁", "▁a", "[EMPTY_7]", "<0x41>"),
    *(*SPECIAL, "<|im_", "</s", "<tool>  x"),
)


def texts(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [
        "".join(rng.choice(rng.choice((OFTEN, OFTEN, PARTS))) for _ in range(rng.randrange(2, 16)))
        for _ in range(count)
    ]


def train(lines: list[str], size: int, split, alphabet: list[str]) -> tuple[list[str], list[str]]:
    """Tokens in the order in which they were made, and the rules that made them, "left right"."""
    tokenizer = Tokenizer(models.BPE())
    if split:
        tokenizer.pre_tokenizer = split
    tokenizer.train_from_iterator(
        lines, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False, max_token_length=12)
    )
    made = json.loads(tokenizer.to_str())["model"]
    return sorted(made["vocab"], key=made["vocab"].get), [" ".join(rule) for rule in made["merges"]]


def bpe(lines: list[str]) -> dict:
    """Byte 4 has no token, some rules make a symbol that is no token, and two tokens come from no rule.

    Such symbols are ASCII here: of others, llama.cpp looks up the bytes of the characters that stand for their bytes,
    finds none, and drops them; minfer keeps the text.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens, rules = train(lines, 1200, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), alphabet)
    missing = {rule.replace(" ", "") for rule in rules[39::20] if rule.isascii()} | {"\u0104"}
    tokens = [token for token in tokens if token not in missing | {*SPECIAL}]
    tokens += [word for word in ("Ġthewhole", "snake_case", "12345") if word not in tokens]
    return vocabulary("gpt2", tokens, [1] * len(tokens)) | {"merges": rules}


def spm(lines: list[str], words: bool) -> dict:
    """No token for rare characters, three tokens to a score, and two scores that break the order."""
    split = pre_tokenizers.Metaspace(prepend_scheme="never") if words else None
    written = lines if words else [line.replace(" ", "▁") for line in lines]
    tokens, _ = train(written, 900, split, [])
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    rare = {token for token in tokens if len(token) == 1 and ord(token) > 0x2E80}
    # llama.cpp reads a token up to its first NUL.
    tokens = [token for token in tokens if token not in rare | {*bytes_, *SPECIAL} and "\0" not in token]
    scores = [-float(place // 3) for place in range(len(tokens))]
    scores[-5:] = [1.5, 0.0, -1e9, 0.25, -2.0]
    made = vocabulary("llama", bytes_ + tokens, [6] * 256 + [1] * len(tokens))
    return made | {"scores": [0.0] * 256 + scores + [-1000.0] * len(SPECIAL)}


def vocabulary(model: str, tokens: list[str], types: list[int]) -> dict:
    first, names = len(tokens), list(SPECIAL)
    ids = {f"{name}_token_id": first + names.index(text) for name, text in (("bos", "<s>"), ("eos", "</s>"))}
    return {"model": model, "tokens": tokens + names, "token_type": types + [*SPECIAL.values()]} | ids


class LlamaCpp:
    """llama.cpp's own tokenizer, on a file with nothing but a vocabulary."""

    def __init__(self, keys: dict):
        with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
            writer = gguf.GGUFWriter(file.name, "llama")
            for key, value in keys.items():
                add = {bool: writer.add_bool, int: writer.add_uint32, str: writer.add_string, list: writer.add_array}
                add[type(value)](f"tokenizer.ggml.{key}", value)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.close()
            params = llama_cpp.llama_model_default_params()
            params.vocab_only = True
            self.model = llama_cpp.llama_model_load_from_file(file.name.encode(), params)
        self.vocab = llama_cpp.llama_model_get_vocab(self.model)

    def encode(self, text: str, add_special: bool, parse_special: bool) -> list[int]:
        raw = text.encode()
        ids = (llama_cpp.llama_token * (len(raw) + 3))()
        return ids[: llama_cpp.llama_tokenize(self.vocab, raw, len(raw), ids, len(ids), add_special, parse_special)]

    def decode(self, ids: list[int]) -> str:
        buffer = ctypes.create_string_buffer(32 * len(ids) + 1)
        array = (llama_cpp.llama_token * len(ids))(*ids)
        used = llama_cpp.llama_detokenize(self.vocab, array, len(ids), buffer, len(buffer), False, True)
        return buffer.raw[:used].decode("utf-8", "replace")

    def ends(self, count: int) -> list[int]:
        return [token for token in range(count) if llama_cpp.llama_vocab_is_eog(self.vocab, token)]


def run(vocabularies: dict, lines: list[str], name: str, add: bool, special: bool, **keys) -> dict:
    all_keys = vocabularies[name] | keys
    engine = LlamaCpp(all_keys)
    ids = [engine.encode(line, add, special) for line in lines]
    made = {"vocabulary": name, "keys": keys, "add_special": add, "parse_special": special, "ids": ids}
    if name != "bpe":  # for most byte-level vocabularies, llama.cpp's decoder takes spaces out before punctuation
        # Of the ids as such, and of their second half, which begins anywhere.
        made |= {"decoded": [[engine.decode(line) for line in (part, part[len(part) // 2 :])] for part in ids]}
    return made | {"ends": engine.ends(len(all_keys["tokens"]))}


def main() -> None:
    contractions = [f"{ending}the" for ending in ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'D", "'LL")]
    lines = ["", " ", *PARTS[-20:], *contractions, *texts(80, seed=1)]
    pool = lines + 20 * contractions + texts(1500, seed=2)
    vocabularies = {"bpe": bpe(pool), "spm_words": spm(pool, True), "spm_across": spm(pool, False)}
    runs = [run(vocabularies, lines, "bpe", False, False, pre=pre) for pre in PRE]
    for add, special in ((True, True), (True, False), (False, True)):
        runs.append(run(vocabularies, lines, "bpe", add, special, pre="llama-bpe"))
    runs.append(run(vocabularies, lines, "bpe", True, True, pre="qwen2", add_bos_token=True, add_eos_token=True))
    for name in ("spm_words", "spm_across"):
        runs.append(run(vocabularies, lines, name, True, True))
        runs.append(run(vocabularies, lines, name, True, False, add_eos_token=True))
        runs.append(run(vocabularies, lines, name, True, True, add_space_prefix=False, add_bos_token=False))
    text = json.dumps({"texts": lines, "vocabularies": vocabularies, "runs": runs}, separators=(",", ":"))
    (HERE / "vocabularies.json").write_text(text.replace('},{"vocabulary"', '},\n{"vocabulary"') + "\n", "utf-8")


if __name__ == "__main__":
    main()
