"""Wrong answers that people give. Each must fail its check; the docstring is a word of the message that it must get."""

# chunk_bounds


def _bounds(chunk, across, height, rows, down=1, width=1, columns=1):
    r, c = chunk % across * height, chunk // across * width
    return min(r, rows), min(r + height, rows), min(c, columns), min(c + width, columns)


def _up(a, b):
    return -(-a // b)


def chunk_bounds__always_64_rows(chunk, rows, columns, threads):
    """ggml makes them equal"""
    size = 64 if columns == 1 else 16
    return _bounds(chunk, _up(rows, size), size, rows, _up(columns, size), size, columns)


def chunk_bounds__always_16_rows(chunk, rows, columns, threads):
    """at most 64 rows"""
    across, down = _up(rows, 16), _up(columns, 16)
    return _bounds(chunk, across, _up(rows, across), rows, down, _up(columns, down), columns)


def _cut(chunk, rows, columns, threads, few=4, longer=True, vector=True, columns_first=False, down_rounded=False):
    size = 64 if columns == 1 or (vector and rows == 1) else 16
    across, down = _up(rows, size), _up(columns, size)
    if across * down < few * threads or (few < 0 and across * down <= -few * threads):
        across, down = (threads, 1) if rows > columns or not longer else (1, threads)
    height, width = _up(rows, across), _up(columns, down)
    if down_rounded:
        height = rows // across
    r, c = chunk % across * height, chunk // across * width
    if columns_first:
        r, c = chunk // down * height, chunk % down * width
    return min(r, rows), min(r + height, rows), min(c, columns), min(c + width, columns)


def chunk_bounds__no_fallback(chunk, rows, columns, threads):
    """the fallback"""
    return _cut(chunk, rows, columns, threads, few=0)


def chunk_bounds__fallback_at_exactly_four(chunk, rows, columns, threads):
    """just enough"""
    return _cut(chunk, rows, columns, threads, few=-4)


def chunk_bounds__fallback_always_by_rows(chunk, rows, columns, threads):
    """the longer side"""
    return _cut(chunk, rows, columns, threads, longer=False)


def chunk_bounds__columns_first(chunk, rows, columns, threads):
    """rows go first"""
    return _cut(chunk, rows, columns, threads, columns_first=True)


def chunk_bounds__rounded_down(chunk, rows, columns, threads):
    """rounded up"""
    return _cut(chunk, rows, columns, threads, down_rounded=True)


def chunk_bounds__one_row_is_no_vector(chunk, rows, columns, threads):
    """one row is a vector too"""
    return _cut(chunk, rows, columns, threads, vector=False)


# take_chunks


def take_chunks__load_then_store(part, chunks, counter):
    """two steps"""
    taken, chunk = [], part
    while chunk < chunks:
        taken.append(chunk)
        chunk = counter.load()
        counter.store(chunk + 1)
    return taken


def take_chunks__all_from_the_counter(part, chunks, counter):
    """begin with chunk `part`"""
    taken, chunk = [], counter.fetch_add(1)
    while chunk < chunks:
        taken.append(chunk)
        chunk = counter.fetch_add(1)
    return taken


def take_chunks__one_more(part, chunks, counter):
    """begin with chunk `part`"""
    taken, chunk = [], part
    while chunk < chunks:
        taken.append(chunk)
        chunk = counter.fetch_add(1) + 1
    return taken


def take_chunks__first_one_unseen(part, chunks, counter):
    """no chunk when there are only four"""
    taken = [part]
    while (chunk := counter.fetch_add(1)) < chunks:
        taken.append(chunk)
    return taken


def take_chunks__every_so_many(part, chunks, counter):
    """no other thread gets the same number"""
    threads = counter.load()
    return list(range(part, chunks, threads))


def take_chunks__one_too_many(part, chunks, counter):
    """begin with chunk `part`"""
    taken, chunk = [], part
    while chunk <= chunks:
        taken.append(chunk)
        chunk = counter.fetch_add(1)
    return taken


def take_chunks__for_ever(part, chunks, counter):
    """no end"""
    taken, chunk = [], part
    while True:
        taken.append(chunk)
        chunk = counter.fetch_add(1)


# last_counter


def last_counter__the_chunks(chunks, threads):
    """once in vain"""
    return chunks


def last_counter__one_in_vain(chunks, threads):
    """once in vain"""
    return chunks + 1


def last_counter__always_asked(chunks, threads):
    """nobody asks"""
    return chunks + threads


def last_counter__capped_threads(chunks, threads):
    """Nobody asks"""
    return min(chunks, threads) if threads >= chunks else chunks + threads


# largest_chunk


def largest_chunk__mean_speed(rows, speeds, late):
    """the slowest too"""
    return max(1, int(late * rows / len(speeds)))


def largest_chunk__fastest(rows, speeds, late):
    """the slowest too"""
    return max(1, int(late * rows * max(speeds) / sum(speeds)))


def largest_chunk__last_core(rows, speeds, late):
    """min(speeds)"""
    return max(1, int(late * rows * speeds[-1] / sum(speeds)))


def largest_chunk__rounded(rows, speeds, late):
    """29 are late"""
    return max(1, round(late * rows * min(speeds) / sum(speeds)))


def largest_chunk__nothing(rows, speeds, late):
    """one row at least"""
    return int(late * rows * min(speeds) / sum(speeds))


def largest_chunk__all_rows(rows, speeds, late):
    """perfect sharing"""
    return int(late * rows)
