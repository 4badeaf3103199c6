"""Wrong answers that people give. Each must fail its check; the docstring is a word of the message that it must get."""

import numpy as np

import minfer_lib as mf

# dot_q4_0_q8_0


def _blocks(w, a):
    return zip(w.reshape(-1, 18), a.reshape(-1, 34), strict=True)


def _d(block):
    return block[:2].view("<f2").astype(np.float32)[0]


def _codes(block):
    return np.concatenate([block[2:] & 15, block[2:] >> 4]).astype(int) - 8


def _isum(x, y):
    return np.float32((_codes(x) * y[2:].view(np.int8)).sum())


def _row_dot(w, a, codes_of):
    """As it should be, but for the codes that are read from a block of w."""
    total = np.float32(0)
    for x, y in _blocks(w, a):
        total += np.float32((codes_of(x) * y[2:].view(np.int8)).sum()) * _d(x) * _d(y)
    return total


def dot_q4_0_q8_0__neighbours_share_a_byte(w, a):
    """the order"""
    return _row_dot(w, a, lambda x: np.stack([x[2:] & 15, x[2:] >> 4], axis=1).ravel().astype(int) - 8)


def dot_q4_0_q8_0__halves_swapped(w, a):
    """the order"""
    return _row_dot(w, a, lambda x: np.concatenate([x[2:] >> 4, x[2:] & 15]).astype(int) - 8)


def dot_q4_0_q8_0__not_centred(w, a):
    """code - 8"""
    return sum((_isum(x, y) + 8 * y[2:].view(np.int8).sum()) * _d(x) * _d(y) for x, y in _blocks(w, a))


def dot_q4_0_q8_0__minus_eight_in_uint8(w, a):
    """249"""
    return _row_dot(w, a, lambda x: (np.concatenate([x[2:] & 15, x[2:] >> 4]) - np.uint8(8)).astype(int))


def dot_q4_0_q8_0__eight_taken_off_once(w, a):
    """code - 8"""
    total = np.float32(0)
    for x, y in _blocks(w, a):
        total += np.float32(((_codes(x) + 8) * y[2:].view(np.int8)).sum() - 8) * _d(x) * _d(y)
    return total


def dot_q4_0_q8_0__unsigned_activations(w, a):
    """signed"""
    total = np.float32(0)
    for x, y in _blocks(w, a):
        total += np.float32((_codes(x) * y[2:].astype(int)).sum()) * _d(x) * _d(y)
    return total


def dot_q4_0_q8_0__products_in_int8(w, a):
    """widen"""
    return _row_dot(w, a, lambda x: _codes(x).astype(np.int8))


def dot_q4_0_q8_0__big_endian_scales(w, a):
    """low byte first"""
    total = np.float32(0)
    for x, y in _blocks(w, a):
        d_w, d_a = (block[:2].view(">f2").astype(np.float32)[0] for block in (x, y))
        total += _isum(x, y) * d_w * d_a
    return total


def dot_q4_0_q8_0__first_scales_for_all(w, a):
    """scales of its own"""
    return sum(_isum(x, y) for x, y in _blocks(w, a)) * _d(w) * _d(a)


def dot_q4_0_q8_0__pairs_of_blocks(w, a):
    """odd number"""
    total = np.float32(0)
    pairs = list(_blocks(w, a))
    for x, y in pairs if len(pairs) == 1 else pairs[: len(pairs) // 2 * 2]:
        total += _isum(x, y) * _d(x) * _d(y)
    return total


def dot_q4_0_q8_0__scales_multiplied_first(w, a):
    """rounding, in another order"""
    return sum((_isum(x, y) * (_d(x) * _d(y)) for x, y in _blocks(w, a)), np.float32(0))


def dot_q4_0_q8_0__scales_multiplied_as_f16(w, a):
    """the scales were multiplied as f16"""
    return sum(
        (_isum(x, y) * np.float32(np.float16(_d(x)) * np.float16(_d(y))) for x, y in _blocks(w, a)), np.float32(0)
    )


def dot_q4_0_q8_0__in_float64(w, a):
    """rounding, in another order"""
    return np.float32(sum(float(_isum(x, y)) * float(_d(x)) * float(_d(y)) for x, y in _blocks(w, a)))


def dot_q4_0_q8_0__pairwise(w, a):
    """rounding, in another order"""
    return np.sum(np.array([_isum(x, y) * _d(x) * _d(y) for x, y in _blocks(w, a)], np.float32))


def dot_q4_0_q8_0__the_float_loop(w, a):
    """rounding, in another order"""
    total = np.float32(0)
    for x, y in _blocks(w, a):
        for code, activation in zip(_codes(x), y[2:].view(np.int8), strict=True):
            total += (np.float32(code) * _d(x)) * (np.float32(activation) * _d(y))
    return total


def dot_q4_0_q8_0__the_best_kernel(w, a):
    """rounding, in another order"""
    terms = np.zeros(8, np.float32)
    for x, y in _blocks(w, a):  # eight lanes, each with products of its own
        lanes = (_codes(x) * y[2:].view(np.int8)).reshape(8, 4).sum(axis=1).astype(np.float32)
        terms += lanes * (_d(x) * _d(y))
    return np.add.accumulate(terms)[-1]


# block_sum


def _dot(codes, a):
    return int((codes.astype(int) * a).sum())


def block_sum__eight_once(codes, a):
    """not 8"""
    return _dot(codes, a) - 8


def block_sum__eight_a_value(codes, a):
    """where Σa = 1"""
    return _dot(codes, a) - 8 * 32


def block_sum__eight_a_value_that_is_not_zero(codes, a):
    """where Σa = 1"""
    return _dot(codes, a) - 8 * np.count_nonzero(a)


def block_sum__added(codes, a):
    """where Σa = 1"""
    return _dot(codes, a) + 8 * int(a.astype(int).sum())


def block_sum__nothing_taken_off(codes, a):
    """where Σa = 1"""
    return _dot(codes, a)


def block_sum__magnitude_of_the_sum(codes, a):
    """taking it off adds"""
    return _dot(codes, a) - 8 * abs(int(a.astype(int).sum()))


def block_sum__products_in_int8(codes, a):
    """widen"""
    return int((codes.astype(np.int8) * a).astype(int).sum()) - 8 * int(a.astype(int).sum())


def block_sum__a_result_in_int8(codes, a):
    """where Σa = 1"""
    return (codes.astype(np.int8) * a - 8 * a).sum(dtype=np.int8)


# matmul_q4_0


def _rows(w, a, n_out, n_tokens):
    return w.reshape(n_out, -1), a.reshape(n_tokens, -1)


def matmul_q4_0__transposed(w, a, n_out, n_tokens):
    """transposed"""
    weights, tokens = _rows(w, a, n_out, n_tokens)
    out = np.zeros(n_tokens * n_out, np.float32)
    for o in range(n_out):
        for t in range(n_tokens):
            out[o * n_tokens + t] = mf.dot("Q4_0", weights[o], tokens[t])
    return out


def matmul_q4_0__first_token_for_all(w, a, n_out, n_tokens):
    """a row of its own"""
    weights, tokens = _rows(w, a, n_out, n_tokens)
    return np.array([mf.dot("Q4_0", row, tokens[0]) for _ in range(n_tokens) for row in weights], np.float32)


def matmul_q4_0__only_one_token(w, a, n_out, n_tokens):
    """of shape"""
    weights, tokens = _rows(w, a, n_out, n_tokens)
    return np.array([mf.dot("Q4_0", row, tokens[0]) for row in weights], np.float32)


def matmul_q4_0__two_dimensional(w, a, n_out, n_tokens):
    """of shape"""
    weights, tokens = _rows(w, a, n_out, n_tokens)
    return np.array([[mf.dot("Q4_0", row, token) for row in weights] for token in tokens], np.float32)


def matmul_q4_0__one_block_a_row(w, a, n_out, n_tokens):
    """layout fault"""
    out = [mf.dot("Q4_0", w[18 * o :][:18], a[34 * t :][:34]) for t in range(n_tokens) for o in range(n_out)]
    return np.array(out, np.float32)


def matmul_q4_0__summed_over_tokens(w, a, n_out, n_tokens):
    """a row of its own"""
    weights, tokens = _rows(w, a, n_out, n_tokens)
    out = np.zeros(n_tokens * n_out, np.float32)
    for o in range(n_out):
        for token in tokens:
            out[o] += mf.dot("Q4_0", weights[o], token)
    return out


# find_fault


def _checked(format, n_in, n_out, n_tokens, blocks, row_bytes, out_bytes, size=None, values=None, number=4):
    row = mf.FORMATS[format]
    size, values = size or row.block_bytes, values or row.block_values
    if n_in % values:
        return "rows"
    if blocks != n_in // values:
        return "blocks"
    if row_bytes != blocks * size:
        return "stride"
    return "values" if out_bytes == n_tokens * n_out * number else "output"


def find_fault__rows_need_not_be_whole(format, n_in, n_out, n_tokens, blocks, row_bytes, out_bytes):
    """eight and a half"""
    row = mf.FORMATS[format]
    if blocks != n_in // row.block_values:
        return "blocks"
    if row_bytes != blocks * row.block_bytes:
        return "stride"
    return "values" if out_bytes == n_tokens * n_out * 4 else "output"


def find_fault__blocks_of_32(*run):
    """256"""
    return _checked(*run, values=32)


def find_fault__eighteen_bytes_for_all(*run):
    """24 bytes"""
    return _checked(*run, size=18)


def find_fault__activation_rows(*run):
    """nothing is wrong"""
    return _checked(*run, size=34)


def find_fault__one_token(*run):
    """nothing is wrong"""
    return _checked(*run[:3], 1, *run[4:])


def find_fault__f16_outputs(*run):
    """nothing is wrong"""
    return _checked(*run, number=2)


def find_fault__output_first(*run):
    """name the first"""
    *_, n_out, n_tokens, _, _, out_bytes = run
    return "output" if out_bytes != n_tokens * n_out * 4 else _checked(*run)


def find_fault__all_of_them(*run):
    """got"""
    return [_checked(*run)]


def find_fault__a_transposed_output_is_seen(*run):
    """transposed"""
    return "output" if run[3] > 1 else _checked(*run)
