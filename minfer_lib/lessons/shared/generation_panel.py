"""A box to write a prompt in, a button, a stop button, and the text as it comes."""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Iterator

import ipywidgets as widgets

from minfer_lib.engine.session import Model, Sampler
from minfer_lib.errors import MinferError
from minfer_lib.lessons.shared.page_box import PageBox

_REDRAW = 0.05  # seconds between two drawings of the text: a browser need not see every token


class GenerationPanel(PageBox):
    """Continue a text with `model`. Generation runs on a thread of its own, so the notebook stays free and Stop acts.

    run(), stop() and wait() do what the buttons do; `.text` and `.speed` (tokens/s) hold the last result.
    """

    def __init__(self, model: Model, prompt: str, sampler: Sampler | None = None, max_tokens: int = 64) -> None:
        self.model, self.sampler, self.max_tokens = model, sampler, max_tokens
        self.text, self.speed = "", 0.0
        self._stop, self._thread = threading.Event(), None
        self._prompt = widgets.Textarea(prompt, layout=widgets.Layout(width="100%", height="64px"))
        self._run = widgets.Button(description="Generate", icon="play", tooltip="Continue the text")
        self._halt = widgets.Button(description="Stop", icon="stop", tooltip="Stop after this token", disabled=True)
        self._output, self._speed = widgets.HTML(), widgets.Label()
        for widget, name in (
            (self._prompt, "prompt"),
            (self._run, "run"),
            (self._halt, "stop"),
            (self._output, "text"),
            (self._speed, "speed"),
        ):
            widget.add_class(f"minfer-{name}")
        self._run.on_click(lambda button: self.run())
        self._halt.on_click(lambda button: self.stop())
        super().__init__([self._prompt, widgets.HBox([self._run, self._halt, self._speed]), self._output])
        self.add_class("minfer-generate")

    def _page(self) -> str:
        return self._output.value or html.escape(self._prompt.value)

    def run(self) -> None:
        """Start; nothing happens while a generation is under way."""
        if self._thread and self._thread.is_alive():
            return
        self._stop.clear()
        self._run.disabled, self._halt.disabled = True, False
        self._thread = threading.Thread(target=self._generate, args=(self._prompt.value,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the token that is being computed."""
        self._stop.set()

    def wait(self) -> str:
        """Wait for the end of the generation; the prompt and what was generated."""
        if self._thread:
            self._thread.join()
        return self.text

    def _generate(self, prompt: str) -> None:
        try:
            self._stream(prompt)
        except MinferError as error:
            self._speed.value = str(error)
        finally:
            self._run.disabled, self._halt.disabled = False, True

    def _stream(self, prompt: str) -> None:
        stream, generated, count, drawn = self.model.tokenizer.stream(), "", 0, 0.0
        self._speed.value = "reading the prompt …"
        tokens = self._tokens(prompt)
        begin = time.perf_counter()
        for token in tokens:
            generated += stream.feed(token)
            count += 1
            now = time.perf_counter()
            if count == 1:
                begin = now  # the first token's time is the prompt's; the rate counts from there
            elif now - drawn > _REDRAW:
                self.speed, drawn = (count - 1) / (now - begin), now
                self._draw(prompt, generated, count)
        if count > 1:
            self.speed = (count - 1) / (time.perf_counter() - begin)
        self._draw(prompt, generated + stream.finish(), count, ", stopped" if self._stop.is_set() else ", done")

    def _tokens(self, prompt: str) -> Iterator[int]:
        ids = self.model.tokenizer.encode(prompt)
        return self.model.generate(ids, self.max_tokens, self.sampler, overflow="slide", stop=self._stop)

    def _draw(self, prompt: str, generated: str, count: int, state: str = "") -> None:
        self.text = prompt + generated
        self._output.value = (
            '<div style="white-space:pre-wrap;line-height:1.5">'
            f"<b>{html.escape(prompt)}</b>{html.escape(generated)}</div>"
        )
        self._speed.value = f"{count} tokens, {self.speed:.1f} tokens/s{state}"
