"""The stepper: what it records of a kernel, and the one input that breaks the sign trick."""

import numpy as np
import pytest
from numba import njit

import minfer_lib as mf
from minfer_lib.dot.q4_0 import dot4_q4_0_avx512vnni, dot_q4_0_avx2, dot_q4_0_neon, dot_q4_0_scalar
from minfer_lib.quantize.activations_simd import quantize_rows_q8_0_avx2
from minfer_lib.simd.ops import load, maddubs, store
from minfer_lib.simd.registers import i8x32, u8x32
from minfer_lib.simd.step import step

ONE = np.frombuffer(np.float16(1).tobytes(), np.uint8)


def block(code_byte, activation):
    """A Q4_0 block of equal bytes and a Q8_0 block of equal codes, both scales 1."""
    w = np.concatenate([ONE, np.full(16, code_byte, np.uint8)])
    a = np.concatenate([ONE, np.full(32, activation, np.int8).view(np.uint8)])
    return w, a


def names(trace, instruction=False):
    return [s.instruction if instruction else s.name for s in trace.steps]


def test_a_step_tells_all_about_an_operation():
    w, a = block(0x21, 3)
    trace = step(dot_q4_0_avx2, w, 0, a, 0, 1)
    assert (trace.kernel, trace.isa, trace.flagged) == ("dot_q4_0_avx2", "avx2", [])
    assert trace.result == 16 * 3 * (-7 - 6) == mf.dot("Q4_0", w, a, isa="scalar")
    (this,) = [s for s in trace.steps if s.name == "maddubs"]
    assert this.instruction == "vpmaddubsw" and this.text.strip().startswith("pairs = maddubs(magnitudes, signed)")
    assert this.text[slice(*this.columns)] == "maddubs(magnitudes, signed)"
    assert (this.kernel, this.filename) == ("dot_q4_0_avx2", dot_q4_0_avx2.py_func.__code__.co_filename)
    magnitudes, signed = this.inputs
    assert (magnitudes.type, signed.type, this.output.type) == ("u8x32", "i8x32", "i16x16")
    assert (magnitudes.name, signed.name, this.output.name) == ("magnitudes", "signed", "pairs")
    assert magnitudes.value.tolist() == [7] * 16 + [6] * 16 and signed.value.tolist() == [-3] * 32
    assert this.output.value.tolist() == [-42] * 8 + [-36] * 8
    assert trace.steps[magnitudes.step].name == "as_u8" and trace.steps[signed.step].name == "sign"
    assert (this.saturated, this.overflowed, this.lost) == (False, False, None)
    assert [s.number for s in trace.steps] == list(range(len(trace.steps)))


def test_loads_say_where_they_read():
    w, a = block(0x21, 3)
    trace = step(dot_q4_0_avx2, w, 0, a, 0, 1)
    register, raw, at = next(s for s in trace.steps if s.output and s.output.name == "packed").inputs
    assert raw.value is w and at.value == 2 and register.value.name == "u8x16"


def test_the_kernels_it_calls_are_stepped_too():
    w, a = block(0x21, 3)
    inside = [s.kernel for s in step(dot_q4_0_avx2, w, 0, a, 0, 1).steps]
    assert inside[-7:] == ["hsum8"] * 3 + ["hsum4"] * 4


def test_each_kernel_set_has_its_own_instructions():
    w, a = block(0x21, 3)
    avx2 = names(step(dot_q4_0_avx2, w, 0, a, 0, 1), instruction=True)
    assert {"vpand", "vpsrlw", "vinserti128", "vpsubb", "vpsignb", "vpmaddubsw", "vpmaddwd", "vcvtdq2ps"} <= {*avx2}
    vnni = step(dot4_q4_0_avx512vnni, w, 0, 0, a, 0, 1)
    assert vnni.isa == "avx512vnni" and vnni.result == (16 * 3 * (-7 - 6),) * 4
    assert names(vnni, instruction=True).count("vpdpbusd") == 4 and "vpsignb" not in names(vnni, instruction=True)
    neon = step(dot_q4_0_neon, w, 0, a, 0, 1)
    assert neon.isa == "neon" and neon.result == 16 * 3 * (-7 - 6)
    assert [i for i in names(neon, instruction=True) if i in ("and", "ushr", "sub", "sdot", "scvtf")] == [
        "and", "sub", "ushr", "sub", "sdot", "sdot", "scvtf",
    ]  # fmt: skip
    assert names(step(dot_q4_0_scalar, w, 0, a, 0, 1)) == ["load_f16", "load_f16"]


@pytest.mark.parametrize("code", [0x00, 0x33, 0x77])
def test_the_breaking_input(code):
    """An activation of -128 under a negative weight: its sign cannot be turned, and the product has the wrong sign."""
    w, a = block(code, -128)
    trace = step(dot_q4_0_avx2, w, 0, a, 0, 1)
    (wrong,) = trace.flagged
    assert wrong.text.strip() == "signed = sign(qa, qw)" and wrong.overflowed and not wrong.saturated
    assert wrong.lost.all() and (wrong.output.value == -128).all()
    right = 32 * ((code & 15) - 8) * -128
    assert trace.result == -right and mf.dot("Q4_0", w, a, isa="scalar") == right
    assert step(dot4_q4_0_avx512vnni, w, 0, 0, a, 0, 1).result[0] == right, "no sign is turned there"
    assert step(dot_q4_0_neon, w, 0, a, 0, 1).result == right
    if "avx2" in mf.isas():
        assert dot_q4_0_avx2(w, 0, a, 0, 1) == -right, "the machine does the same"


def test_the_breaking_input_is_harmless_under_positive_weights():
    w, a = block(0x9F, -128)
    trace = step(dot_q4_0_avx2, w, 0, a, 0, 1)
    assert trace.flagged == [] and trace.result == 16 * -128 * (7 + 1)


def test_saturation_is_flagged_lane_by_lane():
    @njit
    def pairs(raw, out):
        store(out, 0, maddubs(load(u8x32, raw, 0), load(i8x32, raw, 32)))

    raw, out = np.zeros(64, np.uint8), np.zeros(32, np.uint8)
    raw[:4], raw[32:36] = 255, [127, 127, 127, 1]  # 64770 is beyond int16, 32640 is not
    trace = step(pairs, raw, out)
    (clipped,) = trace.flagged
    assert clipped.saturated and not clipped.overflowed and clipped.lost.tolist() == [True] + [False] * 15
    assert out.view(np.int16)[:3].tolist() == [32767, 32640, 0]
    if "avx2" in mf.isas():
        compiled = np.zeros(32, np.uint8)
        pairs(raw, compiled)
        assert np.array_equal(compiled, out)


def test_globals_of_the_kernel_stay_as_they_were():
    before = dict(dot_q4_0_avx2.py_func.__globals__)
    w, a = block(0x21, 3)
    step(dot_q4_0_avx2, w, 0, a, 0, 1)
    assert dict(dot_q4_0_avx2.py_func.__globals__) == before


def test_the_quantizer_steps(golden):
    for row in ("normal", "ties", "zeros", "tiny", "large"):
        x = golden[f"{row}/a"][None, :96]
        out = np.zeros((1, 102), np.uint8)
        trace = step(quantize_rows_q8_0_avx2, x, out, isa="avx2")
        assert trace.result and np.array_equal(out[0], golden[f"{row}/act_simd/q8_0"][:102])
        assert {"vpandn", "vpmaxsd", "vcvtps2dq", "vpackssdw", "vpacksswb", "vpermd"} <= {*names(trace, True)}
        assert trace.flagged == []


def test_infinite_activations_are_seen():
    for bad in (np.inf, -np.inf, np.nan):
        x = np.ones((1, 32), np.float32)
        x[0, 17] = bad
        assert not step(quantize_rows_q8_0_avx2, x, np.zeros((1, 34), np.uint8)).result
        with pytest.raises(mf.ArgumentError, match="finite"):
            mf.quantize_activations("Q8_0", x[0])
