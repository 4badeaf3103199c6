"""Merging: neighbouring symbols become one, the best pair first. What both kinds of vocabulary do with a word."""

import heapq
from collections.abc import Callable, Iterable


def merge(symbols: Iterable[str], rank: Callable[[str, str], float | None]) -> list[str]:
    """Merge neighbours until no two may: the lowest rank first, the leftmost of equals. O(n log n).

    rank: of two neighbours, or None where they may not be merged. Source: llama.cpp llama-vocab.cpp,
    llm_tokenizer_bpe_session and llm_tokenizer_spm_session.
    """
    symbols = list(symbols)
    end = len(symbols)
    # A linked list: a merge grows the left symbol and takes the right one out of the chain.
    before, after = list(range(-1, end - 1)), list(range(1, end + 1))
    queue: list[tuple[float, int]] = []

    def rank_at(left: int) -> float | None:
        """Rank of the pair that begins at `left`, as it is now."""
        if left < 0 or not symbols[left] or after[left] == end:
            return None
        return rank(symbols[left], symbols[after[left]])

    def offer(left: int) -> None:
        found = rank_at(left)
        if found is not None:
            heapq.heappush(queue, (found, left))

    for left in range(end - 1):
        offer(left)
    while queue:
        promised, left = heapq.heappop(queue)
        if rank_at(left) != promised:  # one of the two was merged with another since
            continue
        right = after[left]
        symbols[left] += symbols[right]
        symbols[right] = ""
        after[left] = after[right]
        if after[left] < end:
            before[after[left]] = left
        offer(before[left])
        offer(left)
    return [symbol for symbol in symbols if symbol]
