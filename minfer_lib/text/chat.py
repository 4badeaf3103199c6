"""Chat: a conversation written as the one text that the model was trained on, by the Jinja template in its GGUF file.

A template is a program from a file of unknown origin, so it runs in jinja2's sandbox. It is tried once when it is
loaded: a template that cannot work is an error then, not a conversation that quietly loses its shape. Source: the
variables and functions are those of Hugging Face's chat templates; jinja2's manual, "Sandbox".
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

from minfer_lib.errors import ArgumentError, UnsupportedError
from minfer_lib.text.tokenizer import Tokenizer

_KEY = "tokenizer.chat_template"
_TRIAL = [{"role": "user", "content": "Hello"}]


class _RefusedError(Exception):
    """What a template raises on purpose."""


class _Sandbox(ImmutableSandboxedEnvironment):
    """jinja2's sandbox, but what a template may not touch is an error at once, not an empty string."""

    def unsafe_undefined(self, obj: Any, attribute: str):
        raise SecurityError(f"a template may not touch {attribute!r} of a {type(obj).__name__}")


class _GenerationBlock(Extension):
    """{% generation %} … {% endgeneration %} marks what training learns from; what is inside is rendered as it is."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> None:
    raise _RefusedError(message)


def _strftime_now(layout: str) -> str:
    return datetime.now().strftime(layout)


def _to_json(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
    """JSON as models were trained on it; jinja2's own filter would escape it for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def _environment() -> _Sandbox:
    environment = _Sandbox(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _GenerationBlock]
    )
    environment.filters["tojson"] = _to_json
    environment.globals.update(raise_exception=_raise_exception, strftime_now=_strftime_now)
    return environment


def _source(metadata: Mapping | str) -> str:
    source = metadata if isinstance(metadata, str) else metadata.get(_KEY)
    if not isinstance(source, str) or not source.strip():
        raise UnsupportedError(f"this model has no chat template ({_KEY}): use `generate`, which completes plain text")
    return source


def _check_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        raise ArgumentError("messages: a list of at least one {'role': …, 'content': …}")
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping) or not all(isinstance(message.get(k), str) for k in ("role", "content")):
            raise ArgumentError(f"messages[{place}] needs a 'role' and a 'content', both str; it is {message!r}")


class ChatTemplate:
    """The chat template of a GGUF file: `metadata` is the file's dict of keys, or the template's text itself.

    Raises UnsupportedError where there is no template, or where it does not compile, reaches for what a template may
    not touch, or cannot render a conversation of one message.
    """

    def __init__(self, metadata: Mapping | str, tokenizer: Tokenizer):
        self.source = _source(metadata)
        self._tokenizer = tokenizer
        self._tokens = {
            name: "" if token_id is None else tokenizer.tokens[token_id]
            for name, token_id in (("bos_token", tokenizer.bos), ("eos_token", tokenizer.eos))
        }
        # A template runs as Python, and may fail in as many ways: every exception is its own, not ours.
        try:
            self._template = _environment().from_string(self.source)
            trial = self._run(_TRIAL, add_generation_prompt=True)
        except Exception as error:
            raise UnsupportedError(f"the model's chat template fails: {_reason(error)}; use `generate`") from None
        if _TRIAL[0]["content"] not in trial:
            raise UnsupportedError("the model's chat template leaves out what the user says; use `generate`")

    def _run(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool) -> str:
        return self._template.render(
            messages=messages, add_generation_prompt=add_generation_prompt, tools=None, documents=None, **self._tokens
        )

    def render(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> str:
        """The conversation as text; with `add_generation_prompt` it ends where the assistant begins to speak.

        messages: dicts with the strings "role" ("system", "user", "assistant") and "content".
        Raises ArgumentError for messages that are not that or that the template refuses, UnsupportedError for a
        template that reaches for what it may not touch.
        """
        _check_messages(messages)
        try:
            return self._run(messages, add_generation_prompt)
        except SecurityError as error:
            raise UnsupportedError(f"the model's chat template is not safe to run: {_reason(error)}") from None
        except Exception as error:
            raise ArgumentError(f"the chat template refuses these messages: {_reason(error)}") from None

    def encode(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> list[int]:
        """Token ids of the rendered conversation, special tokens read as such. Raises as `render` does."""
        ids = self._tokenizer.encode(self.render(messages, add_generation_prompt), special=True)
        # The template may write BOS and the file ask for it as well; the model was trained on one.
        doubled = self._tokenizer.add_bos and ids[1:2] == [self._tokenizer.bos]
        return ids[1:] if doubled else ids


def _reason(error: Exception) -> str:
    kind = "" if isinstance(error, _RefusedError) else f"{type(error).__name__}: "
    return f"{kind}{error}" or "it raised an exception without a message"
