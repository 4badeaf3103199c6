"""What the tests of the lessons read figures with, and the blocks and traces that they are drawn from."""

import html
import re

import numpy as np

import minfer_lib as mf
from minfer_lib.dot.format_kernels import ROWS_AT_ONCE
from minfer_lib.dot.registry import DOTS
from minfer_lib.simd.step import KernelTrace, step


def texts(svg: str) -> list[str]:
    """The words of a figure, in the order of its elements."""
    return [html.unescape(re.sub("<.*?>", "", found)).strip() for found in re.findall(r"<text[^>]*>(.*?)</text>", svg)]


def smallest_text(svg: str) -> float:
    """The size of its smallest words in pixels."""
    return min(map(float, re.findall(r'font-size="([\d.]+)"', svg) + re.findall(r"font: ([\d.]+)px", svg)))


def marks(svg: str) -> list[int]:
    """The thread numbers in the squares of a chunk trace, in no order."""
    return [int(n) for n in re.findall(r'text-anchor="middle">(\d+)</text>', svg.split("thread</text>")[0])]


def some_block(name: str) -> np.ndarray:
    """One block of format `name` with codes and scales of ordinary size."""
    x = np.random.default_rng(2).normal(0, 1, 256).astype(np.float32)
    row = mf.FORMATS[name]
    if name in ("F32", "F16"):
        return x.astype(row.fields[0].dtype)[:1].view(np.uint8)
    if name == "BF16":
        return x[:1].view(np.uint8)[2:]
    make = mf.quantize_activations if name in ("Q8_K", "Q8_0_PAD40") else mf.quantize
    return make(name, x)[: row.block_bytes]


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Sixteen rows of weights in format `name`, sixteen tokens in its activation format."""
    values, tokens = (np.random.default_rng(seed).normal(0, 1, (16, 256)).astype(np.float32) for seed in (1, 2))
    a = mf.quantize_activations(mf.FORMATS[name].activation, tokens.ravel())
    return mf.quantize(name, values.ravel()).reshape(16, -1), a.reshape(16, -1)


def trace_of(name: str, isa: str) -> KernelTrace:
    """The steps of a dot product of one block, or of four of them where the kernel takes four rows."""
    x = np.random.default_rng(4).normal(0, 1, 128).astype(np.float32)
    w, a = mf.quantize(name, x), mf.quantize_activations("Q8_0", x[:32])
    row = (mf.FORMATS[name].block_bytes,) if ROWS_AT_ONCE[isa] == 4 else ()
    return step(DOTS[name, isa], w, 0, *row, a, 0, 1)
