"""A machine to put together: its cores, its memory, a policy, and how a matrix product goes on it."""

from __future__ import annotations

import ipywidgets as widgets

from minfer_lib.lessons.lesson_06.chunk_trace import trace_picture
from minfer_lib.lessons.shared.page_box import PageBox
from minfer_lib.matmul.chunks import POLICIES, plan
from minfer_lib.matmul.simulated_machine import Machine
from minfer_lib.matmul.trace import Trace


class AnyMachine(PageBox):
    """Rows of row_bytes times one token, simulated.

    speed: a fast core's, in GB/s of weights; claim: nanoseconds to take a chunk.

    `.trace` is the simulated run, `.machine` where it ran; choose() does what the controls do.
    """

    trace: Trace
    machine: Machine

    def __init__(self, rows: int, row_bytes: int, speed: float, claim: float = 50.0) -> None:
        self._rows, self._row_bytes, self._speed, self._claim = rows, row_bytes, speed, claim
        self._quiet = False
        box = widgets.Layout(width="330px")
        wide = {"description_width": "130px"}
        self._fast = widgets.IntSlider(10, 1, 16, description="fast cores", layout=box, style=wide)
        self._slow = widgets.IntSlider(4, 0, 16, description="slow cores", layout=box, style=wide)
        self._share = widgets.FloatSlider(0.35, min=0.1, max=1.0, step=0.05, description="a slow one's speed",
                                          layout=box, style=wide)  # fmt: skip
        self._bandwidth = widgets.IntSlider(273, 10, 500, description="memory, GB/s", layout=box, style=wide)
        self._policy = widgets.Dropdown(options=[(told, policy) for policy, told in POLICIES.items()], value="ggml",
                                        description="policy", layout=box, style=wide)  # fmt: skip
        self._said, self._picture = widgets.HTML(), widgets.HTML()
        self._picture.layout = widgets.Layout(max_width="100%", overflow="auto")
        self._controls = {
            "fast": self._fast, "slow": self._slow, "share": self._share, "bandwidth": self._bandwidth,
            "policy": self._policy,
        }  # fmt: skip
        for name, control in self._controls.items():
            control.add_class(f"minfer-machine-{name}")
            control.observe(lambda change: self._draw(), "value")
        for widget, name in ((self, "machine"), (self._said, "machine-said"), (self._picture, "machine-chunks")):
            widget.add_class(f"minfer-{name}")
        flow = widgets.Layout(flex_flow="row wrap")
        super().__init__([widgets.Box(list(self._controls.values()), layout=flow), self._said, self._picture])
        self._draw()

    def choose(self, **values: float | str) -> Trace:
        """Set fast, slow, share, bandwidth or policy; simulate once."""
        self._quiet = True
        for name, value in values.items():
            self._controls[name].value = value
        self._quiet = False
        self._draw()
        return self.trace

    def _draw(self) -> None:
        if self._quiet:
            return
        speeds = [self._speed] * self._fast.value + [self._speed * self._share.value] * self._slow.value
        self.machine = Machine(tuple(speeds), self._bandwidth.value, self._claim)
        self.trace = self.machine.run(plan(self._policy.value, self._rows, 1, len(speeds)), self._row_bytes)
        best = self.machine.shortest(self._rows * self._row_bytes)
        late = self.trace.nanoseconds / best - 1
        self._said.value = (
            f"<b>{self.trace.nanoseconds / 1000:,.0f} µs</b>, {late:.0%} more than perfect sharing would take "
            f"({best / 1000:,.0f} µs)"
        )
        drawing = trace_picture(self.trace)
        self._picture.value, self._alt = drawing.svg, drawing.alt

    def __repr__(self) -> str:
        return self._alt

    def _page(self) -> str:
        return f"<p>{self._said.value}</p>{self._picture.value}"
