"""Fixtures for lesson 4: traces of kernels that multiply tiles."""

import numpy as np
import pytest
from lesson_cases import rows_of
from numba import njit

from minfer_lib.lessons import tile_operands
from minfer_lib.matmul.tile_sums import SHAPES_32, SHAPES_256, sums_32_amx, sums_256_amx
from minfer_lib.simd.amx import tile_release, tile_shapes
from minfer_lib.simd.step import step


def a_block(codes, panel, sums):
    tile_shapes(SHAPES_32, 0)
    sums_32_amx(codes, panel, 0, sums)
    tile_release()


def a_super_block(codes, panel, sums):
    tile_shapes(SHAPES_256, 0)
    sums_256_amx(codes, panel, 0, sums)
    tile_release()


@pytest.fixture
def block():
    """(trace of a Q4_0 block, what its cells must be)"""
    w, a = rows_of("Q4_0")
    sums = np.zeros(1024, np.uint8)
    trace = step(njit(a_block), *tile_operands("Q4_0", w, a), sums)
    codes = np.concatenate([w[:, 2:18] & 15, w[:, 2:18] >> 4], axis=1).astype(int) - 8
    return trace, codes @ a[:, 2:34].view(np.int8).astype(int).T, sums.view(np.int32).reshape(16, 16)


@pytest.fixture
def super_block():
    return step(njit(a_super_block), *tile_operands("Q4_K", *rows_of("Q4_K")), np.zeros(2048, np.uint8))
