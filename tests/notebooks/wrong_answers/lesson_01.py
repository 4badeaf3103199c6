"""Wrong answers that people give. Each must fail its check; the docstring is a word of the message that it must get."""

import numpy as np

import minfer_lib as mf

# decode_q4_0


def _scale(block):
    return block[:2].view("<f2")[0].astype(np.float32)


def _codes(block):
    return np.concatenate([block[2:] & 15, block[2:] >> 4]).astype(int) - 8


def decode_q4_0__neighbours(block):
    """2j and 2j + 1"""
    codes = np.stack([block[2:] & 15, block[2:] >> 4], axis=1).astype(int) - 8
    return codes.reshape(-1) * _scale(block)


def decode_q4_0__high_half_first(block):
    """low half"""
    codes = np.concatenate([block[2:] >> 4, block[2:] & 15]).astype(int) - 8
    return codes * _scale(block)


def decode_q4_0__without_the_eight(block):
    """subtract 8"""
    return np.concatenate([block[2:] & 15, block[2:] >> 4]) * _scale(block)


def decode_q4_0__minus_eight_in_uint8(block):
    """uint8"""
    return (np.concatenate([block[2:] & 7, block[2:] >> 4 & 7]) - np.uint8(8)) * _scale(block)


def decode_q4_0__wraps_below_zero(block):
    """ints before you subtract"""
    return (np.concatenate([block[2:] & 15, block[2:] >> 4]) - np.uint8(8)) * _scale(block)


def decode_q4_0__big_endian(block):
    """low byte"""
    return _codes(block) * block[:2].view(">f2")[0].astype(np.float32)


def decode_q4_0__scale_always_positive(block):
    """negative"""
    return _codes(block) * abs(_scale(block))


def decode_q4_0__in_half_precision(block):
    """exact"""
    return (_codes(block) * _scale(block)).astype(np.float16)


def decode_q4_0__sixteen_values(block):
    """shape (16,)"""
    return ((block[2:] & 15).astype(int) - 8) * _scale(block)


# unpack_scales


def _all_but(packed, scales=None, mins=None):
    right_scales = [packed[j] & 63 for j in range(4)] + [packed[j + 8] & 15 | packed[j] >> 6 << 4 for j in range(4)]
    right_mins = [packed[j] & 63 for j in range(4, 8)] + [packed[j + 4] >> 4 | packed[j] >> 6 << 4 for j in range(4, 8)]
    return (right_scales[:4] + scales if scales else right_scales), (right_mins[:4] + mins if mins else right_mins)


def unpack_scales__halves_swapped(packed):
    """low half"""
    return _all_but(packed, mins=[packed[j + 8] & 15 | packed[j + 4] >> 6 << 4 for j in range(4)])


def unpack_scales__mins_first(packed):
    """scales 0 to 3"""
    scales, mins = _all_but(packed)
    return mins, scales


def unpack_scales__upper_bits_forgotten(packed):
    """upper two bits of scale"""
    return _all_but(packed, [packed[j + 8] & 15 for j in range(4)], [packed[j + 8] >> 4 for j in range(4)])


def unpack_scales__upper_bits_from_the_same_byte(packed):
    """Those of a min"""
    return _all_but(packed, mins=[packed[j + 8] >> 4 | packed[j] >> 6 << 4 for j in range(4)])


def unpack_scales__upper_bits_not_shifted(packed):
    """16 and 32"""
    return _all_but(packed, scales=[packed[j + 8] & 15 | packed[j] >> 6 for j in range(4)])


def unpack_scales__first_four_not_masked(packed):
    """bits 6 and 7"""
    scales, mins = _all_but(packed)
    return list(packed[:4]) + scales[4:], list(packed[4:8]) + mins[4:]


# tensor_bytes


def _checked(format, shape):
    if shape[-1] % mf.FORMATS[format].block_values:
        raise ValueError(f"{shape[-1]} values are no whole number of blocks")


def tensor_bytes__codes_only(format, shape):
    """a scale too"""
    _checked(format, shape)
    bits = 32 if format == "F32" else int(format[1])
    return int(np.prod(shape)) * bits // 8


def tensor_bytes__always_blocks_of_32(format, shape):
    """block_values"""
    _checked(format, shape)
    n_values = min(32, mf.FORMATS[format].block_values)
    return int(np.prod(shape)) // n_values * mf.FORMATS[format].block_bytes


def tensor_bytes__two_dimensions(format, shape):
    """every dimension"""
    _checked(format, shape)
    return mf.FORMATS[format].row_bytes(int(np.prod(shape[-2:])))


def tensor_bytes__matrices_only(format, shape):
    """one dimension"""
    _checked(format, shape)
    return mf.FORMATS[format].row_bytes(int(np.prod(shape))) if len(shape) > 1 else None


def tensor_bytes__one_size(format, shape):
    """of its own"""
    _checked(format, shape)
    row = mf.FORMATS["Q4_0" if format == "Q4_1" else format]
    return row.row_bytes(int(np.prod(shape)))


def tensor_bytes__at_least_one_row(format, shape):
    """without rows"""
    _checked(format, shape)
    return mf.FORMATS[format].row_bytes(max(1, int(np.prod(shape[:-1]))) * shape[-1])


def tensor_bytes__whole_tensor_divides(format, shape):
    """each row"""
    n_values = int(np.prod(shape))
    if n_values % mf.FORMATS[format].block_values:
        raise ValueError
    return mf.FORMATS[format].row_bytes(n_values)


# find_row


def _found(gguf, token):
    tensor = gguf.tensors["token_embd.weight"]
    n_bytes = mf.FORMATS[tensor.format].row_bytes(tensor.shape[-1])
    return tensor, n_bytes, gguf.metadata["tokenizer.ggml.tokens"].index(token)


def find_row__from_the_start_of_the_tensor(gguf, token):
    """start of the file"""
    _, n_bytes, i = _found(gguf, token)
    return i * n_bytes, n_bytes


def find_row__values_for_bytes(gguf, token):
    """not values"""
    tensor, _, i = _found(gguf, token)
    return tensor.offset + i * tensor.shape[-1], tensor.shape[-1]


def find_row__positions_in_values(gguf, token):
    """as many bytes"""
    tensor, n_bytes, i = _found(gguf, token)
    return tensor.offset + i * tensor.shape[-1], n_bytes


def find_row__first_that_begins_so(gguf, token):
    """be equal"""
    tensor, n_bytes, _ = _found(gguf, token)
    i = next(i for i, text in enumerate(gguf.metadata["tokenizer.ggml.tokens"]) if text.startswith(token))
    return tensor.offset + i * n_bytes, n_bytes


def find_row__the_space_dropped(gguf, token):
    """ĠParis"""
    return find_row__first_equal(gguf, token.lstrip("Ġ"))


def find_row__first_equal(gguf, token):
    """block_values"""
    tensor, _, i = _found(gguf, token)
    n_bytes = tensor.shape[-1] // 32 * 34
    return tensor.offset + i * n_bytes, n_bytes
