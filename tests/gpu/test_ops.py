"""What the operations mean, on numbers worked out by hand."""

import numpy as np
import pytest

from minfer_lib.gpu import ops


def word(*four):
    return np.array(four, np.int8).view(np.uint32)[0]


def test_loads():
    memory = np.arange(32, dtype=np.uint8)
    assert ops.load2(memory, 6) == 0x0706
    assert ops.load4(memory, 4) == ops.stream4(memory, 4) == 0x07060504
    assert ops.coherent4(memory, 4) == ops.staged4(memory, 4) == 0x07060504
    assert ops.load8(memory, 8) == (0x0B0A0908, 0x0F0E0D0C)
    assert ops.load16(memory, 16) == (0x13121110, 0x17161514, 0x1B1A1918, 0x1F1E1D1C)
    ops.store4(memory, 4, -2)
    assert memory[3:9].tolist() == [3, 254, 255, 255, 255, 8]


def test_dp4a():
    assert ops.dp4a(word(1, -2, 3, -128), word(4, 5, -6, 127), np.int32(100)) == 100 + 4 - 10 - 18 - 128 * 127
    assert ops.dp4a(0x01010101, word(-1, -2, -3, 100), 0) == 94
    assert ops.dp4a(word(-128, -128, -128, -128), word(-128, -128, -128, -128), 0) == 4 * 128 * 128


def test_bits():
    assert ops.bits(0xFEDCBA98, 4, 8) == 0xA9
    assert ops.bits(0xFEDCBA98, 28, 4) == 15
    assert [ops.signed_byte(word(1, -1, 127, -128), i) for i in range(4)] == [1, -1, 127, -128]
    assert ops.byte_perm(0x33221100, 0x77665544, 0x7610) == 0x77661100
    assert ops.byte_perm(0x33221100, 0x77665544, 0x0123) == 0x00112233
    assert ops.funnel_right(0x44332211, 0x88776655, 16) == 0x66554433
    assert ops.funnel_right(0x44332211, 0x88776655, 0) == 0x44332211
    assert ops.funnel_right(0x44332211, 0x44332211, -4) == 0x43322114  # modulo 32: a rotation to the left by 4


@pytest.mark.parametrize("value, half", [(1, 0x3C00), (-2, 0xC000), (65504, 0x7BFF), (1e9, 0x7C00), (2**-24, 1)])
def test_f16(value, half):
    assert ops.f32_to_f16(np.float32(value)) == half
    assert ops.f16_to_f32(half) == (value if abs(value) < 65520 else np.inf)


def test_floats():
    assert ops.f32_bits(np.float32(1)) == 0x3F800000 and ops.bits_f32(0x7F800000) == np.inf
    assert ops.divide(np.float32(127), np.float32(0)) == np.inf
    assert [ops.round_even(np.float32(x)) for x in (0.5, 1.5, -2.5, 2.51, np.nan)] == [0, 2, -2, 3, 0]
