"""`minfer inspect`: what it prints of a file, and that no file steers the terminal."""

import re
from pathlib import Path

import minfer_lib as mf


def test_a_file_that_is_no_model(run, tmp_path):
    (tmp_path / "x.gguf").write_bytes(b"PK\3\4" + bytes(100))
    status, _, err = run("inspect", str(tmp_path / "x.gguf"))
    assert status == 1 and "no GGUF file" in err


def test_inspect_shows_metadata_tensors_and_bits(run, tiny):
    path = tiny(format="Q4_0", tied=True)
    status, out, _ = run("inspect", str(path))
    assert status == 0
    assert f"GGUF version 3, {path.stat().st_size:,} bytes" in out and "22 metadata keys" not in out
    file = mf.read_gguf(path)
    assert f"{len(file.metadata)} metadata keys" in out and f"{len(file.tensors)} tensors" in out
    for name in (*file.metadata, *file.tensors):
        assert name in out
    assert re.search(r"blk.0.ffn_up.weight +Q4_0 +96 x 64 +3,456 ", out)
    assert "[265 values] ['<|endoftext|>', '<|im_start|>'" in out
    assert "Q4_0       4.5 bits a weight" in out and "F32        32 bits a weight" in out


def test_inspect_of_a_vocabulary_alone(run, tmp_path):
    path = tmp_path / "v.gguf"
    path.write_bytes(b"GGUF\3\0\0\0" + bytes(16))
    status, out, _ = run("inspect", str(path))
    assert status == 0 and "0 tensors" in out


def test_inspect_lets_no_file_steer_the_terminal(run, model, tmp_path):
    raw = Path(model).read_bytes()
    for old, new in ((b"block_count", b"b\x1b[2J\xffcount"), (b"blk.1.ffn_up.weight", b"blk.1.\x1b[31m\x07\xffweight")):
        assert len(old) == len(new) and old in raw
        raw = raw.replace(old, new)
    (tmp_path / "x.gguf").write_bytes(raw)
    status, out, _ = run("inspect", str(tmp_path / "x.gguf"))
    assert status == 0 and "\x1b" not in out and "\x07" not in out
    assert r"llama.b\x1b[2J\udcffcount" in out and r"blk.1.\x1b[31m\x07\udcffweight" in out
