"""The geometry explorer: a matrix, a launch, and who computes what; threads launched, idle and in flight."""

from __future__ import annotations

from dataclasses import replace

import ipywidgets as widgets

from minfer_lib.gpu.geometry import GPUS, Geometry, Gpu, Launch
from minfer_lib.lessons.lesson_07.gpu_geometry import flight_picture, geometry_picture, thread_told
from minfer_lib.lessons.shared.model_outlines import outline
from minfer_lib.lessons.shared.page_box import PageBox

UNITS = {"a unit of 32": 32, "a whole super-block": 256}
LAYOUTS = {  # name -> warps, rows a block, values that a lane takes at a time, bytes that it waits for
    "the old kernel": (2, 8, 256, 4), "seed 3": (8, 1, 32, 4), "a warp a row": (4, 4, 32, 16),
}  # fmt: skip


def shapes() -> dict[str, tuple[int, int]]:
    """ "7B ffn_down" -> (rows, columns): of matrices that models have, those whose rows are whole super-blocks."""
    found = {}
    for model in ("Qwen2.5-7B", "Qwen2.5-0.5B", "Qwen3-8B"):
        tensors = outline(model).tensors
        names = ("blk.0.ffn_down", "blk.0.ffn_gate", "blk.0.attn_q", "blk.0.attn_k", "output")
        for name in (n for n in names if f"{n}.weight" in tensors):
            told = f"{model.rpartition('-')[2]} {name.removeprefix('blk.0.')}"
            found[told] = tensors[f"{name}.weight"].shape
    return {name: shape for name, shape in found.items() if shape[1] % 256 == 0}


class GeometryExplorer(PageBox):
    """`.geometry` is what is shown, `.gpu` where; choose() does what the controls do."""

    def __init__(self) -> None:
        self._quiet, self._alt = False, ""
        box, wide = widgets.Layout(width="290px"), {"description_width": "120px"}
        self._shape = widgets.Dropdown(options=[("a matrix of a model …", None), *shapes().items()], layout=box)
        number = {"layout": widgets.Layout(width="200px"), "style": {"description_width": "70px"}}
        self._rows = widgets.BoundedIntText(3584, 1, 200_000, description="rows", **number)
        self._columns = widgets.BoundedIntText(18944, 256, 32_768, 256, description="columns", **number)
        self._layout = widgets.Dropdown(options=[("a launch …", None), *LAYOUTS.items()], layout=box)
        self._warps = self._choice((1, 2, 4, 8, 16), 8, "warps a block")
        self._block_rows = self._choice((1, 2, 4, 8), 1, "rows a block")
        self._unit = widgets.Dropdown(options=UNITS, description="a lane takes", layout=box, style=wide)
        self._block = widgets.IntSlider(0, 0, 1, description="block", layout=box)
        self._thread = widgets.IntSlider(37, 0, 255, description="thread", layout=box)
        self._gpu = widgets.Dropdown(options=list(GPUS.items()), description="on a", layout=box, style=wide)
        self._waits = self._choice((4, 8, 16, 32), 4, "bytes a thread waits for")
        self._latency = widgets.IntSlider(800, 100, 2000, 10, description="latency, ns", layout=box, style=wide)
        self._said = widgets.HTML()
        self._picture, self._flight, self._told = widgets.HTML(), widgets.HTML(), widgets.HTML()
        for picture in (self._picture, self._flight):
            picture.layout = widgets.Layout(max_width="100%", overflow="auto")
        self._named = {
            "rows": self._rows, "columns": self._columns, "warps": self._warps, "block_rows": self._block_rows,
            "unit": self._unit, "block": self._block, "thread": self._thread, "gpu": self._gpu, "waits": self._waits,
            "latency": self._latency,
        }  # fmt: skip
        for name, control in self._named.items():
            control.add_class(f"minfer-geometry-{name.replace('_', '-')}")
            control.observe(lambda change: self._draw(), "value")
        for widget, name in (
            (self, "geometry"), (self._shape, "geometry-shape"), (self._layout, "geometry-layout"),
            (self._said, "geometry-said"), (self._picture, "geometry-picture"), (self._flight, "geometry-flight"),
            (self._told, "geometry-told"),
        ):  # fmt: skip
            widget.add_class(f"minfer-{name}")
        self._shape.observe(lambda change: self._take(change["new"], "rows", "columns"), "value")
        self._layout.observe(lambda change: self._take(change["new"], "warps", "block_rows", "unit", "waits"), "value")
        self._gpu.observe(lambda change: self._take((_nanoseconds(change["new"]),), "latency"), "value")
        flow = widgets.Layout(flex_flow="row wrap", align_items="center")
        lines = (
            [self._shape, self._rows, self._columns],
            [self._layout, self._labelled(self._warps), self._labelled(self._block_rows), self._unit],
            [self._block, self._thread],
        )
        below = [self._gpu, self._latency, self._labelled(self._waits)]
        super().__init__(
            [
                *(widgets.Box(line, layout=flow) for line in lines), self._said, self._picture, self._told,
                widgets.Box(below, layout=flow), self._flight,
            ]
        )  # fmt: skip
        self.choose(latency=_nanoseconds(self._gpu.value))

    def _choice(self, options: tuple, value: int, what: str) -> widgets.ToggleButtons:
        buttons = widgets.ToggleButtons(options=options, value=value, style={"button_width": "44px"})
        buttons.tooltips = [f"{what}: {n}" for n in options]
        return buttons

    def _labelled(self, buttons: widgets.ToggleButtons) -> widgets.Widget:
        return widgets.HBox([widgets.Label(buttons.tooltips[0].partition(":")[0]), buttons])

    @property
    def gpu(self) -> Gpu:
        return replace(self._gpu.value, latency=1e-9 * self._latency.value)

    def choose(self, **values: object) -> Geometry:
        """Set rows, columns, warps, block_rows, unit, block, thread, gpu (its name), waits, latency; draw once."""
        self._quiet = True
        if "gpu" in values:
            values["gpu"] = GPUS[values["gpu"]]
            values = {"latency": _nanoseconds(values["gpu"]), **values}
        for name, value in values.items():
            self._named[name].value = value
        self._quiet = False
        self._draw()
        return self.geometry

    def _take(self, values: tuple | None, *names: str) -> None:
        if values is not None and not self._quiet:
            self.choose(**dict(zip(names, values, strict=True)))

    def _draw(self) -> None:
        if self._quiet:
            return
        launch = Launch(self._warps.value, self._block_rows.value)
        columns = self._columns.value // 256 * 256
        self.geometry = Geometry(self._rows.value, columns, launch, self._unit.value)
        self._quiet = True  # the sliders' ends move with the launch
        self._block.max, self._thread.max = self.geometry.blocks - 1, launch.threads - 1
        self._quiet = False
        picture = geometry_picture(self.geometry, self._block.value, self._thread.value)
        flight = flight_picture(self.geometry, self.gpu, self._waits.value)
        self._picture.value, self._flight.value = picture.svg, flight.svg
        place = self.geometry.place(self._block.value, self._thread.value)
        self._said.value, self._told.value = self._numbers(), thread_told(self.geometry, place)
        self._alt = f"{picture.alt} {flight.alt}"

    def _numbers(self) -> str:
        g, gpu = self.geometry, self.gpu
        return (
            f"{g.blocks:,} thread blocks · {g.launch.threads} threads = <b>{g.threads:,} threads</b> launched; "
            f"the {gpu.name} holds {gpu.resident_threads:,} at once<br>{g.units} units a row "
            f"for {g.launch.row_threads} threads: <b>{g.idle_threads} idle</b>; "
            f"{g.utilization:.0%} of the lanes' steps hold a unit"
        )

    def __repr__(self) -> str:
        return self._alt

    def _page(self) -> str:
        parts = (self._said, self._picture, self._told, self._flight)
        return "".join(f"<p>{part.value}</p>" for part in parts)


def _nanoseconds(gpu: Gpu) -> int:
    return round(1e8 * gpu.latency) * 10  # as the slider's steps are
