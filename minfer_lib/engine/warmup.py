"""Compile what a model needs, once, under a progress bar."""

from __future__ import annotations

from tqdm.auto import tqdm

from minfer_lib.engine.session import Model
from minfer_lib.matmul.tiles import tiles_for
from minfer_lib.model.program import forward_job
from minfer_lib.native.pool import job_address
from minfer_lib.quantize.activations import rows_quantizer


def warmup(model: Model) -> None:
    """Compile the model's kernels, or read them from numba's cache; then run one token through them.

    Only the formats that the model holds are compiled. Where all is cached the bar is too quick to appear.
    """
    matrices = {matrix.dot: matrix for matrix in model.weights.matrices()}.values()
    tiled = [matrix for matrix in matrices if tiles_for(matrix.dot.format)]
    forms = {matrix.activation for matrix in matrices} - {None}
    steps = [
        *((f"quantize to {form}", lambda form=form: rows_quantizer(form)) for form in sorted(forms)),
        *((f"rows of {matrix.dot.format}", lambda matrix=matrix: matrix.rows_function) for matrix in matrices),
        *((f"tiles of {matrix.dot.format}", lambda matrix=matrix: matrix.tiles_function) for matrix in tiled),
        ("forward pass", lambda: job_address(forward_job)),
        ("first token", lambda: model.session().feed([0])),
    ]
    with tqdm(total=len(steps), desc="compiling", delay=0.5, leave=False, bar_format=_BAR) as bar:
        for name, step in steps:
            bar.set_postfix_str(name)
            step()
            bar.update()


_BAR = "{desc}: {bar} {n_fmt}/{total_fmt} {postfix}"
