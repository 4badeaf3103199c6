"""`minfer fetch`, `warmup`, `start` and `restore`."""

import re

import minfer_lib as mf
from minfer_lib import model_files
from minfer_lib.engine.warmup import warmup
from minfer_lib.lessons import notebook_copies


def test_warmup(run, model):
    status, out, _ = run("warmup", "--model", model)
    assert status == 0 and re.fullmatch(r"ready in \d+\.\d s\n", out)


def test_the_bar_of_warmup_names_every_kernel(tiny, monkeypatch):
    names = []
    monkeypatch.setattr("minfer_lib.engine.warmup.tqdm.set_postfix_str", lambda bar, name: names.append(name))
    warmup(mf.load_model(tiny(format="Q4_1")))
    operations = ["Norm", "Quantize", "MatMul", "Rope", "Attend", "Add", "SwiGlu"]
    assert names == ["quantize to Q8_0", "products of Q4_1", *operations, "forward pass", "first token"]


def test_start_and_restore_print_what_they_did(run, monkeypatch):
    monkeypatch.setattr(notebook_copies, "start", lambda: ["a: copied", "b: kept"])
    monkeypatch.setattr(notebook_copies, "restore", lambda name: f"{name}: fresh copy")
    assert run("start")[:2] == (0, "a: copied\nb: kept\n")
    assert run("restore", "03")[:2] == (0, "03: fresh copy\n")


def test_start_lab(run, monkeypatch):
    called = []
    monkeypatch.setattr(notebook_copies, "lab", lambda: called.append("lab"))
    monkeypatch.setattr(notebook_copies, "start", lambda: [])
    assert run("start", "--lab")[0] == 0 and called == ["lab"]


def test_fetch_prints_the_file(run, monkeypatch):
    monkeypatch.setattr(model_files, "fetch", lambda name: f"/models/{name}")
    assert run("fetch")[1] == "/models/smollm2\n"
    assert run("fetch", "hf:a/b/c")[1] == "/models/hf:a/b/c\n"
