"""The course's model: as it is, and in presets that are made once."""

import os

import minfer_lib as mf
from minfer_lib import model_files
from minfer_lib.lessons import course_model


def test_a_preset_of_the_course_model_is_made_once(own):
    assert course_model() == model_files.resolve(model_files.BUNDLED)
    made = course_model("Q4_K_M")
    assert made.parent == own / "models" and made.name.endswith("-Q4_K_M.gguf")
    stamp = made.stat().st_mtime_ns
    assert course_model("Q4_K_M") == made and made.stat().st_mtime_ns == stamp
    os.utime(made, (0, 0))
    assert course_model("Q4_K_M").stat().st_mtime_ns != 0, "an older one is made again"
    with mf.read_gguf(made) as gguf:
        assert gguf.metadata["general.file_type"] == 15
