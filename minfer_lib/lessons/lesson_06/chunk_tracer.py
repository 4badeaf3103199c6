"""The chunk tracer: a real matrix product, and which thread computed which rows of it, played back."""

from __future__ import annotations

import time
from collections.abc import Callable

import ipywidgets as widgets
import numpy as np

from minfer_lib.lessons.lesson_06.chunk_trace import trace_picture
from minfer_lib.lessons.shared.page_box import PageBox
from minfer_lib.lessons.shared.wording import counted
from minfer_lib.matmul.chunks import POLICIES
from minfer_lib.matmul.trace import Trace, trace_matmul

THREADS = (1, 2, 4, 8, 14)
SLOW = {"no thread slowed": 1.0, "thread 0: 2 times as slow": 2.0, "thread 0: 4 times as slow": 4.0}
STEPS = 100  # of the slider
ROUNDS, RUNS = 12, 3


def shortest(run: Callable[[], Trace]) -> Trace:
    """Of ROUNDS * RUNS traces, made by calling `run`, the shortest: what other programs did to it is least.

    Before a round the workers may fall asleep. When they are woken, the system looks for free cores for them; while
    they run it is slow to move two that share one.
    """
    best = None
    for _ in range(ROUNDS):
        time.sleep(0.01)
        for _ in range(RUNS):
            trace = run()
            if best is None or trace.nanoseconds < best.nanoseconds:
                best = trace
    return best


class ChunkTracer(PageBox):
    """Weights w of a format times one token x, run when a control changes, and shown as it went.

    `.trace` is the run that is shown; run() makes a new one, choose() and at() do what the controls do.
    """

    trace: Trace

    def __init__(self, name: str, w: np.ndarray, x: np.ndarray) -> None:
        self._product = (name, w, x)
        self._quiet = False
        wide = widgets.Layout(width="300px")
        self._threads = widgets.ToggleButtons(options=THREADS, value=2, style={"button_width": "48px"})
        self._threads.tooltips = [counted(n, "thread") for n in THREADS]
        self._policy = widgets.Dropdown(
            options=[(told, policy) for policy, told in POLICIES.items()],
            value="ggml",
            description="policy",
            layout=wide,
        )
        self._slow = widgets.Dropdown(options=list(SLOW.items()), value=1.0, description="slow", layout=wide)
        self._again = widgets.Button(description="Run again", icon="refresh", tooltip="Run the product anew")
        self._play = widgets.Play(max=STEPS, value=STEPS, interval=80, show_repeat=False)
        self._time = widgets.IntSlider(
            max=STEPS, value=STEPS, description="time", readout=False, layout=widgets.Layout(width="320px")
        )
        self._said, self._picture = widgets.Label(), widgets.HTML()
        self._picture.layout = widgets.Layout(max_width="100%", overflow="auto")
        for widget, name_ in (
            (self, "tracer"), (self._threads, "threads"), (self._policy, "policy"), (self._slow, "slow"),
            (self._again, "again"), (self._play, "play"), (self._time, "time"), (self._said, "said"),
            (self._picture, "chunks"),
        ):  # fmt: skip
            widget.add_class(f"minfer-{name_}")
        self._link = widgets.jslink((self._play, "value"), (self._time, "value"))
        self._play.observe(self._from_the_start, "playing")
        self._time.observe(lambda change: self._draw(), "value")
        self._again.on_click(lambda button: self.run())
        for control in (self._threads, self._policy, self._slow):
            control.observe(lambda change: self.run(), "value")
        flow = widgets.Layout(flex_flow="row wrap", align_items="center")
        lines = ([widgets.Label("threads"), self._threads], [self._policy, self._slow, self._again],
                 [self._play, self._time, self._said])  # fmt: skip
        super().__init__([*(widgets.Box(line, layout=flow) for line in lines), self._picture])
        self.run()

    def run(self) -> None:
        """A new trace under what the controls say; the shortest of some."""
        if self._quiet:
            return
        slow = {0: self._slow.value} if self._slow.value > 1 else None
        self.trace = shortest(lambda: trace_matmul(*self._product, self._threads.value, self._policy.value, slow))
        self._draw()

    def choose(self, threads: int | None = None, policy: str | None = None, slow: float | None = None) -> Trace:
        """Set the controls that are given, run once."""
        self._quiet = True
        for control, value in ((self._threads, threads), (self._policy, policy), (self._slow, slow)):
            if value is not None:
                control.value = value
        self._quiet = False
        self.run()
        return self.trace

    def at(self, step: int) -> None:
        """Show the product as it stood at step 0 … STEPS of its time."""
        self._time.value = step

    def _from_the_start(self, change: dict) -> None:
        if change["new"] and self._play.value >= STEPS:
            self._play.value = 0

    def _draw(self) -> None:
        end = self.trace.nanoseconds
        now = end * self._time.value / STEPS
        done = int((self.trace.chunks["end"] <= now).sum())
        self._said.value = (
            f"{now / 1000:,.0f} of {end / 1000:,.0f} µs · {done} of {self.trace.plan.chunks} chunks · "
            f"counter ends at {self.trace.counter}"
        )
        drawing = trace_picture(self.trace, now)
        self._picture.value, self._alt = drawing.svg, drawing.alt

    def __repr__(self) -> str:
        return self._alt

    def _page(self) -> str:
        return f"<p>{self._said.value}</p>{self._picture.value}"
