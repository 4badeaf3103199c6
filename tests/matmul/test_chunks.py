"""Who computes what: ggml's rules by their tables, and by what must hold for any shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minfer_lib as mf
from minfer_lib.matmul.chunks import POLICIES, even_split, ggml_bounds, ggml_chunks, plan

THREADS = (1, 2, 4, 8, 14)


@pytest.mark.parametrize("threads", THREADS)
def test_a_gate_projection_in_decode_is_192_chunks_of_64_rows(threads):
    cut = plan("ggml", 12288, 1, threads)
    assert (cut.across, cut.down, cut.chunks) == (192, 1, 192)
    assert [cut.bounds(c) for c in range(192)] == [(64 * c, 64 * c + 64, 0, 1) for c in range(192)]
    assert cut.last_counter == 192 + threads


BLOCKS = {  # threads -> blocks of a row of 4096 that each quantizes: 128 of Q8_0, 16 of Q8_K
    1: ([128], [16]),
    2: ([64] * 2, [8] * 2),
    4: ([32] * 4, [4] * 4),
    8: ([16] * 8, [2] * 8),
    14: ([9, 9, 9, 9, 9, 9, 10] * 2, [1, 1, 1, 1, 1, 1, 2] * 2),
}


@pytest.mark.parametrize("threads", THREADS)
def test_blocks_of_x_a_thread(threads):
    for total, sizes in zip((128, 16), BLOCKS[threads], strict=True):
        ranges = [even_split(t, threads, total) for t in range(threads)]
        assert [last - first for first, last in ranges] == sizes
    if threads == 14:
        bounds = [even_split(t, 14, 128)[0] for t in range(14)]
        assert bounds == [0, 9, 18, 27, 36, 45, 54, 64, 73, 82, 91, 100, 109, 118]


@pytest.mark.parametrize(
    "rows, columns, threads, across, down, height, width",
    [
        (12288, 100, 8, 768, 7, 16, 15),
        (12288, 512, 14, 768, 32, 16, 16),
        (1000, 1, 4, 16, 1, 63, 1),
        (1024, 1, 4, 16, 1, 64, 1),
        (1024, 1, 8, 8, 1, 128, 1),
        (1024, 1, 14, 14, 1, 74, 1),
        (512, 1, 2, 8, 1, 64, 1),
        (512, 1, 4, 4, 1, 128, 1),
        (512, 1, 8, 8, 1, 64, 1),
        (512, 1, 14, 14, 1, 37, 1),
        (1, 200, 1, 1, 4, 1, 50),
        (48, 48, 3, 1, 3, 48, 16),  # as many rows as columns: the columns are cut
    ],
)
def test_ggml_cuts_shapes_like_this(rows, columns, threads, across, down, height, width):
    assert tuple(ggml_chunks(rows, columns, threads)) == (across, down)
    assert ggml_bounds(0, across, down, rows, columns) == (0, height, 0, width)


def test_the_last_column_chunk_of_100_tokens_has_ten():
    cut = plan("ggml", 12288, 100, 8)
    assert cut.chunks == 5376 and cut.bounds(5375) == (12272, 12288, 90, 100)
    assert cut.bounds(769) == (16, 32, 15, 30)  # rows go first


@given(
    policy=st.sampled_from(list(POLICIES)),
    rows=st.integers(1, 300),
    columns=st.integers(1, 70),
    threads=st.integers(1, 40),
    size=st.none() | st.integers(1, 90),
)
def test_every_output_is_in_exactly_one_chunk(policy, rows, columns, threads, size):
    cut = plan(policy, rows, columns, threads, size if policy == "ggml" else None)
    times = np.zeros((rows, columns), int)
    for chunk in range(cut.chunks):
        r0, r1, c0, c1 = cut.bounds(chunk)
        assert 0 <= r0 <= r1 <= rows and 0 <= c0 <= c1 <= columns
        times[r0:r1, c0:c1] += 1
    assert (times == 1).all()


@given(rows=st.integers(1, 20_000), columns=st.integers(1, 600), threads=st.integers(1, 64))
def test_chunks_are_at_most_as_large_as_ggml_says(rows, columns, threads):
    cut = plan("ggml", rows, columns, threads)
    r0, r1, c0, c1 = cut.bounds(0)
    if cut.chunks >= 4 * threads:
        assert max(r1 - r0, c1 - c0) <= (64 if 1 in (rows, columns) else 16)
    else:
        assert cut.chunks == threads


@given(total=st.integers(0, 10_000), parts=st.integers(1, 200))
def test_an_even_split_differs_by_at_most_one(total, parts):
    ranges = [even_split(p, parts, total) for p in range(parts)]
    assert [first for first, _ in ranges[1:]] == [last for _, last in ranges[:-1]]
    assert ranges[0][0] == 0 and ranges[-1][1] == total
    sizes = {last - first for first, last in ranges}
    assert max(sizes) - min(sizes) <= 1


def test_with_as_many_threads_as_chunks_nobody_asks():
    assert plan("fallback", 512, 1, 14).last_counter == plan("even", 512, 1, 14).last_counter == 14
    assert plan("ggml", 512, 1, 2).last_counter == 8 + 2


@pytest.mark.parametrize(
    "arguments", [("best", 8, 1, 1), ("ggml", 0, 1, 1), ("ggml", 8, 1, 0), ("even", 8, 1, 1, 4), ("ggml", 8, 1, 1, 0)]
)
def test_what_cannot_be_planned_is_refused(arguments):
    with pytest.raises(mf.ArgumentError):
        plan(*arguments)
