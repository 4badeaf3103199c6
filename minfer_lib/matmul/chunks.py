"""Who computes what: how the rows of a matrix are shared out among workers."""

from minfer_lib.jit import kernel


@kernel
def even_split(part, parts, total):
    """Rows [first, last) of worker `part`: one range each, sizes differing by at most one (seed 1, chunk)."""
    return total * part // parts, total * (part + 1) // parts
