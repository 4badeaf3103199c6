"""One pass of some tokens through the model: ids -> logits of the last ones. Fills the program's tables and runs it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minfer_lib.errors import ArgumentError
from minfer_lib.formats.table import FORMATS
from minfer_lib.matmul.panels import panels_bytes
from minfer_lib.model import program
from minfer_lib.model.config import Config
from minfer_lib.model.kv_cache import KvCache
from minfer_lib.model.norm_rope import rope_angles, rope_frequencies
from minfer_lib.model.weights import Layer, Weights
from minfer_lib.native.address import aligned_bytes, aligned_floats
from minfer_lib.native.clock import TICK_NS
from minfer_lib.native.pool import job_address, pool
from minfer_lib.quantize.activations import rows_quantizer

PIECE = 128  # the most tokens of one pass: few enough that a stop or Ctrl-C acts at once

Watch = Callable[[str, np.ndarray], None]  # called with every stage's name and its array, f32[n_tokens, …]

_STAGES_OF = {  # a layer's steps, in order -> the stages that are there to be seen after each, and their buffers
    program.ATTN_NORM: {"attn_norm": "h"},
    program.QKV: {"q": "q", "k": "k", "v": "v"},
    program.BIAS: {"q_bias": "q", "k_bias": "k", "v_bias": "v"},
    program.HEAD_NORM: {"q_norm": "q", "k_norm": "k"},
    program.ROPE: {"q_rope": "q", "k_rope": "k"},
    program.HEADS: {"heads": "heads"},
    program.HEADS_ROWS: {},
    program.ATTN_OUTPUT: {"attn_output": "out", "after_attention": "x"},
    program.FFN_NORM: {"ffn_norm": "h"},
    program.GATE_UP: {"gate": "gate", "up": "up", "swiglu": "act"},
    program.ACT_ROWS: {},
    program.FFN_DOWN: {"ffn_down": "out", "after_ffn": "x"},
}


def _stages(layer: Layer, kind: int) -> dict[str, str]:
    """_STAGES_OF a step in this layer. A stage that is named after one of its vectors needs that vector."""
    return {stage: at for stage, at in _STAGES_OF[kind].items() if vars(layer).get(stage, at) is not None}


def unwatched(name: str, array: np.ndarray) -> None:
    """The watch of a pass that nobody looks at."""


class Forward:
    """The model's arithmetic over one cache: call it with tokens and the position of the first."""

    def __init__(self, config: Config, weights: Weights, cache: KvCache, threads: int, policy: str = "even") -> None:
        self.config, self.weights, self.cache, self.threads = config, weights, cache, threads
        rows = max(PIECE, threads)  # a row a token; with one token a row a thread
        widths = {
            "x": config.width, "h": config.width, "out": config.width,
            "q": config.n_heads * config.head_dim, "heads": config.n_heads * config.head_dim,
            "k": config.n_kv_heads * config.head_dim, "v": config.n_kv_heads * config.head_dim,
            "gate": config.ffn_width, "up": config.ffn_width, "act": config.ffn_width,
        }  # fmt: skip
        self._buffers = {name: aligned_floats(rows, width) for name, width in widths.items()}
        self._buffers["scores"] = np.zeros((4 * threads, cache.keys.shape[2]), np.float32)  # four rows a thread
        self._layers, self._forms, self._matrices = self._tables(rows)
        self._steps = self._program()
        self._counters = np.zeros(len(self._matrices), np.int64)  # of the chunks that are claimed, one a matrix
        self._spent = np.zeros(len(program.STEPS), np.int64)  # ticks, a step of the program
        self._claim = policy == "ggml"
        self._frequencies = rope_frequencies(config, weights.rope_factors)
        self._pass = self._record()
        self._job = job_address(program.forward_job)

    @property
    def step_seconds(self) -> dict[str, float]:
        """How long each kind of step that the model has took so far, over all layers and passes."""
        seconds = (self._spent * (TICK_NS / 1e9)).tolist()
        return {program.STEPS[kind]: seconds[kind] for kind in np.unique(self._steps["kind"])}

    def __call__(self, ids: list[int], position: int, watch: Watch = unwatched, wanted: int = 1) -> np.ndarray:
        """Tokens `ids` at position, position + 1 … -> f32[wanted, n_vocab], the logits after the last `wanted` tokens.

        At most PIECE ids. Fills the cache. Only the wanted rows go through the output matrix: to continue a text, the
        last is enough. Raises ArgumentError where the numbers end in NaN or infinity: the weights are damaged.
        """
        config, record = self.config, self._pass
        x = self._buffers["x"][: len(ids)]
        x[:] = self.weights.embed(ids)
        positions = np.arange(position, position + len(ids))
        cos, sin = rope_angles(positions, self._frequencies, config.rope_magnitude)
        logits = np.empty((wanted, self.weights.n_vocab), np.float32)
        self._counters[:] = self.threads  # each thread begins with the chunk of its own number
        record["bad"], record["n_tokens"], record["position"], record["wanted"] = 0, len(ids), position, wanted
        record["cos"], record["sin"], record["logits"] = cos.ctypes.data, sin.ctypes.data, logits.ctypes.data
        if watch is unwatched:
            self._run(0, len(self._steps))
        else:
            self._run_watched(x, logits, watch)
        if record["bad"] or not np.isfinite(logits).all():  # a quantizer sees the first; floats only end here
            raise ArgumentError("the numbers inside the model became NaN or infinite: its weights are damaged.")
        return logits

    def _run(self, first: int, last: int) -> None:
        """Steps [first, last) in one call: Python is not entered between them."""
        self._pass["control"], self._pass["first_step"], self._pass["last_step"] = pool().control, first, last
        pool().run(self._job, self._pass.ctypes.data, self.threads)

    def _run_watched(self, x: np.ndarray, logits: np.ndarray, watch: Watch) -> None:
        """The same steps one call each, telling `watch` what each has left in its buffers."""
        watch("embedding", x)
        first = len(self._steps) - 2
        for step, (i, kind) in enumerate(self._steps[:first].tolist()):
            self._run(step, step + 1)
            for stage, buffer in _stages(self.weights.layers[i], kind).items():
                watch(f"blk.{i}.{stage}", self._buffers[buffer][: len(x)])
        self._run(first, first + 1)
        watch("output_norm", self._buffers["h"][: len(logits)])
        self._run(first + 1, first + 2)
        watch("logits", logits)

    def _tables(self, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """LAYER, FORM and MATRIX records; the buffers that they point to are kept in self._buffers."""
        matrices = self.weights.matrices()
        names = sorted({matrix.activation for matrix in matrices}, key=str)
        tiled = [matrix for matrix in matrices if matrix.tiles_function]
        self._scratch_bytes = max((matrix.scratch_bytes for matrix in tiled), default=0)  # a worker
        self._buffers["scratch"] = aligned_bytes(self.threads * self._scratch_bytes)
        forms = np.zeros(len(names), program.FORM)
        for form, name in zip(forms, names, strict=True):
            if name is not None:
                widest = max(matrix.n_in for matrix in matrices if matrix.activation == name)
                block_values = FORMATS[name].block_values
                self._buffers[name] = np.zeros((rows, FORMATS[name].row_bytes(widest)), np.uint8)
                form["quantize"] = rows_quantizer(name)
                form["block_values"], form["block_bytes"] = block_values, FORMATS[name].block_bytes
                form["rows"] = self._buffers[name].ctypes.data
                if any(matrix.activation == name for matrix in tiled):
                    panels = aligned_bytes(panels_bytes(block_values, rows, widest // block_values))
                    self._buffers[f"panels of {name}"], form["panels"] = panels, panels.ctypes.data
        table = [
            (m.rows_function, m.tiles_function, m.address, m.row_bytes)
            + (m.n_out, m.n_in, m.n_blocks, names.index(m.activation))
            for m in matrices
        ]
        layers = np.array([self._layer(i, layer) for i, layer in enumerate(self.weights.layers)], program.LAYER)
        return layers, forms, np.array(table, program.MATRIX)

    def _program(self) -> np.ndarray:
        """STEP records. A layer skips the steps whose stages it does not have: no biases, no step for them."""
        steps = []
        for i, layer in enumerate(self.weights.layers):
            steps += [(i, kind) for kind, stages in _STAGES_OF.items() if not stages or _stages(layer, kind)]
        last = len(self.weights.layers)
        return np.array([*steps, (last, program.OUTPUT_NORM), (last, program.LOGITS)], program.STEP)

    def _layer(self, i: int, layer: Layer) -> tuple[int, ...]:
        arrays = vars(layer) | {"keys": self.cache.keys[i], "values": self.cache.values[i]}
        return tuple(0 if arrays[name] is None else arrays[name].ctypes.data for name in program.LAYER.names)

    def _record(self) -> np.ndarray:
        config, record = self.config, np.zeros(1, program.PASS)
        for name in ("n_layers", "width", "ffn_width", "n_heads", "n_kv_heads", "head_dim"):
            record[name] = getattr(config, name)
        record["claim"], record["counters"] = self._claim, self._counters.ctypes.data
        record["spent"] = self._spent.ctypes.data
        record["context"], record["n_forms"] = self.cache.keys.shape[2], len(self._forms)
        record["scratch_bytes"] = self._scratch_bytes
        record["eps"], record["scale"] = config.norm_eps, config.attention_scale
        record["rope_halves"] = config.kind.rope_order == "halves"
        record["output_norm"] = self.weights.output_norm.ctypes.data
        for name, table in (
            ("steps", self._steps),
            ("layers", self._layers),
            ("matrices", self._matrices),
            ("forms", self._forms),
        ):
            record[name] = table.ctypes.data
        for name in set(self._buffers) & set(program.PASS.names):
            record[name] = self._buffers[name].ctypes.data
        return record
