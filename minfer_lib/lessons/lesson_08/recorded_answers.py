"""What llama.cpp computed from the course's models: recorded, to compare with where it is not installed.

data/golden/README.md says how the files were made.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from minfer_lib import model_files
from minfer_lib.engine.session import Model
from minfer_lib.errors import ModelMissingError

_FILES = {
    model_files.MODELS[model_files.DEFAULT].filename: "smollm2_135m_q4_1.json",
    "austen-f16.gguf": "austen_f16.json",
}


@dataclass(frozen=True)
class Recorded:
    """A prompt, and what llama.cpp made of it with two threads."""

    prompt: str
    ids: list[int]
    greedy: list[int]  # the tokens that it chose
    margin: list[float]  # at each of them, how far its highest logit stood above the second
    logits_std: float  # of the logits after the prompt


def recorded(model: Model) -> list[Recorded]:
    """All prompts that were recorded for this model. ModelMissingError for a model without any."""
    name = model.gguf.path.name
    folder = model_files.resolve(model_files.BUNDLED).parents[1] / "golden"
    if name not in _FILES:
        raise ModelMissingError(f"no numbers of llama.cpp were recorded for {name}; there are for {', '.join(_FILES)}.")
    cases = json.loads((folder / _FILES[name]).read_text(encoding="utf-8"))
    return [Recorded(**{field: case[field] for field in Recorded.__dataclass_fields__}) for case in cases]
