"""What a tile instruction multiplies is what the formats decode to."""

import numpy as np
import pytest
from lesson_cases import rows_of

import minfer_lib as mf
from minfer_lib.lessons import tile_operands


@pytest.mark.parametrize("name", ["Q4_0", "Q5_1", "Q8_0"])
def test_operands_of_a_block(name):
    w, a = rows_of(name)
    codes, panel = tile_operands(name, w, a)
    values = mf.dequantize(name, w[:, : mf.FORMATS[name].block_bytes].ravel()).reshape(16, 32)
    blocks = np.ascontiguousarray(w[:, : mf.FORMATS[name].block_bytes]).view(mf.FORMATS[name].dtype)[:, 0]
    d, m = (blocks[f].astype(np.float32) if f in blocks.dtype.names else np.zeros(16) for f in ("d", "m"))
    assert np.allclose(codes.view(np.int8).reshape(16, 32) * d[:, None] + m[:, None], values, atol=1e-5)
    fours = panel[: 8 * 64].reshape(8, 16, 4)
    assert np.array_equal(fours.transpose(1, 0, 2).reshape(16, 32), a[:, 2:34])


def test_operands_of_a_super_block():
    w, a = rows_of("Q6_K")
    codes, panel = tile_operands("Q6_K", w, a)
    high, low = (codes[4096 * i : 4096 * (i + 1)].view(np.int8).reshape(4, 16, 64).astype(int) for i in range(2))
    scaled = (64 * high + low).transpose(1, 0, 2).reshape(16, 256)
    d = w.view(mf.FORMATS["Q6_K"].dtype)["d"].astype(np.float32)
    assert np.allclose(scaled * d, mf.dequantize("Q6_K", w.ravel()).reshape(16, 256), atol=1e-5)
    assert np.array_equal(panel[:4096].reshape(64, 16, 4).transpose(1, 0, 2).reshape(16, 256), a[:, 2:258])
