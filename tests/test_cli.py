"""`minfer …` from the outside: what it prints, where, and how it ends."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_models import CONTROLS, MERGES, Spec, random_weights, write_model

import minfer_lib as mf
from minfer_lib import cli, model_files
from minfer_lib.bench import speed
from minfer_lib.engine.warmup import warmup
from minfer_lib.lessons import notebook_copies
from minfer_lib.matmul.tiles import tiles_for

SPEED = re.compile(r"\[(\d+) tokens, \d+\.\d tokens/s\]")


@pytest.fixture
def model(tiny):
    return str(tiny(format="Q8_0"))


@pytest.fixture
def run(capsys):
    """run(*arguments) -> (exit status, stdout, stderr)"""

    def run(*arguments):
        capsys.readouterr()
        status = cli.main(list(arguments))
        return status, *capsys.readouterr()

    return run


# generate


def test_generate_prints_prompt_and_text_and_the_speed_elsewhere(run, model):
    status, out, err = run("generate", "the ", "--model", model, "--max-tokens", "7", "--greedy")
    engine = mf.load_model(model)
    ids = list(engine.generate(engine.tokenizer.encode("the "), max_tokens=7, overflow="slide"))
    assert status == 0 and out == "the " + engine.tokenizer.decode(ids) + "\n"
    assert SPEED.search(err).group(1) == str(len(ids)) and "tokens/s" not in out


def test_generate_samples_with_seed_42(run, model):
    def text(*more):
        return run("generate", "hello", "--model", model, "--max-tokens", "12", *more)[1]

    assert (
        text()
        == text("--seed", "42")
        == text("--temperature", "0.8", "--top-k", "40", "--top-p", "0.95", "--min-p", "0.05")
    )
    assert len({text("--seed", str(seed), "--temperature", "2") for seed in range(4)}) == 4
    assert text("--temperature", "0") == text("--greedy") != text("--seed", "1", "--temperature", "3", "--min-p", "0")
    assert text("--greedy", "--threads", "3") == text("--greedy")


def test_generate_slides_past_the_end_of_the_context(run, model):
    status, out, err = run(
        "generate", "the theor", "--model", model, "--context", "8", "--max-tokens", "30", "--greedy"
    )
    assert status == 0 and SPEED.search(err)


def test_timing_says_where_the_time_of_a_token_went(run, model):
    status, out, err = run("generate", "the ", "--model", model, "--max-tokens", "5", "--greedy", "--timing")
    assert status == 0 and out == run("generate", "the ", "--model", model, "--max-tokens", "5", "--greedy")[1]
    n_prompt = len(mf.load_model(model).tokenizer.encode("the "))
    heads = re.findall(r"\[(\w+): (\d+) tokens, a token took\]", err)
    assert heads == [("prompt", str(n_prompt)), ("text", "4")], "the fifth token is not fed"
    for table in err.split("a token took]")[1:]:
        shares = {name: float(share) for name, share in re.findall(r"^  (\w+) .* ([\d.]+)%$", table, re.M)}
        assert list(shares) == ["matmul", "attention", "sampling", "rest"]
        assert abs(sum(shares.values()) - 100) < 0.3, "the parts are the whole"


def test_minfer_timing_switches_it_on_and_nothing_else_does(model):
    for value, shown in (("1", True), ("0", False), ("", False)):
        command = [sys.executable, "-m", "minfer_lib", "generate", "the ", "--model", model, "--max-tokens", "2"]
        ended = subprocess.run(command, env=os.environ | {"MINFER_TIMING": value}, capture_output=True, text=True)
        assert ended.returncode == 0 and ("attention" in ended.stderr) == shown


def test_generate_reads_special_tokens_in_the_prompt(run, model, monkeypatch):
    fed = []
    monkeypatch.setattr(mf.Session, "generate", lambda self, ids, *_, **__: fed.append(ids) or iter(()))
    assert run("generate", "<|im_start|>hi", "--model", model)[0] == 0
    assert fed == [mf.load_model(model).tokenizer.encode("<|im_start|>hi")] and fed[0][0] == 1


def test_a_sentencepiece_model_reads_bos_and_goes_on_after_a_space(run, tiny, monkeypatch):
    path, fed = str(tiny(sentencepiece=True)), []
    tokenizer = mf.load_model(path).tokenizer
    said = tokenizer.encode("the 🎉", bos=False)  # four bytes, a token each

    monkeypatch.setattr(mf.Session, "generate", lambda self, ids, *_, **__: fed.append(ids) or iter(said))
    status, out, _ = run("generate", "the", "--model", path)
    assert status == 0 and out == "the the 🎉\n"
    assert fed == [[1, tokenizer.tokens.index("▁the")]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["generate", "", "--model", "MODEL"], "the text or list of ids is empty"),
        (["generate", "x", "--model", "MODEL", "--context", "65"], "from 1 to 64, not 65"),
        (["generate", "x", "--model", "MODEL", "--top-p", "2"], "top_p is 2.0"),
        (["generate", "x", "--model", "MODEL", "--temperature", "nan"], "temperature is nan"),
        (["generate", "x", "--model", "MODEL", "--seed", "-1"], "seed is -1"),
        (["generate", "x", "--model", "nowhere.gguf"], "nowhere.gguf"),
        (["generate", "x", "--model", "n" * 5000], "too long"),
        (["inspect", "nowhere.gguf"], "nowhere.gguf"),
        (["chat", "--model", "NO VOCABULARY"], "no vocabulary"),
        (["generate", "x", "--model", "NO VOCABULARY"], "no vocabulary"),
        (["generate", "x", "--model", "OTHER"], "'gemma3' is not built"),
        (["restore", "no such notebook"], "otebook"),
    ],
)
def test_an_error_is_one_message_on_stderr_and_status_1(run, tiny, model, arguments, says):
    places = {"MODEL": model, "NO VOCABULARY": str(tiny(vocabulary=False)), "OTHER": str(tiny(architecture="gemma3"))}
    status, out, err = run(*[places.get(a, a) for a in arguments])
    assert status == 1 and out == ""
    message = err.rpartition("minfer: ")
    assert says in message[2] and "Traceback" not in err and err.count("minfer: ") == 1


def test_a_file_that_is_no_model(run, tmp_path):
    (tmp_path / "x.gguf").write_bytes(b"PK\3\4" + bytes(100))
    status, _, err = run("inspect", str(tmp_path / "x.gguf"))
    assert status == 1 and "no GGUF file" in err


@pytest.mark.parametrize(
    "arguments",
    [[], ["fly"], ["generate"], ["generate", "x", "--threads", "0"], ["generate", "x", "--max-tokens", "ten"]],
)
def test_wrong_usage_is_status_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2 and "usage: minfer" in capsys.readouterr().err


def test_numbers_that_are_not_counts_are_explained(capsys):
    for text in ("0", "-3", "two", "1.5", ""):
        with pytest.raises(SystemExit):
            cli.main(["generate", "x", f"--threads={text}"])
        assert "is not a whole number >= 1" in capsys.readouterr().err


def test_ctrl_c_ends_with_130_and_what_was_generated_stays(capsys, model, monkeypatch):
    def interrupted(self, ids, *_, **__):
        yield 10
        raise KeyboardInterrupt

    monkeypatch.setattr(mf.Session, "generate", interrupted)
    assert cli.main(["generate", "ab", "--model", model]) == 130
    out, err = capsys.readouterr()
    assert out == "ab" + mf.load_model(model).tokenizer.decode([10])
    assert "[1 tokens" in err and err.endswith("minfer: stopped\n")


def test_ctrl_c_while_loading(capsys, monkeypatch, model):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "load_model", interrupted)
    assert cli.main(["generate", "ab", "--model", model]) == 130


# chat


def type_lines(monkeypatch, *lines):
    lines = iter(lines)

    def ask(prompt=""):
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", ask)


def test_chat_feeds_the_template_and_only_what_is_new(run, model, monkeypatch):
    fed = []
    original = mf.Session.generate

    def generate(self, ids, *arguments, **more):
        fed.append((list(self.ids), list(ids)))
        return original(self, ids, *arguments, **more)

    monkeypatch.setattr(mf.Session, "generate", generate)
    type_lines(monkeypatch, "hi", "  and  ")
    status, out, err = run("chat", "--model", model, "--system", "be kind", "--max-tokens", "3", "--greedy")
    assert status == 0 and len(SPEED.findall(err)) == 2
    tokenizer = mf.load_model(model).tokenizer
    first = tokenizer.encode(
        "<|im_start|>system\nbe kind<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert fed[0] == ([], first)
    kept, new = fed[1]
    assert kept[: len(first)] == first, "the first turn is not read again"
    answer = out.splitlines()[0]
    whole = tokenizer.decode(first) + answer
    assert tokenizer.decode(kept + new).startswith(whole[:-2])
    assert tokenizer.decode(kept + new).endswith("<|im_start|>user\nand<|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.parametrize("lines", [[], [""], ["   "]])
def test_chat_ends_at_an_empty_message_or_ctrl_d(run, model, monkeypatch, lines):
    type_lines(monkeypatch, *lines)
    status, out, err = run("chat", "--model", model)
    assert status == 0 and "Type a message" in err and out == ""


def test_chat_goes_on_past_the_context(run, model, monkeypatch):
    type_lines(monkeypatch, *["the the"] * 5)
    status, _, err = run("chat", "--model", model, "--max-tokens", "20", "--greedy")
    assert status == 0 and len(SPEED.findall(err)) >= 1


def test_chat_without_a_template(run, tmp_path, monkeypatch):
    import tiny_models

    monkeypatch.setattr(tiny_models, "CHATML", " ")
    path = write_model(tmp_path / "m.gguf", Spec())
    status, _, err = run("chat", "--model", str(path))
    assert status == 1 and "no chat template" in err


# inspect


def test_inspect_shows_metadata_tensors_and_bits(run, tiny):
    path = tiny(format="Q4_0", tied=True)
    status, out, _ = run("inspect", str(path))
    assert status == 0
    assert f"GGUF version 3, {path.stat().st_size:,} bytes" in out and "22 metadata keys" not in out
    file = mf.read_gguf(path)
    assert f"{len(file.metadata)} metadata keys" in out and f"{len(file.tensors)} tensors" in out
    for name in (*file.metadata, *file.tensors):
        assert name in out
    assert re.search(r"blk.0.ffn_up.weight +Q4_0 +96 x 64 +3,456 ", out)
    assert "[265 values] ['<|endoftext|>', '<|im_start|>'" in out
    assert "Q4_0       4.5 bits a weight" in out and "F32        32 bits a weight" in out


def test_inspect_of_a_vocabulary_alone(run, tmp_path):
    path = tmp_path / "v.gguf"
    path.write_bytes(b"GGUF\3\0\0\0" + bytes(16))
    status, out, _ = run("inspect", str(path))
    assert status == 0 and "0 tensors" in out


def test_inspect_lets_no_file_steer_the_terminal(run, model, tmp_path):
    raw = Path(model).read_bytes()
    for old, new in ((b"block_count", b"b\x1b[2J\xffcount"), (b"blk.1.ffn_up.weight", b"blk.1.\x1b[31m\x07\xffweight")):
        assert len(old) == len(new) and old in raw
        raw = raw.replace(old, new)
    (tmp_path / "x.gguf").write_bytes(raw)
    status, out, _ = run("inspect", str(tmp_path / "x.gguf"))
    assert status == 0 and "\x1b" not in out and "\x07" not in out
    assert r"llama.b\x1b[2J\udcffcount" in out and r"blk.1.\x1b[31m\x07\udcffweight" in out


# bench, warmup, start, fetch


def test_bench_prints_a_row_for_each_number_of_threads(run, model, monkeypatch, tmp_path):
    probe = speed.CeilingProbe(1 << 20)
    monkeypatch.setattr(speed, "CeilingProbe", lambda n_bytes: probe)
    monkeypatch.setattr(cli, "cpu_threads", lambda: 3)
    status, out, _ = run("bench", "--model", model, "--tokens", "2", "--json", str(tmp_path / "b.json"))
    assert status == 0 and [line.split()[0] for line in out.splitlines()[2:]] == ["1", "2", "3"]
    written = json.loads((tmp_path / "b.json").read_text())
    assert written["model"] == os.path.basename(model) and [row["threads"] for row in written["decode"]] == [1, 2, 3]
    assert all(row["tokens_per_second"] > 0 for row in written["decode"])
    status, out, _ = run("bench", "--model", model, "--tokens", "2", "--threads", "2")
    assert status == 0 and len(out.splitlines()) == 3


@pytest.mark.parametrize("option", [["--json"], ["--peer", "--table"], ["--peer", "--plot"]])
def test_bench_that_cannot_write_says_so_first(run, model, monkeypatch, tmp_path, option):
    monkeypatch.setattr(speed, "CeilingProbe", None)  # nothing is measured
    file = tmp_path / "no" / "b.svg"
    status, out, err = run("bench", "--model", model, "--tokens", "1", "--threads", "1", *option, str(file))
    assert status == 1 and out == "" and "b.svg" in err and "Traceback" not in err


@pytest.mark.parametrize("option", ["--rounds", "--table", "--plot"])
def test_what_only_the_comparison_takes(run, option):
    status, out, err = run("bench", option, "3")
    assert status == 1 and out == "" and "go with --peer" in err


@pytest.mark.parametrize("two", [["--kernels", "--gpu"], ["--gpu", "--peer"], ["--kernels", "--peer"]])
def test_bench_measures_one_thing(two, capsys):
    with pytest.raises(SystemExit):
        cli.main(["bench", *two])
    assert "not allowed with" in capsys.readouterr().err


def test_warmup(run, model):
    status, out, _ = run("warmup", "--model", model)
    assert status == 0 and re.fullmatch(r"ready in \d+\.\d s\n", out)


def test_the_bar_of_warmup_names_every_kernel(tiny, monkeypatch):
    names = []
    monkeypatch.setattr("minfer_lib.engine.warmup.tqdm.set_postfix_str", lambda bar, name: names.append(name))
    warmup(mf.load_model(tiny(format="Q4_1")))
    tiles = ["tiles of Q4_1"] if tiles_for("Q4_1") else []
    assert names == ["quantize to Q8_0", "rows of Q4_1", *tiles, "forward pass", "first token"]


def test_start_and_restore_print_what_they_did(run, monkeypatch):
    monkeypatch.setattr(notebook_copies, "start", lambda: ["a: copied", "b: kept"])
    monkeypatch.setattr(notebook_copies, "restore", lambda name: f"{name}: fresh copy")
    assert run("start")[:2] == (0, "a: copied\nb: kept\n")
    assert run("restore", "03")[:2] == (0, "03: fresh copy\n")


def test_start_lab(run, monkeypatch):
    called = []
    monkeypatch.setattr(notebook_copies, "lab", lambda: called.append("lab"))
    monkeypatch.setattr(notebook_copies, "start", lambda: [])
    assert run("start", "--lab")[0] == 0 and called == ["lab"]


def test_fetch_prints_the_file(run, monkeypatch):
    monkeypatch.setattr(model_files, "fetch", lambda name: f"/models/{name}")
    assert run("fetch")[1] == "/models/smollm2\n"
    assert run("fetch", "hf:a/b/c")[1] == "/models/hf:a/b/c\n"


# As a process: pipes and encodings


def process(*arguments, **more):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"} | more.pop("environment", {})
    return subprocess.Popen(
        [sys.executable, "-m", "minfer_lib", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        **more,
    )


@pytest.mark.parametrize(
    "command", [["inspect"], ["warmup", "--model"], ["generate", "the", "--greedy", "--max-tokens", "4", "--model"]]
)
def test_a_reader_that_leaves_early_is_no_error(model, command):
    minfer = process(*command, model)
    minfer.stdout.close()
    err = minfer.stderr.read().decode()
    assert minfer.wait(timeout=60) == 0
    assert "Error" not in err and "ignored" not in err
    minfer.stderr.close()


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict", "cp1252:strict"])
def test_a_text_that_the_terminal_cannot_show(model, encoding):
    """A prompt with a byte that is not UTF-8, and letters that old code pages lack."""
    prompt = "hé → ".encode() + b"\xff"
    if os.name == "nt":
        prompt = "hé → "
    minfer = process("generate", prompt, "--greedy", "--max-tokens", "4", "--model", model,
                     environment={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "1"})  # fmt: skip
    out, err = minfer.communicate(timeout=60)
    assert minfer.returncode == 0, err.decode()
    assert out.startswith(b"h")


def test_main_prints_into_whatever_stdout_is(model, monkeypatch):
    for stdout in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stdout", stdout)
        assert cli.main(["inspect", model]) == 0


def test_python_m_is_the_command(tmp_path):
    minfer = process("inspect", str(tmp_path / "nothing.gguf"))
    out, err = minfer.communicate(timeout=60)
    assert minfer.returncode == 1 and out == b"" and b"nothing.gguf" in err


def test_the_tiny_vocabulary_is_what_these_tests_think(model):
    """`the` is one token through two merges, so prompts here are not just bytes."""
    tokenizer = mf.load_model(model).tokenizer
    assert tokenizer.encode("the") == [len(CONTROLS) + 256 + MERGES.index("t he")]
    assert random_weights(Spec())["token_embd.weight"].shape[0] == len(tokenizer)
