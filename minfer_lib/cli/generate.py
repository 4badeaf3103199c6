"""`minfer generate` and `minfer chat`: text from a model, token by token."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from minfer_lib.cli.arguments import Command, load_named, model_options, positive
from minfer_lib.engine.session import Sampler, Session
from minfer_lib.text import ChatTemplate, Greedy, Tokenizer
from minfer_lib.text import Sampler as SamplingChain

_TIMING = bool(os.environ.get("MINFER_TIMING", "").strip("0"))


def _generate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", help="the text to continue")
    model_options(parser)
    _sampling_options(parser, max_tokens=128)


def _chat_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--system", help="the system message; without one, the template's own")
    model_options(parser)
    _sampling_options(parser, max_tokens=512)


def _sampling_options(parser: argparse.ArgumentParser, max_tokens: int) -> None:
    parser.add_argument("--max-tokens", type=positive, default=max_tokens, help="stop after so many (%(default)s)")
    parser.add_argument("--greedy", action="store_true", help="always the likeliest token, no chance")
    parser.add_argument("--temperature", type=float, default=0.8, help="higher is wilder (%(default)s)")
    parser.add_argument("--top-k", type=int, default=40, help="choose among the k likeliest (%(default)s; 0: all)")
    parser.add_argument("--top-p", type=float, default=0.95, help="… that make up this probability (%(default)s)")
    parser.add_argument("--min-p", type=float, default=0.05, help="… with this share of the likeliest (%(default)s)")
    parser.add_argument("--repeat-penalty", type=float, default=1.0, help="against repetition (%(default)s: off)")
    parser.add_argument("--timing", action="store_true", default=_TIMING, help="where the time of a token went")
    parser.add_argument("--seed", type=int, default=42, help="same seed, same text (%(default)s)")


def _generate(args: argparse.Namespace) -> None:
    model, sampler = load_named(args), _sampler(args)
    tokens = _tokens(model.session(), model.tokenizer.encode(args.prompt), args, sampler)
    print(args.prompt, end="", flush=True)
    _stream(tokens, model.tokenizer)


def _chat(args: argparse.Namespace) -> None:
    model, sampler = load_named(args), _sampler(args)
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


def _tokens(session: Session, ids: list[int], args: argparse.Namespace, sampler: Sampler) -> Iterator[int]:
    """What the model says after `ids`."""
    tokens = session.generate(ids, args.max_tokens, sampler, overflow="slide")
    return _timed(session, tokens) if args.timing else tokens


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


COMMANDS = (
    Command("generate", "continue a text", _generate_options, _generate),
    Command("chat", "talk with a model through its own chat template", _chat_options, _chat),
)
