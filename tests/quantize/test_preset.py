"""A whole model in another preset: llama-quantize's formats and bytes, tensor by tensor, and its metadata kept."""

import hashlib
from pathlib import Path

import gguf
import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.cli import main
from minfer_lib.quantize.convert import convert, quantize_gguf
from minfer_lib.quantize.preset import PRESETS, tensor_formats, use_more_bits


@pytest.fixture(scope="module")
def models(made, tmp_path_factory):
    """The random models "tied" and "untied" of make_quantized.py, and the project's own."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("tied", "untied"):
        made["random_model"](name, folder / f"{name}.gguf")
    (folder / "austen_f16.gguf").symlink_to(Path(__file__).parents[2] / "data" / "austen" / "austen-f16.gguf")
    return folder


def data_sha256(path):
    whole = hashlib.sha256()
    with mf.read_gguf(path) as model:
        for tensor in model.tensors.values():
            whole.update(tensor.data)
        return whole.hexdigest(), " ".join(tensor.format for tensor in model.tensors.values())


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", ["tied", "untied", "austen_f16"])
def test_formats_and_bytes_are_llama_quantizes(models, llama_quantize, tmp_path, name, preset):
    record = llama_quantize(name)
    source = hashlib.sha256((models / f"{name}.gguf").read_bytes()).hexdigest()
    assert source == record["source_sha256"], "another model than the golden one: run make_quantized.py again"
    formats = quantize_gguf(models / f"{name}.gguf", tmp_path / "out.gguf", preset, threads=2)
    sha256, in_file = data_sha256(tmp_path / "out.gguf")
    assert " ".join(formats.values()) == in_file == record["presets"][preset]["formats"]
    assert sha256 == record["presets"][preset]["sha256"]


@pytest.mark.parametrize("preset", PRESETS)
def test_the_default_models_formats_are_llama_quantizes(smollm2, llama_quantize, preset):
    """Its rows of 576 are no multiple of 256: most K-quants fall back."""
    with mf.read_gguf(smollm2) as model:
        formats = tensor_formats(model, preset)
    assert " ".join(formats.values()) == llama_quantize("smollm2_135m_q4_1")["presets"][preset]["formats"]


def test_the_default_models_bytes_are_llama_quantizes(smollm2, llama_quantize):
    """Some tensors in each format that any preset gives them; they are decoded from Q4_1 first."""
    record, seen = llama_quantize("smollm2_135m_q4_1"), set()
    with mf.read_gguf(smollm2) as model:
        for name in ("blk.0.ffn_down.weight", "blk.29.ffn_down.weight", "blk.7.attn_q.weight", "blk.7.attn_v.weight"):
            for format_, sha256 in record["tensors"][name].items():
                whole = hashlib.sha256()
                for _, raw in convert(model.tensors[name], format_):
                    whole.update(raw)
                assert whole.hexdigest()[:8] == sha256, (name, format_)
                seen.add(format_)
    assert seen >= {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q3_K", "Q4_K", "Q5_K", "Q6_K"}


def test_the_default_model_in_q4_k_m(smollm2, llama_quantize, tmp_path):
    quantize_gguf(smollm2, tmp_path / "out.gguf", "Q4_K_M", threads=2)
    assert data_sha256(tmp_path / "out.gguf")[0] == llama_quantize("smollm2_135m_q4_1")["presets"]["Q4_K_M"]["sha256"]
    with mf.read_gguf(smollm2) as before, mf.read_gguf(tmp_path / "out.gguf") as after:
        assert {**before.metadata, "general.file_type": 15} == after.metadata


def test_any_number_of_threads_writes_the_same_file(models, tmp_path):
    files = []
    for threads in (1, 2, 5):
        quantize_gguf(models / "untied.gguf", tmp_path / "out.gguf", "Q4_K_M", threads)
        files.append((tmp_path / "out.gguf").read_bytes())
    assert files[0] == files[1] == files[2]


def test_metadata_is_copied_byte_for_byte(models, tmp_path):
    quantize_gguf(models / "tied.gguf", tmp_path / "out.gguf", "Q5_K_S")
    with mf.read_gguf(models / "tied.gguf") as before, mf.read_gguf(tmp_path / "out.gguf") as after:
        assert list(after.metadata)[-2:] == ["general.quantization_version", "general.file_type"]
        assert after.metadata["general.quantization_version"] == 2 and after.metadata["general.file_type"] == 16
        assert after.metadata["test.strings"] == ["", "ä", "three"] and after.version == 3
        for key, where in before.pairs.items():
            if key not in ("general.file_type", "general.quantization_version"):
                assert after.bytes[after.pairs[key]].tobytes() == before.bytes[where].tobytes(), key
        assert {t.name: t.shape for t in after.tensors.values()} == {t.name: t.shape for t in before.tensors.values()}
        for tensor in after.tensors.values():
            assert tensor.offset % 32 == 0
            if "norm" in tensor.name:
                assert np.array_equal(tensor.data, before.tensors[tensor.name].data)


def test_the_gguf_package_reads_the_file(models, tmp_path):
    quantize_gguf(models / "untied.gguf", tmp_path / "out.gguf", "Q3_K_M")
    reader = gguf.GGUFReader(tmp_path / "out.gguf")
    with mf.read_gguf(tmp_path / "out.gguf") as model:
        assert [t.name for t in reader.tensors] == list(model.tensors)
        for theirs, ours in zip(reader.tensors, model.tensors.values(), strict=True):
            assert theirs.tensor_type.name == ours.format and theirs.data.tobytes() == ours.data.tobytes()


def test_a_tensor_that_has_its_format_is_copied(models, tmp_path):
    quantize_gguf(models / "tied.gguf", tmp_path / "once.gguf", "Q4_K_M")
    quantize_gguf(tmp_path / "once.gguf", tmp_path / "twice.gguf", "Q4_K_M")
    assert (tmp_path / "once.gguf").read_bytes() == (tmp_path / "twice.gguf").read_bytes()


@pytest.mark.parametrize(("n", "count"), [(22, 10), (24, 12), (28, 14), (30, 14), (32, 16), (36, 18)])
def test_half_of_the_layers_get_more_bits(n, count):
    chosen = [i for i in range(n) if use_more_bits(i, n)]
    assert len(chosen) == count and chosen[0] == 0 and chosen[-1] == n - 1


def test_progress_ends_at_the_number_of_weights(models, tmp_path):
    seen = []
    quantize_gguf(
        models / "untied.gguf", tmp_path / "out.gguf", "Q8_0", 1, lambda done, total: seen.append((done, total))
    )
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    with mf.read_gguf(models / "untied.gguf") as model:
        assert seen[-1] == (sum(np.prod(t.shape) for t in model.tensors.values()),) * 2


def small_model(path, arch="llama", layers=1, heads=(4, 4), value=1.0, **metadata):
    """One layer of 256 x 256, all weights `value`; further metadata by keyword, with __ for a dot."""
    writer = gguf.GGUFWriter(path, arch)
    writer.add_block_count(layers)
    writer.add_head_count(heads[0])
    writer.add_head_count_kv(heads[1])
    for key, number in metadata.items():
        writer.add_uint32(key.replace("__", "."), number)
    for name in ("token_embd", "output", "blk.0.attn_q", "blk.0.attn_v"):
        writer.add_tensor(f"{name}.weight", np.full((256, 256), value, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("arch", "layers", "heads", "preset", "format_"),
    [
        ("llama", 80, (64, 8), "Q4_K_S", "Q5_K"),
        ("llama", 80, (64, 8), "Q3_K_S", "Q5_K"),
        ("llama", 80, (64, 64), "Q3_K_S", "Q3_K"),  # the old 65B shares no heads
        ("qwen2", 80, (64, 64), "Q3_K_S", "Q5_K"),
        ("qwen3", 80, (64, 8), "Q3_K_S", "Q3_K"),
        ("llama", 16, (64, 16), "Q2_K", "Q4_K"),
        ("llama", 16, (64, 32), "Q2_K", "Q3_K"),
    ],
)
def test_attn_v_by_the_heads_that_share_it(tmp_path, arch, layers, heads, preset, format_):
    with mf.read_gguf(small_model(tmp_path / "m.gguf", arch, layers, heads)) as model:
        assert tensor_formats(model, preset)["blk.0.attn_v.weight"] == format_


def test_keys_of_a_split_are_dropped_and_the_alignment_is_kept(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_custom_alignment(128)
    writer.add_block_count(1)
    writer.add_head_count(1)
    writer.add_uint16("split.count", 1)
    writer.add_uint16("split.no", 0)
    for i in range(3):
        writer.add_tensor(f"blk.0.ffn_up_{i}.weight", np.full((3, 32), i, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    quantize_gguf(tmp_path / "a.gguf", tmp_path / "out.gguf", "Q4_0")
    with mf.read_gguf(tmp_path / "out.gguf") as model:
        assert "split.count" not in model.metadata and model.metadata["general.alignment"] == 128
        assert all(t.format == "Q4_0" and t.offset % 128 == 0 for t in model.tensors.values())


def test_refusals(tmp_path):
    good = small_model(tmp_path / "good.gguf")
    out = tmp_path / "out.gguf"
    out.write_text("what was there before")
    link = tmp_path / "link.gguf"
    link.symlink_to(good)
    for target, preset, kind, message in (
        (out, "Q4_K_X", mf.ArgumentError, "'Q4_K_X' is not a preset"),
        (good, "Q4_0", mf.ArgumentError, "file to read from"),
        (link, "Q4_0", mf.ArgumentError, "file to read from"),
        (tmp_path, "Q4_0", mf.ArgumentError, "is a folder"),
        (tmp_path / "missing" / "out.gguf", "Q4_0", mf.ArgumentError, "could not be written"),
    ):
        with pytest.raises(kind, match=message):
            quantize_gguf(good, target, preset)
    with pytest.raises(mf.ModelMissingError):
        quantize_gguf(tmp_path / "none.gguf", out, "Q4_0")
    for options, kind, message in (
        ({"arch": "falcon"}, mf.UnsupportedError, "falcon"),
        ({"llama__expert_count": 8}, mf.UnsupportedError, "8 experts"),
        ({"split__count": 2}, mf.UnsupportedError, "2 file"),
        ({"heads": (4, 0)}, mf.GgufError, "head_count_kv"),
        ({"value": np.nan}, mf.ArgumentError, "'output.weight' cannot be quantized.*NaN"),
        ({"value": 1e9}, mf.ArgumentError, "'output.weight' cannot be quantized.*too large for Q6_K"),
    ):
        with pytest.raises(kind, match=message):
            quantize_gguf(small_model(tmp_path / "bad.gguf", **options), out, "Q4_0")
    assert out.read_text() == "what was there before"
    assert {path.name for path in tmp_path.iterdir()} == {"good.gguf", "out.gguf", "link.gguf", "bad.gguf"}


def test_the_command(models, tmp_path, capsys):
    out = tmp_path / "out.gguf"
    assert main(["quantize", str(models / "untied.gguf"), str(out), "--preset", "Q4_K_M", "--threads", "2"]) == 0
    printed = capsys.readouterr().out
    assert str(out) in printed and " MB -> " in printed and "tensors Q4_K" in printed
    quantize_gguf(models / "untied.gguf", tmp_path / "same.gguf", "Q4_K_M")
    assert out.read_bytes() == (tmp_path / "same.gguf").read_bytes()
    assert main(["quantize", str(models / "untied.gguf"), str(out), "--preset", "Q4"]) == 1
    assert "Q4_K_M" in capsys.readouterr().err
    assert main(["quantize", str(out), str(out), "--preset", "Q8_0"]) == 1
    assert main(["quantize", str(tmp_path / "none.gguf"), str(out), "--preset", "Q8_0"]) == 1
