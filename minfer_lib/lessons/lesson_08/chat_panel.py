"""A conversation: what is said so far, a box for the next message, and the answer as it comes."""

from __future__ import annotations

import html
from collections.abc import Iterator

import ipywidgets as widgets

from minfer_lib.engine.session import Model, Sampler
from minfer_lib.lessons.shared.generation_panel import GenerationPanel
from minfer_lib.text import ChatTemplate


class ChatPanel(GenerationPanel):
    """Talk with `model` through its own chat template. One session holds the conversation: only what is new is fed.

    `.messages` is the conversation so far, `.fed` how many tokens the last message made the model read.
    Raises UnsupportedError for a model without a chat template.
    """

    def __init__(self, model: Model, message: str, sampler: Sampler | None = None, max_tokens: int = 200) -> None:
        self._template = ChatTemplate(model.gguf.metadata, model.tokenizer)
        self._session, self.messages, self._asked, self.fed = model.session(), [], [], 0
        super().__init__(model, message, sampler, max_tokens)
        self._run.description, self._run.icon, self._run.tooltip = "Send", "comment", "Send the message"
        self._new = widgets.Button(description="New chat", icon="eraser", tooltip="Forget the conversation")
        self._new.on_click(lambda button: self.clear())
        self._prompt.layout.height = "48px"
        row = self.children[1]
        row.children = (*row.children[:2], self._new, self._speed)
        self.children = (self._output, self._prompt, row)  # what was said stands above the box
        self._new.add_class("minfer-new-chat")
        self.add_class("minfer-chat")

    def clear(self) -> None:
        """Forget the conversation, unless an answer is under way."""
        if self._halt.disabled:
            self.messages, self._output.value = [], ""
            self._session.reset()

    def _tokens(self, prompt: str) -> Iterator[int]:
        self._asked = [*self.messages, {"role": "user", "content": prompt}]  # said once it is answered
        ids = self._session.keep_common(self._template.encode(self._asked))
        self.fed = len(ids)
        self._prompt.value = ""
        return self._session.generate(ids, self.max_tokens, self.sampler, overflow="slide", stop=self._stop)

    def _draw(self, prompt: str, generated: str, count: int, state: str = "") -> None:
        super()._draw(prompt, generated, count, state)
        said = [*self._asked, {"role": "assistant", "content": generated}]
        self._output.value = '<div style="white-space:pre-wrap;line-height:1.5">' + "".join(
            f"<div><b>{message['role']}:</b> {html.escape(message['content'])}</div>" for message in said
        ) + "</div>"  # fmt: skip
        if state:
            self.messages = said
