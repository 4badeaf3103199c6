"""Compile what a model needs, once, under a progress bar."""

from __future__ import annotations

from tqdm.auto import tqdm

from minfer_lib.engine.session import Model
from minfer_lib.model.run import run_piece
from minfer_lib.native.claims import piece_job_address
from minfer_lib.quantize.activations import rows_quantizer


def warmup(model: Model) -> None:
    """Compile the model's kernels, or read them from numba's cache; then run one token through them.

    Only the formats that the model holds are compiled. Where all is cached the bar is too quick to appear.
    """
    matrices = {matrix.dot: matrix for matrix in model.matrices()}.values()
    formats = {matrix.activation for matrix in matrices} - {None}
    operations = {type(operation): operation for operation, _ in model.operations()}
    steps = [
        *((f"quantize to {name}", lambda name=name: rows_quantizer(name)) for name in sorted(formats)),
        *((f"products of {matrix.dot.format}", lambda matrix=matrix: matrix.compute_address) for matrix in matrices),
        *((kind.__name__, lambda operation=operation: operation.address) for kind, operation in operations.items()),
        ("forward pass", lambda: piece_job_address(run_piece)),
        ("first token", lambda: model.session().feed([0])),
    ]
    with tqdm(total=len(steps), desc="compiling", delay=0.5, leave=False, bar_format=_BAR) as bar:
        for name, step in steps:
            bar.set_postfix_str(name)
            step()
            bar.update()


_BAR = "{desc}: {bar} {n_fmt}/{total_fmt} {postfix}"
