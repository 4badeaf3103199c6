"""`minfer …`: what a terminal can ask of the library. Each command is a function of its parsed arguments."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from tqdm.auto import tqdm

from minfer_lib import model_files
from minfer_lib.bench import tables
from minfer_lib.engine.perplexity import perplexity
from minfer_lib.engine.session import Model, Sampler, Session, load_model
from minfer_lib.engine.warmup import warmup
from minfer_lib.errors import ArgumentError, MinferError
from minfer_lib.formats.gguf import read_gguf
from minfer_lib.formats.table import FORMATS
from minfer_lib.lessons import notebook_copies
from minfer_lib.native.cpus import cpu_threads
from minfer_lib.quantize.convert import quantize_gguf
from minfer_lib.quantize.preset import PRESETS
from minfer_lib.text import ChatTemplate, Greedy, Tokenizer
from minfer_lib.text import Sampler as SamplingChain

_TIMING = bool(os.environ.get("MINFER_TIMING", "").strip("0"))
_MODEL_HELP = (
    f"a GGUF file, or a name: {', '.join((*model_files.MODELS, model_files.BUNDLED))} (default: {model_files.DEFAULT})"
)


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

    def command(run, help_: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(run.__name__.strip("_"), help=help_, description=help_)
        sub.set_defaults(run=run)
        return sub

    generate = command(_generate, "continue a text")
    generate.add_argument("prompt", help="the text to continue")
    _model_options(generate)
    _sampling_options(generate, max_tokens=128)

    chat = command(_chat, "talk with a model through its own chat template")
    chat.add_argument("--system", help="the system message; without one, the template's own")
    _model_options(chat)
    _sampling_options(chat, max_tokens=512)

    inspect = command(_inspect, "what a GGUF file holds")
    inspect.add_argument("model", nargs="?", help=_MODEL_HELP)

    perplexity = command(_perplexity, "how well a model predicts a text; lower is better")
    perplexity.add_argument("model", help="a GGUF file or a model's name")
    perplexity.add_argument("text", type=Path, help="a UTF-8 text file")
    perplexity.add_argument("--context", type=_positive, default=512, help="tokens a chunk (%(default)s)")
    perplexity.add_argument("--chunks", type=_positive, help="read only so many chunks (all)")
    perplexity.add_argument("--threads", type=_positive, help="how many threads compute (one a core)")

    quantize = command(_quantize, "write a model in another preset, as llama-quantize does")
    quantize.add_argument("input", help="a GGUF file or a model's name; quantized already or not")
    quantize.add_argument("output", type=Path, help="the file to write")
    quantize.add_argument("--preset", required=True, help=", ".join(PRESETS))
    quantize.add_argument("--threads", type=_positive, help="how many threads compute (one a core)")

    bench = command(_bench, "tokens/s, and the roof that this machine's memory sets")
    _model_options(bench)
    bench.add_argument("--tokens", type=_positive, default=16, help="tokens a round (%(default)s)")
    what = bench.add_mutually_exclusive_group()
    what.add_argument("--kernels", action="store_true", help="the dot products alone, from cache and from memory")
    what.add_argument("--peer", nargs="*", metavar="MODEL", help="beside llama.cpp, on these models (the default one)")
    bench.add_argument("--rounds", type=_positive, help="with --peer: rounds a measurement (7)")
    bench.add_argument("--table", type=Path, metavar="FILE", help="with --peer: the goals and what was reached (.md)")
    bench.add_argument("--plot", type=Path, metavar="FILE", help="with --peer: the ratios as a picture (.svg, .png)")
    what.add_argument("--gpu", action="store_true", help="the kernels on this machine's GPU, beside reading alone")
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to FILE too")

    fetch = command(_fetch, "download a model")
    fetch.add_argument("model", nargs="?", default=model_files.DEFAULT, help="a model's name, or hf:OWNER/REPO/FILE")

    warm = command(_warmup, "compile what a model needs, so that nothing is left to compile later")
    _model_options(warm)

    start = command(_start, "make work copies of the notebooks")
    start.add_argument("--lab", action="store_true", help="and open them in JupyterLab")

    restore = command(_restore, "a fresh work copy of one notebook; yours is kept beside it")
    restore.add_argument("notebook", help="its name, as 08_full_model_decode")
    return parser


def _model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", help=_MODEL_HELP)
    parser.add_argument("--threads", type=_positive, help="how many threads compute (one a core)")
    parser.add_argument("--context", type=_positive, help="how many tokens fit (the model's own, at most 4096)")


def _sampling_options(parser: argparse.ArgumentParser, max_tokens: int) -> None:
    parser.add_argument("--max-tokens", type=_positive, default=max_tokens, help="stop after so many (%(default)s)")
    parser.add_argument("--greedy", action="store_true", help="always the likeliest token, no chance")
    parser.add_argument("--temperature", type=float, default=0.8, help="higher is wilder (%(default)s)")
    parser.add_argument("--top-k", type=int, default=40, help="choose among the k likeliest (%(default)s; 0: all)")
    parser.add_argument("--top-p", type=float, default=0.95, help="… that make up this probability (%(default)s)")
    parser.add_argument("--min-p", type=float, default=0.05, help="… with this share of the likeliest (%(default)s)")
    parser.add_argument("--repeat-penalty", type=float, default=1.0, help="against repetition (%(default)s: off)")
    parser.add_argument("--timing", action="store_true", default=_TIMING, help="where the time of a token went")
    parser.add_argument("--seed", type=int, default=42, help="same seed, same text (%(default)s)")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= 1")
    return int(text)


def _model_path(args: argparse.Namespace) -> Path:
    """The file that the arguments name; without a name the default, or what there is instead, with a word on stderr."""
    if args.model:
        return model_files.resolve(args.model)
    choice = model_files.choose()
    if choice.path != model_files.models_dir() / choice.path.name:
        print(f"minfer: using {choice.why}", file=sys.stderr)
    return choice.path


def _load(args: argparse.Namespace) -> Model:
    """The model that the arguments name, compiled."""
    return _warm(_model_path(args), args.threads, args.context)


def _warm(path: Path, threads: int | None, context: int | None) -> Model:
    model = load_model(path, threads=threads, context=context)
    warmup(model)
    return model


def _sampler(args: argparse.Namespace) -> Sampler:
    if args.greedy:
        return Greedy()
    return SamplingChain(
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        min_p=args.min_p,
        repeat_penalty=args.repeat_penalty,
        seed=args.seed,
    )


def _stream(tokens: Iterable[int], tokenizer: Tokenizer) -> str:
    """Print tokens as they come, and their number and speed on stderr at the end; the whole text."""
    stream, text, count = tokenizer.stream(), "", 0
    start = time.perf_counter()
    try:
        for token in tokens:
            count += 1
            piece = stream.feed(token)
            text += piece
            print(piece, end="", flush=True)
        rest = stream.finish()
        print(rest, flush=True)
    finally:
        seconds = time.perf_counter() - start
        if count:
            print(f"[{count} tokens, {count / seconds:.1f} tokens/s]", file=sys.stderr)
    return text + rest


def _timed(session: Session, tokens: Iterable[int]) -> Iterator[int]:
    """The same tokens of a session; at the end, on stderr, where the time went: until the first, and from then on.

    Wall time is what passes here, so that the rest holds what is done with the tokens too: decoding and printing.
    """
    phases = [("prompt", time.perf_counter(), session.timing)]
    try:
        for token in tokens:
            if len(phases) == 1:
                phases.append(("text", time.perf_counter(), session.timing))
            yield token
    finally:
        phases.append(("end", time.perf_counter(), session.timing))
        for (name, start, before), (_, end, after) in pairwise(phases):
            timing = replace(after - before, wall=end - start)
            if timing.tokens:
                print(f"[{name}: {timing.tokens} tokens, a token took]\n{timing.report()}", file=sys.stderr)


def _tokens(session: Session, ids: list[int], args: argparse.Namespace, sampler: Sampler) -> Iterator[int]:
    """What the model says after `ids`."""
    tokens = session.generate(ids, args.max_tokens, sampler, overflow="slide")
    return _timed(session, tokens) if args.timing else tokens


def _generate(args: argparse.Namespace) -> None:
    model, sampler = _load(args), _sampler(args)
    tokens = _tokens(model.session(), model.tokenizer.encode(args.prompt), args, sampler)
    print(args.prompt, end="", flush=True)
    _stream(tokens, model.tokenizer)


def _chat(args: argparse.Namespace) -> None:
    model, sampler = _load(args), _sampler(args)
    template = ChatTemplate(model.gguf.metadata, model.tokenizer)
    messages = [{"role": "system", "content": args.system}] if args.system else []
    session = model.session()
    print("Type a message; an empty one or Ctrl-D ends the chat.", file=sys.stderr)
    while message := _ask("> "):
        messages.append({"role": "user", "content": message})
        tokens = _tokens(session, session.keep_common(template.encode(messages)), args, sampler)
        messages.append({"role": "assistant", "content": _stream(tokens, model.tokenizer)})


def _ask(prompt: str) -> str:
    try:
        return input(prompt).strip()
    except EOFError:
        return ""


def _inspect(args: argparse.Namespace) -> None:
    gguf = read_gguf(_model_path(args))
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


def _perplexity(args: argparse.Namespace) -> None:
    text = _read_text(args.text)
    model = _load(args)
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


def _printable(text: str) -> str:
    """`text` with control characters and broken bytes as escapes: a file must not steer the terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _bench(args: argparse.Namespace) -> None:
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
        paths = [model_files.resolve(name) for name in args.peer] or [_model_path(args)]
        numbers = tables.peer_table(paths, counts, args.rounds or 7, args.plot, args.table)
    else:
        path = _model_path(args)
        numbers = tables.decode_table(lambda threads: _warm(path, threads, args.context), counts, args.tokens)
    if args.json:
        args.json.write_text(json.dumps(numbers, indent=1) + "\n")


def _fetch(args: argparse.Namespace) -> None:
    print(model_files.fetch(args.model))


def _warmup(args: argparse.Namespace) -> None:
    start = time.perf_counter()
    _load(args)
    print(f"ready in {time.perf_counter() - start:.1f} s")


def _start(args: argparse.Namespace) -> None:
    if args.lab:
        notebook_copies.lab()
    for copy in notebook_copies.start():
        print(copy)


def _restore(args: argparse.Namespace) -> None:
    print(notebook_copies.restore(args.notebook))
