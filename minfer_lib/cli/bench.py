"""`minfer bench`: how fast this machine runs a model, alone or under load, its kernels, or llama.cpp beside it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from minfer_lib import model_files
from minfer_lib.bench import tables
from minfer_lib.bench.load import load_table
from minfer_lib.cli.arguments import Command, model_options, model_path, positive, warm_model
from minfer_lib.errors import ArgumentError
from minfer_lib.native.cpus import cpu_threads, cpus

_HELP = (
    "tokens/s of decode at each number of threads, beside the roof that this machine's memory sets; "
    "with an option, another measurement instead"
)


def _options(parser: argparse.ArgumentParser) -> None:
    model_options(parser)
    parser.add_argument("--tokens", type=positive, default=16, help="tokens of decode a round (%(default)s)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--kernels", action="store_true", help="the dot products alone, from cache and from memory")
    what.add_argument("--gpu", action="store_true", help="the kernels on this machine's GPU, beside reading alone")
    what.add_argument("--peer", nargs="*", metavar="MODEL", help="beside llama.cpp, on these models (the default one)")
    parser.add_argument(
        "--load",
        action="store_true",
        help="decode, a prompt and the first token beside busy programs, and several decoders at once; "
        "with --peer: llama.cpp under the same load",
    )
    parser.add_argument("--rounds", type=positive, help="rounds a measurement, with --peer (7) or --load (5)")
    parser.add_argument("--table", type=Path, metavar="FILE", help="with --peer: the goals and what was reached (.md)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="with --peer: the ratios as a picture (.svg, .png)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to FILE too")


def _run(args: argparse.Namespace) -> None:
    _check(args)
    print(f"this machine: {cpus()}", flush=True)
    numbers = _measure(args)
    if args.json:
        args.json.write_text(json.dumps(numbers, indent=1) + "\n")


def _check(args: argparse.Namespace) -> None:
    """Raise ArgumentError for options that do not go together and files that cannot be written.

    That is said before minutes of measuring, not after them.
    """
    if args.load and (args.kernels or args.gpu):
        raise ArgumentError("--load measures a model, so it does not go with --kernels or --gpu.")
    if args.load and len(args.peer or ()) > 1:
        raise ArgumentError(f"--load measures one model, not {len(args.peer)}. Name one of them.")
    if args.rounds and args.peer is None and not args.load:
        raise ArgumentError("--rounds goes with --peer or --load.")
    if (args.table or args.plot) and (args.peer is None or args.load):
        raise ArgumentError("--table and --plot go with --peer, and not with --load.")
    for file in filter(None, (args.json, args.table, args.plot)):
        if not file.resolve().parent.is_dir():
            raise ArgumentError(f"{file} cannot be written: there is no folder {file.parent}.")


def _measure(args: argparse.Namespace) -> dict:
    """Print the table that the arguments ask for, and return its numbers."""
    counts = (args.threads,) if args.threads else range(1, cpu_threads() + 1)
    if args.kernels:
        return tables.kernels_table(counts)
    if args.gpu:
        return tables.gpu_table()
    paths = [model_files.resolve(name) for name in args.peer or ()] or [model_path(args)]
    if args.load:
        return load_table(paths[0], counts[-1], args.rounds or 5, peer=args.peer is not None)
    if args.peer is not None:
        return tables.peer_table(paths, counts, args.rounds or 7, args.plot, args.table)
    return tables.decode_table(lambda threads: warm_model(paths[0], threads, args.context), counts, args.tokens)


COMMANDS = (Command("bench", _HELP, _options, _run),)
