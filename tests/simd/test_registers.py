"""Each instruction: what numba compiles is what its NumPy meaning says, on any bits."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit

import minfer_lib as mf
from minfer_lib.simd import registers
from minfer_lib.simd.instruction import INSTRUCTIONS
from minfer_lib.simd.ops import (
    add_pair,
    add_pairs,
    andnot,
    as_f32,
    as_i8,
    as_i16,
    as_i32,
    as_u8,
    as_u16,
    byte_mask,
    concat,
    dpbusd,
    dpwssd,
    even_eights_first,
    f16_to_f32,
    first,
    fmadd,
    four,
    fourfold,
    fourths,
    high_half,
    in_order,
    lane,
    load,
    load_f32,
    load_u16,
    load_u32,
    low_half,
    madd,
    maddubs,
    maximum,
    minimum,
    odd_lanes,
    pack_i8,
    pack_i16,
    round_to_i32,
    shuffle,
    sign,
    splat,
    store,
    to_f32,
    widen,
)
from minfer_lib.simd.registers import (
    Register,
    f32x2,
    f32x4,
    f32x8,
    f32x16,
    i8x16,
    i8x32,
    i8x64,
    i16x8,
    i16x16,
    i16x32,
    i32x4,
    i32x8,
    i32x16,
    u8x16,
    u8x32,
    u8x64,
    u16x8,
    u16x16,
    u32x8,
)
from minfer_lib.simd.step import step

HERE = mf.isas()
ALL_INTEGERS = (u8x16, i8x16, u8x32, i8x32, u8x64, i16x8, u16x8, i16x16, i16x32, i32x4, i32x8, u32x8, i32x16)
FLOATS = (f32x4, f32x8, f32x16)


def one(op, register):
    @njit
    def one_operand(raw, out):
        store(out, 0, op(load(register, raw, 1)))

    return one_operand


def two(op, a, b):
    @njit
    def two_operands(raw, out):
        store(out, 0, op(load(a, raw, 1), load(b, raw, 65)))

    return two_operands


def three(op, a, b, c):
    @njit
    def three_operands(raw, out):
        store(out, 0, op(load(a, raw, 1), load(b, raw, 65), load(c, raw, 129)))

    return three_operands


OPERATORS = [
    njit(lambda a, b: a + b), njit(lambda a, b: a - b), njit(lambda a, b: a * b), njit(lambda a, b: a & b),
    njit(lambda a, b: a | b), njit(lambda a, b: a ^ b),
]  # fmt: skip
DIVIDE = njit(lambda a, b: a / b)
BY_NUMBER = [
    njit(lambda a: a + 3), njit(lambda a: a - 8), njit(lambda a: a & 15), njit(lambda a: a | 16),
    njit(lambda a: a ^ 96), njit(lambda a: a << 4), njit(lambda a: a >> 4), njit(lambda a: a * 7),
]  # fmt: skip

ANYWHERE = (
    [two(op, r, r) for op in OPERATORS for r in ALL_INTEGERS]
    + [one(op, r) for op in BY_NUMBER for r in ALL_INTEGERS]
    + [two(op, r, r) for op in (concat, andnot) for r in (u8x16, u8x32, i32x8)]
    + [one(op, r) for op in (low_half, high_half, as_u8, as_i8, as_u16, as_i16, as_i32) for r in (u8x32, i32x8, f32x16)]
    + [one(op, i32x8) for op in (odd_lanes, to_f32)]
    + [
        one(to_f32, i32x16),
        one(fourths, i32x16),
        one(widen, u8x16),
        one(widen, i8x16),
        one(widen, u16x8),
        one(widen, i16x8),
    ]
    + [two(add_pairs, r, r) for r in (i32x4, i32x8, i32x16)]
    + [two(op, r, r) for op in (maximum, minimum) for r in (i8x32, i16x16, i32x8, i32x4)]
    + [one(fourfold, i32x4), one(in_order, i8x32)]
)
AVX2 = [
    two(sign, i8x32, i8x32),
    two(maddubs, u8x32, i8x32),
    two(madd, i16x16, i16x16),
    two(shuffle, u8x32, u8x32),
    two(pack_i16, i32x8, i32x8),
    two(pack_i8, i16x16, i16x16),
]
VNNI = [
    three(dpbusd, i32x8, u8x32, i8x32),
    three(dpbusd, i32x16, u8x64, i8x64),
    three(dpwssd, i32x8, i16x16, i16x16),
    three(dpwssd, i32x16, i16x32, i16x32),
    two(maddubs, u8x64, i8x64),
    two(madd, i16x32, i16x32),
    two(shuffle, u8x64, u8x64),
    one(even_eights_first, u8x64),
]
CASES = [(k, "scalar") for k in ANYWHERE] + [(k, "avx2") for k in AVX2] + [(k, "avx512vnni") for k in VNNI]


def name_of(kernel):
    cells = dict(zip(kernel.py_func.__code__.co_freevars, kernel.py_func.__closure__, strict=True))
    op = cells["op"].cell_contents
    register = next(c.cell_contents for n, c in cells.items() if n != "op")
    return f"{getattr(op, '__name__', op)} {register}"


def both_ways(kernel, raw):
    compiled, emulated = np.zeros(192, np.uint8), np.zeros(192, np.uint8)
    kernel(raw, compiled)
    trace = step(kernel, raw, emulated)
    return compiled, emulated, trace


@pytest.mark.parametrize(("kernel", "isa"), CASES, ids=lambda v: v if isinstance(v, str) else name_of(v))
def test_compiled_is_the_meaning(kernel, isa):
    if isa not in HERE:
        pytest.skip(f"this CPU has no {isa}")
    rng = np.random.default_rng(0)
    for extreme in (False, True):
        for _ in range(20):
            raw = rng.integers(0, 256, 200, dtype=np.uint8)
            if extreme:  # the ends of every range, where lanes overflow
                raw = rng.choice(np.array([0, 1, 127, 128, 129, 255], np.uint8), 200)
            compiled, emulated, _ = both_ways(kernel, raw)
            assert np.array_equal(compiled, emulated)


@pytest.mark.parametrize("register", FLOATS, ids=str)
def test_float_arithmetic(register):
    rng = np.random.default_rng(1)
    for op in (*OPERATORS[:3], DIVIDE, maximum, minimum):
        kernel = two(op, register, register)
        for _ in range(10):
            raw = (rng.standard_normal(50) * 10.0 ** rng.integers(-30, 30, 50)).astype(np.float32).view(np.uint8)
            compiled, emulated, _ = both_ways(kernel, raw)
            assert np.array_equal(compiled.view(np.float32), emulated.view(np.float32), equal_nan=True)


bits = st.integers(0, 2**32 - 1).map(lambda b: np.uint32(b).view(np.float32))
close = st.tuples(st.integers(1, 2**24 - 1), st.integers(-60, 40)).map(lambda p: np.float32(p[0] * 2.0 ** p[1]))


@njit
def fused(raw, out):
    store(out, 0, fmadd(load(f32x4, raw, 0), load(f32x4, raw, 16), load(f32x4, raw, 32)))


@given(a=bits | close, b=bits | close, c=bits | close)
@example(a=np.float32(1 + 2**-23), b=np.float32(1 + 2**-23), c=np.float32(2**-24))  # a tie, but for the last bit
@example(a=np.float32(2**-75), b=np.float32(2**-75), c=np.float32(1))
@example(a=np.float32(3e38), b=np.float32(3e38), c=np.float32(-np.inf))
def test_a_fused_multiply_add_rounds_once(a, b, c):
    with np.errstate(all="ignore"):
        raw = np.concatenate([np.full(4, v, np.float32) for v in (a, b, c)]).view(np.uint8)
        compiled, emulated, _ = both_ways(fused, raw)
        assert np.array_equal(compiled[:16].view(np.float32), emulated[:16].view(np.float32), equal_nan=True)


def test_rounding_is_half_to_even():
    halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, -126.5], np.float32)
    emulated = np.zeros(192, np.uint8)
    kernel = one(round_to_i32, f32x8)
    raw = np.concatenate([np.zeros(1, np.uint8), halves.view(np.uint8)])
    step(kernel, raw, emulated)
    assert emulated[:32].view(np.int32).tolist() == [0, 2, 2, 0, -2, -2, 126, -126]
    if "avx2" in HERE:
        assert np.array_equal(both_ways(kernel, raw)[0], emulated)


@njit
def scalars(raw, out):
    store(out, 0, splat(f32x4, add_pair(load(f32x2, raw, 0))))
    store(out, 16, splat(f32x4, load_f32(raw, 4)) * first(as_f32(load(i32x4, raw, 8))))
    store(out, 32, byte_mask(load_u32(raw, 3)))
    store(out, 64, byte_mask(load_u16(raw, 3)))
    store(out, 80, f16_to_f32(load(u16x8, raw, 16)))
    store(out, 128, byte_mask(np.uint64(load_u32(raw, 3)) << np.uint64(16)))
    store(out, 112, four(load_u16(raw, 3), load_u16(raw, 5), lane(load(u16x8, raw, 0), 7), load_u16(raw, 8)))


def test_scalars_and_registers_together():
    rng = np.random.default_rng(2)
    for _ in range(20):
        raw = np.concatenate([rng.standard_normal(4).astype(np.float32).view(np.uint8),
                              rng.standard_normal(8).astype(np.float16).view(np.uint8)])  # fmt: skip
        compiled, emulated, _ = both_ways(scalars, raw)
        assert np.array_equal(compiled, emulated)
        assert np.array_equal(emulated[32:64], np.unpackbits(raw[3:7], bitorder="little") * 255)
        assert np.array_equal(emulated[80:112].view(np.float32), raw[16:32].view(np.float16).astype(np.float32))
        assert np.array_equal(emulated[112:120], raw[[3, 4, 5, 6, 14, 15, 8, 9]])


def test_a_wrong_operand_is_a_type_error_both_ways():
    @njit
    def wrong(raw, out):
        store(out, 0, maddubs(load(i8x32, raw, 0), load(i8x32, raw, 32)))

    raw, out = np.zeros(64, np.uint8), np.zeros(64, np.uint8)
    with pytest.raises(Exception, match="maddubs"):
        wrong(raw, out)
    with pytest.raises(TypeError, match="there is no maddubs\\(i8x32, i8x32\\)"):
        step(wrong, raw, out)


def test_registers():
    assert (u8x64.bits, i16x16.bits, f32x4.bits) == (512, 256, 128)
    assert i16x16.of("u8") == u8x32 and u16x16.of("f32") == f32x8
    named = [r for r in vars(registers).values() if isinstance(r, Register)]
    assert len(named) == len({r.name for r in named}) == 28
    assert all(vars(registers)[r.name] is r for r in named)


def test_every_instruction_says_what_it_means():
    for handle, instruction in INSTRUCTIONS.items():
        assert handle.__doc__ and instruction.beyond in ("wraps", "saturates", "drops")
