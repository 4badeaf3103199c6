"""`minfer …` from the outside: how a command ends, its errors and its usage; as a process, pipes and encodings."""

import io
import os
import subprocess
import sys

import pytest

import minfer_lib as mf
from minfer_lib import cli


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

    monkeypatch.setattr("minfer_lib.cli.arguments.load_model", interrupted)
    assert cli.main(["generate", "ab", "--model", model]) == 130


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
