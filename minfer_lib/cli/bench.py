"""`minfer bench`: how fast this machine runs a model, the kernels alone, or llama.cpp beside them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from minfer_lib import model_files
from minfer_lib.bench import tables
from minfer_lib.cli.arguments import Command, model_options, model_path, positive, warm_model
from minfer_lib.errors import ArgumentError
from minfer_lib.native.cpus import cpu_threads


def _options(parser: argparse.ArgumentParser) -> None:
    model_options(parser)
    parser.add_argument("--tokens", type=positive, default=16, help="tokens a round (%(default)s)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--kernels", action="store_true", help="the dot products alone, from cache and from memory")
    what.add_argument("--peer", nargs="*", metavar="MODEL", help="beside llama.cpp, on these models (the default one)")
    parser.add_argument("--rounds", type=positive, help="with --peer: rounds a measurement (7)")
    parser.add_argument("--table", type=Path, metavar="FILE", help="with --peer: the goals and what was reached (.md)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="with --peer: the ratios as a picture (.svg, .png)")
    what.add_argument("--gpu", action="store_true", help="the kernels on this machine's GPU, beside reading alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to FILE too")


def _run(args: argparse.Namespace) -> None:
    if args.peer is None and (args.rounds or args.table or args.plot):
        raise ArgumentError("--rounds, --table and --plot go with --peer.")
    for file in filter(None, (args.json, args.table, args.plot)):
        if not file.resolve().parent.is_dir():  # said before minutes of measuring, not after
            raise ArgumentError(f"{file} cannot be written: there is no folder {file.parent}.")
    counts = (args.threads,) if args.threads else range(1, cpu_threads() + 1)
    if args.kernels:
        numbers = tables.kernels_table(counts)
    elif args.gpu:
        numbers = tables.gpu_table()
    elif args.peer is not None:
        paths = [model_files.resolve(name) for name in args.peer] or [model_path(args)]
        numbers = tables.peer_table(paths, counts, args.rounds or 7, args.plot, args.table)
    else:
        path = model_path(args)
        numbers = tables.decode_table(lambda threads: warm_model(path, threads, args.context), counts, args.tokens)
    if args.json:
        args.json.write_text(json.dumps(numbers, indent=1) + "\n")


COMMANDS = (Command("bench", "tokens/s, and the roof that this machine's memory sets", _options, _run),)
