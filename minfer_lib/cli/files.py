"""`minfer inspect`, `perplexity` and `quantize`: what a model file holds, how good it is, and a smaller one of it."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from tqdm.auto import tqdm

from minfer_lib import model_files
from minfer_lib.cli.arguments import MODEL_HELP, Command, load_named, model_path, positive
from minfer_lib.engine.perplexity import perplexity
from minfer_lib.errors import ArgumentError
from minfer_lib.formats.gguf import read_gguf
from minfer_lib.formats.table import FORMATS
from minfer_lib.native.cpus import cpu_threads
from minfer_lib.quantize.convert import quantize_gguf
from minfer_lib.quantize.preset import PRESETS


def _inspect_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", help=MODEL_HELP)


def _inspect(args: argparse.Namespace) -> None:
    gguf = read_gguf(model_path(args))
    print(f"{gguf.path}: GGUF version {gguf.version}, {gguf.bytes.size:,} bytes")
    print(f"\n{len(gguf.metadata)} metadata keys")
    for key, value in gguf.metadata.items():
        shown = f"[{len(value)} values] {value[:4]!r} …" if isinstance(value, list) else repr(value)
        print(f"  {_printable(key):44} {shown if len(shown) <= 100 else shown[:99] + '…'}")
    print(f"\n{len(gguf.tensors)} tensors\n  {'name':32} {'format':10} {'shape':>16} {'bytes':>12} {'at byte':>12}")
    for tensor in gguf.tensors.values():
        shape = " x ".join(map(str, tensor.shape))
        print(
            f"  {_printable(tensor.name):32} {tensor.format:10} {shape:>16} {tensor.data.size:12,} {tensor.offset:12,}"
        )
    used = {tensor.format for tensor in gguf.tensors.values()}
    print("\n" + "\n".join(f"  {name:10} {FORMATS[name].bits_per_weight:g} bits a weight" for name in sorted(used)))


def _printable(text: str) -> str:
    """`text` with control characters and broken bytes as escapes: a file must not steer the terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _perplexity_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a GGUF file or a model's name")
    parser.add_argument("text", type=Path, help="a UTF-8 text file")
    parser.add_argument("--context", type=positive, default=512, help="tokens a chunk (%(default)s)")
    parser.add_argument("--chunks", type=positive, help="read only so many chunks (all)")
    parser.add_argument("--threads", type=positive, help="how many threads compute (one a core)")


def _perplexity(args: argparse.Namespace) -> None:
    text = _read_text(args.text)
    model = load_named(args)
    result = perplexity(model, text, args.context, args.chunks)
    print(
        f"perplexity {result.value:.4f} ± {result.error:.4f} "
        f"({result.tokens} tokens judged in {result.chunks} chunks of {args.context})"
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{path} cannot be read as UTF-8 text: {error}.") from None


def _quantize_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", help="a GGUF file or a model's name; quantized already or not")
    parser.add_argument("output", type=Path, help="the file to write")
    parser.add_argument("--preset", required=True, help=", ".join(PRESETS))
    parser.add_argument("--threads", type=positive, help="how many threads compute (one a core)")


def _quantize(args: argparse.Namespace) -> None:
    source = model_files.resolve(args.input)
    with tqdm(desc=args.preset, unit=" weights", unit_scale=True, delay=1e-3) as bar:  # shown once all is checked

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)
            if not done:
                bar.refresh()  # the first chunk may have to wait for the compiler

        formats = quantize_gguf(source, args.output, args.preset, args.threads or cpu_threads(), progress)
    before, after = source.stat().st_size, args.output.stat().st_size
    print(f"{args.output}: {before / 1e6:.1f} MB -> {after / 1e6:.1f} MB")
    print(", ".join(f"{count} tensors {format_}" for format_, count in Counter(formats.values()).most_common()))


COMMANDS = (
    Command("inspect", "what a GGUF file holds", _inspect_options, _inspect),
    Command("perplexity", "how well a model predicts a text; lower is better", _perplexity_options, _perplexity),
    Command("quantize", "write a model in another preset, as llama-quantize does", _quantize_options, _quantize),
)
