"""Matrices and activations for the tests of the GPU kernels, and what their product is, by the CPU's own functions."""

import numpy as np

import minfer_lib as mf
from minfer_lib.gpu import q4_k_steps
from minfer_lib.gpu.units import UNITS
from minfer_lib.gpu.units_k import Q6_K_PLANES

# every unit, with its format
ALL = {name: (name, unit) for name, unit in UNITS.items()} | {
    "Q6_K planes": ("Q6_K", Q6_K_PLANES),
    "seed": ("Q4_K", q4_k_steps.SEED),
    "wide": ("Q4_K", q4_k_steps.WIDE),
    "sums": ("Q4_K", q4_k_steps.SUMS),
}


def random_matrix(name, n_out, n_in, rng, exact=False):
    """uint8[n_out, row_bytes]: any bytes as codes and scales; the f16 fields tame, or (exact) 1 and -1."""
    row = mf.FORMATS[name]
    w = rng.integers(0, 256, (n_out, row.row_bytes(n_in)), np.uint8)
    blocks = w.reshape(-1).view(row.dtype)
    for field in {"d", "dmin", "m"} & set(row.dtype.names):
        blocks[field] = rng.choice([-1, 1], blocks.shape) if exact else rng.uniform(-0.02, 0.02, blocks.shape)
    return w


def exact_activations(n_in, rng):
    """float32[n_in] of small integers, one in 32 of them ±127: then d is 1, and the codes are the values."""
    x = rng.integers(-3, 4, (n_in // 32, 32)).astype(np.float32)
    x[np.arange(len(x)), rng.integers(0, 32, len(x))] = rng.choice([-127, 127], len(x))
    return x.ravel()


def decoded(name, w):
    """float64[n_out, n_in]"""
    return np.stack([mf.dequantize(name, row) for row in w]).astype(np.float64)


def magnitudes(name, w):
    """float64[n_out, n_in]: what the terms of a value add up to without their signs, to bound the rounding by."""
    total, fields = 0, {"d", "dmin", "m"} & set(mf.FORMATS[name].dtype.names)
    for field in fields:
        part = w.copy()
        blocks = part.reshape(-1).view(mf.FORMATS[name].dtype)
        for other in fields - {field}:
            blocks[other] = 0
        total = total + np.abs(decoded(name, part))
    return total


def quantized(x):
    """float64[n_in]: the activations as the blocks hold them."""
    return mf.dequantize("Q8_0_PAD40", mf.quantize_activations("Q8_0_PAD40", x)).astype(np.float64)


def pad(x, block):
    """The bytes of mf.quantize_activations("Q8_0_PAD40", x), laid out as an ActivationBlock says, zeros between."""
    packed = mf.quantize_activations("Q8_0_PAD40", x).reshape(-1, 40)
    out = np.zeros((len(packed), block.block_bytes), np.uint8)
    out[:, :2] = packed[:, :2]
    out[:, block.sum_at : block.sum_at + 4] = packed[:, 36:]
    out[:, block.codes_at : block.codes_at + 32] = packed[:, 4:36]
    return out.ravel()


def assert_product(out, name, w, x, steps):
    """out is w @ x, within what float32 sums of `steps` units a lane can lose.

    A unit rounds at most 8 times, the decoder 3 times, and a result is the sum of steps units, 5 shuffles, 32 warps.
    """
    bound = (8 + 3 + steps + 5 + 32) * 2.0**-24 * (magnitudes(name, w) @ np.abs(x))
    error = np.abs(out - decoded(name, w) @ x)
    assert np.all(error <= bound), (name, (error / bound).max())
