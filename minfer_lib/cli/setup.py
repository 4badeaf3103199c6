"""`minfer fetch`, `warmup`, `start` and `restore`: what is done once before there is work to do.

The course's package is imported by those that need it: with it come matplotlib and ipywidgets.
"""

from __future__ import annotations

import argparse
import time

from minfer_lib import model_files
from minfer_lib.cli.arguments import Command, load_named, model_options


def _fetch_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", default=model_files.DEFAULT, help="a model's name, or hf:OWNER/REPO/FILE")


def _fetch(args: argparse.Namespace) -> None:
    print(model_files.fetch(args.model))


def _warmup(args: argparse.Namespace) -> None:
    start = time.perf_counter()
    load_named(args)
    print(f"ready in {time.perf_counter() - start:.1f} s")


def _start_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lab", action="store_true", help="and open them in JupyterLab")


def _start(args: argparse.Namespace) -> None:
    from minfer_lib.lessons import notebook_copies

    if args.lab:
        notebook_copies.lab()
    for copy in notebook_copies.start():
        print(copy)


def _restore_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("notebook", help="its name, as 08_full_model_decode")


def _restore(args: argparse.Namespace) -> None:
    from minfer_lib.lessons import notebook_copies

    print(notebook_copies.restore(args.notebook))


COMMANDS = (
    Command("fetch", "download a model", _fetch_options, _fetch),
    Command("warmup", "compile what a model needs, so that nothing is left to compile later", model_options, _warmup),
    Command("start", "make work copies of the notebooks", _start_options, _start),
    Command("restore", "a fresh work copy of one notebook; yours is kept beside it", _restore_options, _restore),
)
