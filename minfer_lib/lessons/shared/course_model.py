"""The model whose bytes the lessons look at: the course's own, in F16 and in presets made from it."""

from __future__ import annotations

from pathlib import Path

from tqdm.auto import tqdm

from minfer_lib import model_files
from minfer_lib.native.cpus import cpu_threads
from minfer_lib.quantize.convert import quantize_gguf


def course_model(preset: str | None = None) -> Path:
    """The course's model as it is, or in a preset such as "Q4_K_M", made from it once and kept beside the models.

    Raises ModelMissingError (it is not in the repository), ArgumentError (no such preset, or no room to write).
    """
    source = model_files.resolve(model_files.BUNDLED)
    if preset is None:
        return source
    target = model_files.models_dir() / f"{source.stem.removesuffix('-f16')}-{preset}.gguf"
    if not target.is_file() or target.stat().st_mtime < source.stat().st_mtime:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tqdm(desc=f"{source.name} to {preset}", unit=" weights", unit_scale=True, delay=1, leave=False) as bar:

            def progress(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            quantize_gguf(source, target, preset, cpu_threads(), progress)
    return target
