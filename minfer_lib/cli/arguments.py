"""What commands share: how each is described, and the options that name a model, its threads and its context."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from minfer_lib import model_files
from minfer_lib.engine.session import Model, load_model
from minfer_lib.engine.warmup import warmup

MODEL_HELP = (
    f"a GGUF file, or a name: {', '.join((*model_files.MODELS, model_files.BUNDLED))} (default: {model_files.DEFAULT})"
)


class Command(NamedTuple):
    """One command of `minfer`. Its room lists it in COMMANDS, and that is all it takes."""

    name: str
    help: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]


def model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", help=MODEL_HELP)
    parser.add_argument("--threads", type=positive, help="how many threads compute (one a core)")
    parser.add_argument("--context", type=positive, help="how many tokens fit (the model's own, at most 4096)")


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= 1")
    return int(text)


def model_path(args: argparse.Namespace) -> Path:
    """The file that the arguments name; without a name the default, or what there is instead, with a word on stderr."""
    if args.model:
        return model_files.resolve(args.model)
    choice = model_files.choose()
    if choice.path != model_files.models_dir() / choice.path.name:
        print(f"minfer: using {choice.why}", file=sys.stderr)
    return choice.path


def load_named(args: argparse.Namespace) -> Model:
    """The model that the arguments name, compiled."""
    return warm_model(model_path(args), args.threads, args.context)


def warm_model(path: Path, threads: int | None, context: int | None) -> Model:
    """Load the model of a file and compile all that it needs."""
    model = load_model(path, threads=threads, context=context)
    warmup(model)
    return model
