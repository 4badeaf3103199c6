"""What was measured on GPUs that most readers do not have: the reports in data/measurements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from minfer_lib.errors import UnsupportedError

FOLDER = Path(__file__).parents[3] / "data" / "measurements"


def measurements() -> dict[str, dict[str, Any]]:
    """The GPU's name -> what `bench.gpu_kernels.measure` reported there. UnsupportedError without any report."""
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
    if not reports:
        raise UnsupportedError(
            f"there are no measurements in {FOLDER}: they come with the repository. Check it out again."
        )
    return {report["device"]: report for report in reports}


def rows_of(rows: list[dict[str, Any]], **fields: object) -> list[dict[str, Any]]:
    """Those rows of a list in a report that have these fields: rows_of(report["ladder"], format="Q4_K", n_out=3584)."""
    return [row for row in rows if all(row[name] == value for name, value in fields.items())]
