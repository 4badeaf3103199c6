"""Lesson 6: whose rows, whose turn, and how many at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minfer_lib.lessons.shared.check_runner import Case, CheckFailedError, run
from minfer_lib.matmul.chunks import plan


def chunk_bounds(function: Callable) -> None:
    """function(chunk, rows, columns, threads) -> ggml's first row, end of rows, first column, end of columns."""
    cases = [
        ("chunk 3 of a gate projection in decode", (3, 12288, 1, 4),
         "one column: at most 64 rows a chunk. 12288 rows are 192 chunks, and chunk 3 begins at row 192."),
        ("the last chunk of 192", (191, 12288, 1, 14), "chunks go on to the last row: chunk 191 ends at 12288."),
        ("1000 rows, one token, three threads", (1, 1000, 1, 3),
         "16 chunks of at most 64 rows: ggml makes them equal, 1000 / 16 rounded up, 63 rows."),
        ("the last of those chunks", (15, 1000, 1, 3), "the last chunk has what is left: it ends with the matrix."),
        ("chunk 770 of a prefill of 100 tokens", (770, 12288, 100, 8),
         "rows go first: 768 chunks along the rows, so chunk 770 is the third of rows, the second of columns. 100 "
         "columns in 7 chunks are 15 each."),
        ("the last chunk of that prefill", (5375, 12288, 100, 8), "the last columns: 90 to 100, ten of them."),
        ("512 rows, one token, four threads", (2, 512, 1, 4),
         "the fallback: 8 chunks are fewer than 4 · 4, so each thread has one range, 128 rows."),
        ("512 rows, one token, fourteen threads", (13, 512, 1, 14),
         "the fallback rounds up too: 37 rows a thread, and the last has 31."),
        ("8 chunks for two threads", (7, 512, 1, 2), "fewer than 4 · threads: 8 are just enough for two."),
        ("more columns than rows, too few chunks", (2, 32, 48, 3),
         "the fallback cuts the longer side: here the columns. Compare rows and columns."),
        ("one row, 200 tokens, one thread", (1, 1, 200, 1),
         "one row is a vector too: 64 columns a chunk, made equal, 50."),
    ]  # fmt: skip
    run(function, [Case(what, arguments, _bounds(*arguments), cause) for what, arguments, cause in cases])


def _bounds(chunk: int, rows: int, columns: int, threads: int) -> tuple[int, int, int, int]:
    return plan("ggml", rows, columns, threads).bounds(chunk)


class Counter:
    """A word that others change too: after every access they take as many chunks as `others` says next.

    fetch_add(n) adds n and returns what was there before, in one step. load() and store(value) are two.
    """

    def __init__(self, value: int, others: Sequence[int]) -> None:
        self._value, self._others, self._left = value, list(others), 1000

    def fetch_add(self, n: int) -> int:
        before = self._value
        self._value += n
        self._others_go_on()
        return before

    def load(self) -> int:
        value = self._value
        self._others_go_on()
        return value

    def store(self, value: int) -> None:
        self._value = value
        self._others_go_on()

    def _others_go_on(self) -> None:
        self._value += self._others.pop(0) if self._others else 0
        self._left -= 1
        if self._left < 0:
            raise CheckFailedError("1000 accesses of the counter, and no end: a chunk of `chunks` or more is no chunk.")


def take_chunks(function: Callable) -> None:
    """function(part, chunks, counter) -> the chunks that this thread computes, in order; counter has fetch_add(n)."""
    cases = [
        ("one thread alone, five chunks", 0, 5, 1, [],
         "begin with chunk `part`; it is nobody else's. Then take the rest from the counter."),
        ("thread 1 of 3; others take chunks in between", 1, 12, 3, [1, 0, 2, 1, 0, 0],
         "fetch_add returns what was there before, and that is the chunk: no other thread gets the same number. Load "
         "and store are two steps, and others come in between."),
        ("the others were faster: nothing is left to claim", 2, 8, 3, [5] * 9,
         "after its first chunk this thread gets 3 from the counter, then 9: that is no chunk. Stop."),
        ("more threads than chunks", 6, 4, 8, [], "thread 6 of 8 has no chunk when there are only four: test before "
         "you compute the first one, too."),
        ("the counter stands at the last chunk", 0, 9, 8, [3], "chunks are numbered from 0: 8 is the last of nine."),
    ]  # fmt: skip
    run(
        function,
        [
            Case(what, (part, chunks, Counter(start, others)), _taken(part, chunks, Counter(start, others)), cause)
            for what, part, chunks, start, others, cause in cases
        ],
    )


def _taken(part: int, chunks: int, counter: Counter) -> list[int]:
    taken, chunk = [], part
    while chunk < chunks:
        taken.append(chunk)
        chunk = counter.fetch_add(1)
    return taken


def last_counter(function: Callable) -> None:
    """function(chunks, threads) -> where the counter stands at the end."""
    cases = [
        ("192 chunks, 4 threads", 192, 4, "it begins at `threads`, and every thread asks once in vain."),
        ("192 chunks, 1 thread", 192, 1, "one thread asks 192 times: for chunks 1 to 191, and once in vain."),
        ("192 chunks, 14 threads", 192, 14, "chunks - threads claims get a chunk, and `threads` claims get none."),
        ("5 chunks, 4 threads", 5, 4, "one chunk is left to claim; four threads ask in vain."),
        ("as many threads as chunks", 8, 8, "with no chunk beyond the first ones nobody asks: it stays as it began."),
        ("more threads than chunks", 3, 8, "thread 0 stores `threads`, however few chunks there are. Nobody asks."),
    ]
    run(
        function,
        [
            Case(what, (chunks, threads), threads + (chunks if threads < chunks else 0), cause)
            for what, chunks, threads, cause in cases
        ],
    )


def largest_chunk(function: Callable) -> None:
    """function(rows, speeds, late) -> the most rows a chunk may have, at least 1.

    speeds: rows a microsecond of each core. A chunk that any core begins when all others stop must take at most `late`
    times as long as the whole product under perfect sharing.
    """
    cases = [
        ("two equal cores", 12288, (32.0, 32.0), 0.125,
         "perfect sharing takes rows / Σ speeds; a chunk takes its rows / the core's speed."),
        ("one core four times as slow", 12288, (32.0, 32.0, 32.0, 8.0), 0.125,
         "any core may begin the last chunk, the slowest too: its speed counts, not the mean, not the fastest."),
        ("speeds in no order", 4168, (8.0, 2.0, 16.0), 0.25, "the slowest need not be the last: min(speeds)."),
        ("a bound that falls between two whole numbers", 1000, (3.0, 2.0, 2.0), 0.1,
         "28.57 rows would be just right: 28 are in time, 29 are late."),
        ("very little work", 20, (4.0, 1.0), 0.1, "a chunk has one row at least."),
        ("one core", 512, (8.0,), 0.5, "alone it is the slowest and all the others: late · rows."),
    ]  # fmt: skip
    run(
        function,
        [
            Case(what, (rows, speeds, late), max(1, int(late * rows * min(speeds) / sum(speeds))), cause)
            for what, rows, speeds, late, cause in cases
        ],
    )
