"""Who computes what: how the rows of a matrix are shared out among workers."""


def even_split(part: int, parts: int, total: int) -> tuple[int, int]:
    """Rows [first, last) of worker `part`: one range each, sizes differing by at most one (seed 1, chunk)."""
    return total * part // parts, total * (part + 1) // parts
