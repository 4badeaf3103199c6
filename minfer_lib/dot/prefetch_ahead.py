"""How far ahead of the block that is computed the kernels ask memory for the next ones."""

from minfer_lib.native.jit import inlined
from minfer_lib.simd.ops import prefetch

# Bytes from the block that is computed to the one that is asked for: more than the memory delivers while one request is
# under way. 8 to 16 KB were best where it was measured, 2 KB too late; `minfer bench --kernels` measures again.
AHEAD = 8192


@inlined
def prefetch_lines(w, at, n_bytes):
    """Ask for the cache lines that n_bytes bytes from byte `at` on begin in."""
    for line in range(0, n_bytes, 64):
        prefetch(w, at + line)


@inlined
def four_rows_ahead(w_at, row_bytes):
    """Byte to prefetch first for four rows: memory is read through them end to end, and the fourth begins three on."""
    return w_at + 3 * row_bytes + AHEAD
