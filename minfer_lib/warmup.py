"""Compile what a model needs, once, under a progress bar."""

from __future__ import annotations

import numpy as np
from tqdm.auto import tqdm

from minfer_lib.engine import Model
from minfer_lib.model.forward import STAGES


def warmup(model: Model) -> None:
    """Run one token through the model. Whatever a stage needs is compiled on its way, or read from numba's cache.

    The bar moves each time a kind of stage is done for the first time; where all is cached it is too fast to appear.
    """
    kinds = set(STAGES)
    with tqdm(total=len(STAGES), desc="compiling", unit="stage", delay=0.5, leave=False) as bar:

        def seen(name: str, array: np.ndarray) -> None:
            kind = name.rpartition(".")[2]
            if kind in kinds:
                kinds.remove(kind)
                bar.set_postfix_str(kind, refresh=False)
                bar.update()

        model.session().feed([0], watch=seen)
