"""K-quant dots: integer sums, folded once a super-block in plain float32. So all kernel sets give the same bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_blocks import random_activations, random_blocks

import minfer_lib as mf
from minfer_lib.dot.format_kernels import ROWS_AT_ONCE
from minfer_lib.dot.registry import DOTS, KERNELS
from minfer_lib.simd.asm import DOT, DOT4, disassembly
from minfer_lib.simd.step import step

NAMES = tuple(name for name in KERNELS if mf.FORMATS[name].activation == "Q8_K")
SETS = tuple(ROWS_AT_ONCE)
HERE = [isa for isa in SETS if isa in mf.isas()]
ROWS = ("normal", "outliers", "positive", "zeros", "ties", "spike", "tiny", "constant", "large")

f32 = np.float32


def a_blocks(rng, n, codes=None):
    return random_activations("Q8_K", 256 * n, rng, codes)


def raw(blocks):
    return blocks.view(np.uint8).reshape(-1)


def bits(bytes_, k, of):
    """Bits `k`, `k + 1` … (of in number) of each byte, as int64."""
    return (bytes_.astype(np.int64) >> k) & ((1 << of) - 1)


def six_bit_pairs(b):
    """12 bytes -> 8 scales, 8 mins, one by one as ggml's get_scale_min_k4 has it."""
    pairs = []
    for j in range(8):
        if j < 4:
            pairs.append((b[j] & 63, b[j + 4] & 63))
        else:
            pairs.append((b[j + 4] & 15 | b[j - 4] >> 6 << 4, b[j + 4] >> 4 | b[j] >> 6 << 4))
    return np.array(pairs, np.int64).T


def parts(name, block):
    """(codes[256], scale of each 16 codes, min of each 16 codes) as integers, taken apart without the library."""
    b = np.frombuffer(block.tobytes(), np.uint8)
    no_mins = np.zeros(16, np.int64)
    if name == "Q2_K":
        codes = [bits(b[16 + 32 * h : 48 + 32 * h], 2 * k, 2) for h in range(2) for k in range(4)]
        return np.concatenate(codes), bits(b[:16], 0, 4), bits(b[:16], 4, 4)
    if name == "Q3_K":
        low = np.concatenate([bits(b[32 + 32 * h : 64 + 32 * h], 2 * k, 2) for h in range(2) for k in range(4)])
        high = np.concatenate([bits(b[:32], k, 1) for k in range(8)])
        s = b[96:108].astype(np.int64)
        scales = [(s[j % 8] >> 4 * (j // 8)) & 15 | ((s[8 + j % 4] >> 2 * (j // 4)) & 3) << 4 for j in range(16)]
        return low + 4 * high - 4, np.array(scales) - 32, no_mins
    if name == "Q6_K":
        low = [bits(b[64 * h + 32 * i : 64 * h + 32 * i + 32], s, 4) for h in range(2) for s in (0, 4) for i in (0, 1)]
        high = [bits(b[128 + 32 * h : 160 + 32 * h], 2 * k, 2) for h in range(2) for k in range(4)]
        return np.concatenate(low) + 16 * np.concatenate(high) - 32, b[192:208].view(np.int8).astype(np.int64), no_mins
    at = 16 if name == "Q4_K" else 48
    codes = np.concatenate([bits(b[at + 32 * c : at + 32 * c + 32], s, 4) for c in range(4) for s in (0, 4)])
    if name == "Q5_K":
        codes = codes + 16 * np.concatenate([bits(b[16:48], k, 1) for k in range(8)])
    scales, mins = six_bit_pairs(b[4:16].astype(np.int64))
    return codes, np.repeat(scales, 2), np.repeat(mins, 2)


def documented(name, w, a):
    """Super-block by super-block: minus (dmin * d_a) * sum, where there are mins, then plus (d * d_a) * sum."""
    total = f32(0)
    for w_block, a_block in zip(w, a, strict=True):
        codes, scales, mins = parts(name, w_block)
        activations, d_a = a_block["qs"].astype(np.int64), f32(a_block["d"])
        if "dmin" in w.dtype.names:
            m_sum = int((np.repeat(mins, 16) * activations).sum())
            total = f32(total - f32(f32(f32(w_block["dmin"]) * d_a) * f32(m_sum)))
        value_sum = int((np.repeat(scales, 16) * codes * activations).sum())
        total = f32(total + f32(f32(f32(w_block["d"]) * d_a) * f32(value_sum)))
    return total


def terms(name, w, activation_format, a):
    """The products of the decoded rows, float64."""
    return mf.dequantize(name, w).astype(np.float64) * mf.dequantize(activation_format, a).astype(np.float64)


def term_size(name, w, activation_format, a):
    """The sum of all |value terms| and |min terms|. In a weight that is small itself the two may be large."""
    size = 0
    for block, row in zip(
        w.view(mf.FORMATS[name].dtype), mf.dequantize(activation_format, a).reshape(-1, 256), strict=True
    ):
        codes, scales, mins = parts(name, block)
        weights = np.abs(np.repeat(scales, 16) * codes * float(block["d"]))
        if "dmin" in block.dtype.names:
            weights += np.abs(np.repeat(mins, 16) * float(block["dmin"]))
        size += weights @ np.abs(row)
    return size


def stepped(name, isa, w, a):
    """(results, flagged steps) on emulated registers, on any machine: one number, or the same row four times."""
    n = a.size // 306
    trace = step(DOTS[name, isa], w, 0, a, 0, n) if ROWS_AT_ONCE[isa] == 1 else step(DOTS[name, isa], w, 0, 0, a, 0, n)
    return (trace.result if isinstance(trace.result, tuple) else (trace.result,)), trace.flagged


@pytest.mark.parametrize("name", NAMES)
def test_the_instructions_that_the_source_claims(name):
    avx2, vnni, neon = (
        {(line.mnemonic, "zmm" in line.instruction or "%k1" in line.instruction) for line in lines}
        for lines in (
            disassembly(DOTS[name, "avx2"], DOT, "avx2"),
            disassembly(DOTS[name, "avx512vnni"], DOT4, "avx512vnni"),
            disassembly(DOTS[name, "neon"], DOT, "neon"),
        )
    )
    assert {(m, False) for m in ("vpmaddubsw", "vpmaddwd", "vpshufb", "vcvtph2ps", "prefetcht0")} <= avx2
    assert not any(wide for _, wide in avx2), "AVX2 alone"
    assert {("vpmaddubsw", True), ("vpmaddwd", True), ("prefetcht0", False)} <= vnni
    assert {("sdot", False), ("mla", False), ("prfm", False)} <= neon
    assert not any(m.startswith(("vfm", "fmla", "fmadd")) for m, _ in avx2 | vnni | neon), "each product is rounded"


@pytest.mark.parametrize("k", [256, 512, 768, 1280, 8448, 16640, 18944])
@pytest.mark.parametrize("name", NAMES)
def test_every_kernel_set_gives_the_documented_bits(name, k):
    """1e0 off is a layout fault, 1e-6 is rounding; here nothing is off at all."""
    rng = np.random.default_rng(k)
    for _ in range(10 if k < 2000 else 2):
        w, a = random_blocks(name, k // 256, rng), a_blocks(rng, k // 256)
        right = documented(name, w, a)
        assert {isa: f32(mf.dot(name, raw(w), raw(a), isa)) for isa in HERE} == dict.fromkeys(HERE, right)
        products = terms(name, raw(w), "Q8_K", raw(a))
        assert abs(right - products.sum()) <= 2e-6 * np.abs(products).sum()


@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("name", NAMES)
def test_stepped_kernels_give_the_documented_bits(name, isa):
    rng = np.random.default_rng(1)
    for n in (1, 2, 3):
        w, a = random_blocks(name, n, rng), a_blocks(rng, n)
        results, flagged = stepped(name, isa, raw(w), raw(a))
        assert {*results} == {documented(name, w, a)} and flagged == []


@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_saturates_at_the_extremes(name, isa):
    """All scale bits and all code bits set or clear, activations of one magnitude: the largest sums that there are."""
    rng = np.random.default_rng(2)
    one = {field: 2.0**-12 for field in ("d", "dmin")}
    for byte in (0, 0x7F, 0x80, 0xFF):
        w = random_blocks(name, 1, rng)
        raw(w)[:] = byte
        for field in {*one} & {*w.dtype.names}:
            w[field] = one[field]
        codes = parts(name, w[0])[0]
        for signs in (np.ones(256), np.where(codes < 0, -1, 1), np.resize([1, 1, -1, -1], 256)):
            a = a_blocks(rng, 1, 127 * signs)
            a["d"] = 1
            results, flagged = stepped(name, isa, raw(w), raw(a))
            assert flagged == [] and {*results} == {documented(name, w, a)}
            if isa in HERE:
                assert mf.dot(name, raw(w), raw(a), isa) == documented(name, w, a)


@pytest.mark.parametrize("name", NAMES)
def test_integers_are_exact(name):
    """Scales of 1 and sums below 2**24: the number is the integer itself."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        w, a = random_blocks(name, 1, rng), a_blocks(rng, 1, rng.integers(-10, 11, 256))
        w["d"], a["d"] = 1, 1
        if "dmin" in w.dtype.names:
            w["dmin"] = 0
        codes, scales, _ = parts(name, w[0])
        right = int((np.repeat(scales, 16) * codes * a["qs"][0]).sum())
        assert abs(right) < 2**24
        assert [mf.dot(name, raw(w), raw(a), isa) for isa in HERE] == [right] * len(HERE)


@pytest.mark.parametrize("name", NAMES)
def test_two_different_super_blocks(name):
    """Each block's own scales, codes and activations count, at its own place."""
    rng = np.random.default_rng(4)
    w, a = random_blocks(name, 2, rng), a_blocks(rng, 2)
    one, other = (mf.dot(name, raw(w[i : i + 1]), raw(a[i : i + 1])) for i in range(2))
    assert one != other
    assert mf.dot(name, raw(w), raw(a)) == documented(name, w, a)
    swapped = mf.dot(name, raw(w[::-1].copy()), raw(a[::-1].copy()))
    assert abs(swapped - (one + other)) < 1e-4 * (abs(one) + abs(other))
    assert abs(mf.dot(name, raw(w), raw(a[::-1].copy())) - (one + other)) > 1e-2 * (abs(one) + abs(other))


@settings(max_examples=60)
@given(data=st.data())
def test_any_bytes_with_any_scales(data):
    """Infinite and NaN scales included."""
    name, n = data.draw(st.sampled_from(NAMES)), data.draw(st.integers(1, 3))
    row, seed = mf.FORMATS[name], data.draw(st.integers(0, 2**32 - 1))
    w = np.frombuffer(data.draw(st.binary(min_size=n * row.block_bytes, max_size=n * row.block_bytes)), row.dtype)
    a = a_blocks(np.random.default_rng(seed), n)
    a["d"] = np.array(data.draw(st.lists(st.integers(0, 65535), min_size=n, max_size=n)), np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        right = documented(name, w, a)
    for isa in HERE:
        assert np.array_equal(f32(mf.dot(name, raw(w), raw(a), isa)), right, equal_nan=True)


@pytest.mark.parametrize("field", ["d", "dmin"])
@pytest.mark.parametrize("name", NAMES)
def test_a_nan_in_any_block_reaches_the_sum(name, field):
    rng = np.random.default_rng(5)
    w, a = random_blocks(name, 3, rng), a_blocks(rng, 3)
    if field not in w.dtype.names:
        pytest.skip(f"{name} has no {field}")
    w[field][1] = np.nan
    assert all(np.isnan(mf.dot(name, raw(w), raw(a), isa)) for isa in HERE)


@pytest.mark.parametrize("name", NAMES)
def test_large_and_tiny_activations_stay_finite(name):
    """3e4 everywhere: d is in range, and d times the sum of codes is not, in f16. Tiny ones are zero."""
    x = np.linspace(-1, 1, 512, dtype=f32)
    w = mf.quantize(name, x)
    for value, largest in ((3e4, 1e7), (-3e4, 1e7), (1e-40, 0), (0, 0), (-0.0, 0)):
        a = mf.quantize_activations("Q8_K", np.full(512, value, f32))
        assert all(abs(mf.dot(name, w, a, isa)) <= largest for isa in HERE)
    for weight in (1e-40, 0.0, -0.0):
        w = mf.quantize(name, np.full(512, weight, f32))
        assert all(mf.dot(name, w, mf.quantize_activations("Q8_K", x), isa) == 0 for isa in HERE)


@pytest.mark.parametrize("row", [*ROWS, "bytes"])
@pytest.mark.parametrize("name", NAMES)
def test_golden(golden, name, row):
    """ggml's number, taken over to our activations: their blocks round differently, and by how much is computed."""
    key, a_row = name.lower().replace("_k", "_K"), "normal" if row == "bytes" else row
    w, their_a = golden[f"{row}/{key}/bytes"], golden[f"{a_row}/act/q8_K"]
    our_a = mf.quantize_activations("Q8_K", golden[f"{a_row}/a"])
    ours, theirs = terms(name, w, "Q8_K", our_a), terms(name, w, "Q8_K_GGML", their_a)
    scales = our_a.view(mf.FORMATS["Q8_K"].dtype)["d"].astype(f32)
    apart = np.abs(mf.dequantize("Q8_K", our_a) - mf.dequantize("Q8_K_GGML", their_a)).reshape(-1, 256).max(axis=1)
    limit = scales * (1 + 127 * 2.0**-10) + 127 * 2.0**-25
    assert (apart <= limit).all(), "more than two roundings, and that of the scale to f16"
    size = term_size(name, w, "Q8_K", our_a) + term_size(name, w, "Q8_K_GGML", their_a)
    for number in golden[f"{row}/{key}/dot_scalar_simd"]:
        if not np.isnan(number):  # where ggml's own number is the product of the rows
            assert abs((number - mf.dot(name, w, our_a)) - (theirs.sum() - ours.sum())) <= 2e-6 * size


@pytest.mark.parametrize("name", NAMES)
def test_a_rows_bits_do_not_depend_on_its_neighbours_or_threads(name):
    rng = np.random.default_rng(7)
    w, x = raw(random_blocks(name, 11 * 3, rng)).reshape(11, -1), rng.standard_normal((3, 768)).astype(f32)
    right = [[mf.dot(name, row, mf.quantize_activations("Q8_K", token)) for row in w] for token in x]
    for n_out in (1, 2, 3, 4, 5, 7, 11):
        for threads in (1, 2, 3, 16):
            assert np.array_equal(mf.matmul(name, w[:n_out], x, threads), np.array(right, f32)[:, :n_out])


# What is refused


@pytest.mark.parametrize("activation", ["Q8_0", "Q8_K_GGML", "Q8_1", "Q8_0_PAD40", "F32"])
@pytest.mark.parametrize("name", NAMES)
def test_activations_of_another_format(name, activation):
    w = np.zeros(2 * mf.FORMATS[name].block_bytes, np.uint8)
    a = np.zeros(mf.FORMATS[activation].row_bytes(512), np.uint8)
    with pytest.raises(mf.PairingError, match=f"{name} weights take Q8_K activations"):
        mf.dot(name, w, a)
    with pytest.raises(mf.PairingError, match=f"{name} weights take Q8_K activations, not float32"):
        mf.dot(name, w, np.zeros(153, f32))  # the bytes of two Q8_K blocks


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_are_not_whole_super_blocks(name):
    with pytest.raises(mf.ArgumentError, match="do not|does not|whole|rows of"):
        mf.matmul(name, np.zeros((4, mf.FORMATS[name].block_bytes), np.uint8), np.zeros((1, 128), f32))
    with pytest.raises(mf.ArgumentError):
        mf.dot(name, np.zeros(mf.FORMATS[name].block_bytes - 1, np.uint8), np.zeros(306, np.uint8))
