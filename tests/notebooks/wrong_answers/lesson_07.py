"""Wrong answers that people give. Each must fail its check; the docstring is a word of the message that it must get."""

import numpy as np

import minfer_lib as mf

# dp4a


def _bytes(word):
    return [word >> 8 * i & 255 for i in range(4)]


def _signed(word):
    return [b - 256 * (b > 127) for b in _bytes(word)]


def _wrapped(total):
    return (total + 2**31) % 2**32 - 2**31


def dp4a__the_words_themselves(a, b, c):
    """bytes of the same position meet"""
    return _wrapped(a * b + c)


def dp4a__other_order(a, b, c):
    """the lowest of a word"""
    return _wrapped(sum(p * q for p, q in zip(_signed(a), _signed(b)[::-1], strict=True)) + c)


def dp4a__without_c(a, b, c):
    """c is where the sum begins"""
    return _wrapped(sum(p * q for p, q in zip(_signed(a), _signed(b), strict=True)))


def dp4a__unsigned(a, b, c):
    """the bytes are signed"""
    return _wrapped(sum(p * q for p, q in zip(_bytes(a), _bytes(b), strict=True)) + c)


def dp4a__one_side_unsigned(a, b, c):
    """the bytes are signed"""
    return _wrapped(sum(p * q for p, q in zip(_bytes(a), _signed(b), strict=True)) + c)


def dp4a__products_in_int8(a, b, c):
    """make the bytes ints"""
    p, q = (np.array([word], np.uint32).view(np.int8) for word in (a, b))
    return _wrapped(int((p * q).sum()) + c)


def dp4a__without_wrapping(a, b, c):
    """wraps around"""
    return sum(p * q for p, q in zip(_signed(a), _signed(b), strict=True)) + c


def dp4a__wraps_at_the_top_only(a, b, c):
    """at both ends"""
    total = sum(p * q for p, q in zip(_signed(a), _signed(b), strict=True)) + c
    return total - 2**32 if total >= 2**31 else total


# owner


def _owner(row, unit, warps, rows, threads=None, first=None):
    row_warps = warps // rows
    thread = unit % (threads or 32 * row_warps)
    warp = (row % rows * row_warps if first is None else first) + thread // 32
    return row // rows, warp, thread % 32, unit // 8, unit % 8


def owner__row_is_the_block(row, unit, warps, rows):
    """row 6 is in block 1"""
    return row, *_owner(row, unit, warps, rows)[1:]


def owner__all_threads_share(row, unit, warps, rows):
    """32 lanes share it"""
    return _owner(row, unit, warps, rows, threads=32 * warps)


def owner__first_warp_zero(row, unit, warps, rows):
    """so warp 2's"""
    return _owner(row, unit, warps, rows, first=0)


def owner__a_warp_a_row(row, unit, warps, rows):
    """four warps share a row"""
    return _owner(row, unit, warps, rows, first=row % rows) if rows > 1 else _owner(row, unit, warps, rows)


def owner__units_in_pieces(row, unit, warps, rows):
    """Thread 100 is lane 4"""
    return row // rows, unit // 8 % warps, unit % 32, unit // 8, unit % 8


def owner__not_in_turn(row, unit, warps, rows):
    """256 threads take the units in turn"""
    return row // rows, unit // 32, unit % 32, unit // 8, unit % 8


def owner__block_of_the_thread(row, unit, warps, rows):
    """Super-block 64"""
    block, warp, lane, _, sub = _owner(row, unit, warps, rows)
    return block, warp, lane, (32 * warp + lane) // 8, sub


# launched


def _launched(n_out, n_in, warps, rows, up=True, sharing=None, unit=32):
    blocks = -(-n_out // rows) if up else n_out // rows
    return blocks * 32 * warps, max(0, (sharing or 32 * warps // rows) - n_in // unit)


def launched__rounded_down(n_out, n_in, warps, rows):
    """rounded up"""
    return _launched(n_out, n_in, warps, rows, up=False)


def launched__a_block_a_row(n_out, n_in, warps, rows):
    """896 blocks"""
    return n_out * 32 * warps, _launched(n_out, n_in, warps, rows)[1]


def launched__all_threads_share(n_out, n_in, warps, rows):
    """none is idle"""
    return _launched(n_out, n_in, warps, rows, sharing=32 * warps)


def launched__negative_idle(n_out, n_in, warps, rows):
    """more than 256 threads"""
    return _launched(n_out, n_in, warps, rows)[0], 32 * warps // rows - n_in // 32


def launched__super_blocks(n_out, n_in, warps, rows):
    """592 units"""
    return _launched(n_out, n_in, warps, rows, unit=256)


def launched__idle_of_the_grid(n_out, n_in, warps, rows):
    """the others are idle"""
    threads, idle = _launched(n_out, n_in, warps, rows)
    return threads, idle * n_out


def launched__warps_are_not_lanes(n_out, n_in, warps, rows):
    """8 · 32 threads"""
    return -(-n_out // rows) * warps, _launched(n_out, n_in, warps, rows)[1]


# warp_sum


def warp_sum__four_steps(value, shuffle_down):
    """must reach lane 0"""
    for n in (16, 8, 4, 2):
        value = value + shuffle_down(value, n)
    return value + 0 * shuffle_down(value, 1)


def warp_sum__replaced(value, shuffle_down):
    """add what comes to what is there"""
    for n in (16, 8, 4, 2, 1):
        value = shuffle_down(value, n)
    return value


def warp_sum__always_one(value, shuffle_down):
    """must reach lane 0"""
    for _ in range(5):
        value = value + shuffle_down(value, 1)
    return value


def warp_sum__all_at_once(value, shuffle_down):
    """lane 0: 1, right; shuffles: 0, needed 5"""
    return value.sum() + 0 * value


def warp_sum__lane_after_lane(value, shuffle_down):
    """five are enough"""
    total = value
    for n in range(1, 32):
        total = total + shuffle_down(value, n)
    return total


def warp_sum__sum_of_the_first(value, shuffle_down):
    """the sums of the step before"""
    first = value
    for n in (16, 8, 4, 2, 1):
        value = value + shuffle_down(first, n)
    return np.where(first[0] + first[31] > 0, first[0] + first[31], value)


# find_culprit


def _parts():
    draw = np.random.default_rng(1)
    return (
        np.float16(0.01), draw.integers(0, 256, 128).astype(np.uint8), draw.integers(0, 256, 64).astype(np.uint8),
        draw.integers(-60, 60, 16).astype(np.int8),
    )  # fmt: skip


def _off(block, kernel):
    a = np.random.default_rng(2).standard_normal(256).astype(np.float32)
    products = mf.dequantize("Q6_K", block).astype(float) * a
    return not abs(kernel(block, a) - products.sum()) < 1e-5 * abs(products).sum()


def find_culprit__always_the_kernel(make, kernel):
    """look at what make returns"""
    return "kernel"


def find_culprit__always_the_generator(make, kernel):
    """allow for rounding"""
    return "generator"


def find_culprit__exact(make, kernel):
    """allow for rounding"""
    block = make(*_parts())
    if block.view(mf.FORMATS["Q6_K"].dtype)["d"][0] != _parts()[0]:
        return "generator"
    a = np.random.default_rng(2).standard_normal(256).astype(np.float32)
    return "neither" if kernel(block, a) == float((mf.dequantize("Q6_K", block) * a).sum()) else "kernel"


def find_culprit__positive_scales(make, kernel):
    """both signs"""
    d, ql, qh, scales = _parts()
    block = make(d, ql, qh, abs(scales))
    if block.view(mf.FORMATS["Q6_K"].dtype)["d"][0] != d:
        return "generator"
    return "kernel" if _off(block, kernel) else "neither"


def find_culprit__zero_high_bits(make, kernel):
    """random qh"""
    d, ql, qh, scales = _parts()
    block = make(d, ql, 0 * qh, scales)
    if block.view(mf.FORMATS["Q6_K"].dtype)["d"][0] != d:
        return "generator"
    return "kernel" if _off(block, kernel) else "neither"


def find_culprit__only_d(make, kernel):
    """ql, qh, scales and d"""
    d, ql, qh, scales = _parts()
    block = make(d, ql, qh, scales)
    if block.view(mf.FORMATS["Q6_K"].dtype)["d"][0] != d:
        return "generator"
    return "kernel" if _off(block, kernel) else "neither"
