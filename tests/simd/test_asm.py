"""Kernels as machine code: for every kernel set on every machine, and ARM's really run under an emulator."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from random_blocks import random_row

import minfer_lib as mf
from minfer_lib.dot.format_kernels import ROWS_AT_ONCE
from minfer_lib.dot.q4_0 import dot_q4_0_avx2, dot_q4_0_neon
from minfer_lib.dot.registry import DOTS
from minfer_lib.simd.asm import DOT, DOT4, assembly, disassembly, object_code
from minfer_lib.simd.step import step

EXPECTED = {  # what the sources claim to compile to
    "avx2": {"vpmaddubsw", "vpmaddwd", "vcvtdq2ps", "vcvtph2ps", "prefetcht0"},
    "avx512vnni": {"vpdpbusd", "vcvtdq2ps", "vcvtph2ps", "prefetcht0"},
    "neon": {"sdot", "scvtf", "fmla", "fcvt", "prfm"},
}
BLOCKS = [key for key in DOTS if mf.FORMATS[key[0]].activation == "Q8_0"]


@pytest.mark.parametrize(("name", "isa"), [key for key in BLOCKS if key[1] != "scalar"])
def test_the_instructions_that_the_source_claims(name, isa):
    lines = disassembly(DOTS[name, isa], DOT4 if ROWS_AT_ONCE[isa] == 4 else DOT, isa)
    found = {line.mnemonic for line in lines}
    assert EXPECTED[isa] <= found
    assert isa == "neon" or any(m.startswith("vfmadd") for m in found)
    if isa == "avx2":
        assert ("vpsignb" in found) == (not mf.FORMATS[name].has_min)
        assert not any("zmm" in line.instruction or "%k1" in line.instruction for line in lines), "AVX2 alone"


@pytest.mark.parametrize(("name", "isa"), [key for key in DOTS if key[1] == "scalar"])
def test_scalar_kernels_have_assembly_too(name, isa):
    assert disassembly(DOTS[name, isa], DOT, isa)


def test_an_instruction_names_its_source_line():
    of = {line.mnemonic: line for line in disassembly(dot_q4_0_avx2, DOT, "avx2")}
    assert of["vpmaddubsw"].source.startswith("pairs = maddubs(magnitudes, signed)")
    assert of["vpmaddwd"].source == "fours = madd(pairs, splat(i16x16, 1))"
    assert of["vcvtdq2ps"].source == "acc = fmadd(splat(f32x8, d), to_f32(fours), acc)"
    text = Path(of["vpmaddubsw"].filename).read_text(encoding="utf-8").splitlines()
    assert text[of["vpmaddubsw"].line - 1].strip() == of["vpmaddubsw"].source
    assert of["vaddss"].filename.endswith("sums.py"), "of a kernel that it calls, in its own file"
    assert of["vaddss"].source == "return add_pair(low_half(v) + high_half(v))"
    neon = {line.mnemonic: line for line in disassembly(dot_q4_0_neon, DOT, "neon")}
    assert neon["sdot"].source == "fours = sdot(fours, high, load(i8x16, a, ab + 18))"
    assert "#" in neon["ldur"].instruction, "an ARM offset is no comment"


def test_unknown_kernel_sets():
    with pytest.raises(mf.ArgumentError, match="avx1024"):
        assembly(dot_q4_0_avx2, DOT, "avx1024")


HARNESS = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
/* rows of w_bytes and a_bytes, one after the other, from stdin; a float for each to stdout */
int32_t kernel(float *result, void **error,
               void *w_owner, void *w_parent, int64_t w_items, int64_t w_item, uint8_t *w, int64_t w_shape,
               int64_t w_stride, int64_t w_at,
               void *a_owner, void *a_parent, int64_t a_items, int64_t a_item, uint8_t *a, int64_t a_shape,
               int64_t a_stride, int64_t a_at, int64_t n_blocks);
int main(int argc, char **argv) {
    int64_t w_bytes = atoll(argv[1]), a_bytes = atoll(argv[2]), n_blocks = atoll(argv[3]);
    uint8_t *w = malloc(w_bytes), *a = malloc(a_bytes);
    while (fread(w, 1, w_bytes, stdin) == w_bytes && fread(a, 1, a_bytes, stdin) == a_bytes) {
        float y;
        void *error = 0;
        if (kernel(&y, &error, 0, 0, w_bytes, 1, w, w_bytes, 1, 0, 0, 0, a_bytes, 1, a, a_bytes, 1, 0, n_blocks))
            return 1;
        fwrite(&y, sizeof y, 1, stdout);
    }
    return 0;
}
"""
ROWS = ("normal", "outliers", "positive", "zeros", "ties", "spike", "tiny", "constant")
GCC, QEMU = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")


@pytest.mark.skipif(not (GCC and QEMU), reason="gcc-aarch64-linux-gnu and qemu-user are not installed")
@pytest.mark.parametrize("name", [name for name, isa in DOTS if isa == "neon"])
def test_arm_kernels_run(golden, tmp_path, name):
    """Compiled for ARM and executed: the bits of the stepped kernel, on ggml's rows and on any bytes."""
    row, key = mf.FORMATS[name], name.lower().replace("_k", "_K")
    (tmp_path / "main.c").write_text(HARNESS)
    (tmp_path / "kernel.o").write_bytes(object_code(DOTS[name, "neon"], DOT, "neon"))
    subprocess.run([GCC, "-O1", "-static", "-o", "main", "main.c", "kernel.o"], cwd=tmp_path, check=True)
    activation = {kind: mf.quantize_activations(row.activation, golden[f"{kind}/a"]) for kind in ROWS}
    pairs = [(golden[f"{kind}/{key}/bytes"], activation[kind]) for kind in ROWS]
    pairs.append((golden[f"bytes/{key}/bytes"], activation["normal"]))
    rng = np.random.default_rng(0)
    n_blocks = 1024 // row.block_values
    for _ in range(5):
        pairs.append((random_row(name, 1024, rng, largest=1), activation["normal"]))
    stdin = b"".join(w.tobytes() + a.tobytes() for w, a in pairs)
    done = subprocess.run(
        [QEMU, "-cpu", "max", "main", str(pairs[0][0].size), str(pairs[0][1].size), str(n_blocks)],
        cwd=tmp_path, input=stdin, capture_output=True, check=True,
    )  # fmt: skip
    stepped = [step(DOTS[name, "neon"], w, 0, a, 0, n_blocks).result for w, a in pairs]
    assert np.array_equal(np.frombuffer(done.stdout, np.float32), np.array(stepped, np.float32), equal_nan=True)
