"""Numbers as the figures write them."""

from __future__ import annotations

import numpy as np


def shown(value: object) -> str:
    """Write a number with a real minus sign; of a float at most five digits."""
    text = f"{value:.5g}" if isinstance(value, (float, np.floating)) else str(value)
    return text.replace("-", "−")


def counted(n: int, what: str) -> str:
    """Write "1 lane", "2 lanes", "1,024 lanes"."""
    return f"{n:,} {what}{'s' * (n != 1)}"
