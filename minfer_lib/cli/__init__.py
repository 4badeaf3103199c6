"""`minfer …`: what a terminal can ask of the library. Each room of this package holds a few commands."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence

from minfer_lib.cli import bench, files, generate, setup
from minfer_lib.errors import MinferError

ROOMS = (generate, files, bench, setup)  # in the order of the help


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status: 0, 1 for an error that the message explains, 130 for Ctrl-C."""
    args = _parser().parse_args(argv)
    _let_every_text_print()
    try:
        args.run(args)
        if sys.stdout:
            sys.stdout.flush()  # here, where a broken pipe is caught
    except MinferError as error:
        print(f"minfer: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nminfer: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of a pipe has left, as `| head` does
        sys.stdout = None
    except OSError as error:
        print(f"minfer: {error}", file=sys.stderr)
        return 1
    return 0


def _let_every_text_print() -> None:
    """A character that the terminal's encoding lacks is shown as an escape, not an error in the middle of a text."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="minfer", description="Run quantized language models.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (command for room in ROOMS for command in room.COMMANDS):
        sub = commands.add_parser(command.name, help=command.help, description=command.help)
        sub.set_defaults(run=command.run)
        command.add_options(sub)
    return parser
