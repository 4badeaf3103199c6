"""The GPU operations that the kernels are written with: each once, with what it means.

A GPU kernel of this package is plain Python over these names. `device.py` binds them to PTX instructions and compiles
the kernel for the GPU; whoever runs a kernel on the CPU binds those that depend on where a thread stands (the second
half of this file) to a simulated one. The first half needs no binding: the function's own body is its meaning.

A word is 32 bits (uint32). Byte 0 of a word is its lowest byte.
"""

from __future__ import annotations

import numpy as np

from minfer_lib.errors import UnsupportedError

# What an operation does with its operands alone
#
# load and stream read what nobody writes while the kernel runs: weights. They may be done early, before previous_done.
# What a kernel ahead may still be writing, as the quantizer writes activations, is read by coherent.


def load2(array, at):
    """uint32: the two bytes at byte `at` of array, uint8[:]; `at` is even. PTX: ld.global.nc.u16."""
    return np.uint32(array[at : at + 2].view(np.uint16)[0])


def load4(array, at):
    """uint32: the word at byte `at` of array, uint8[:]; `at` is a multiple of 4. PTX: ld.global.nc.u32."""
    return array[at : at + 4].view(np.uint32)[0]


def load8(array, at):
    """Two words from byte `at` of array, uint8[:]; `at` is a multiple of 8. PTX: ld.global.nc.v2.u32."""
    return tuple(array[at : at + 8].view(np.uint32))


def load16(array, at):
    """Four words from byte `at` of array, uint8[:]; `at` is a multiple of 16. PTX: ld.global.nc.v4.u32."""
    return tuple(array[at : at + 16].view(np.uint32))


def stream4(array, at):
    """load4, and the word is not kept in the L1 cache: weights are read once. PTX: ld.global.nc.L1::no_allocate.u32."""
    return load4(array, at)


def stream8(array, at):
    """load8, not kept in the L1 cache."""
    return load8(array, at)


def stream16(array, at):
    """load16, not kept in the L1 cache."""
    return load16(array, at)


def coherent4(array, at):
    """load4, of memory that kernels write; it stays behind the `previous_done` ahead of it. PTX: ld.global.u32."""
    return load4(array, at)


def coherent8(array, at):
    """load8, of memory that kernels write. PTX: ld.global.v2.u32."""
    return load8(array, at)


def coherent16(array, at):
    """load16, of memory that kernels write. PTX: ld.global.v4.u32."""
    return load16(array, at)


def store4(array, at, word):
    """Write a word's four bytes at byte `at` of array, uint8[:]; `at` is a multiple of 4. PTX: st.global.u32."""
    array[at : at + 4].view(np.uint32)[0] = int(word) & 0xFFFFFFFF


def dp4a(a, b, c):
    """int32: c + a0*b0 + a1*b1 + a2*b2 + a3*b3, where a and b are words of four int8. PTX: dp4a.s32.s32."""
    products = _signed_bytes(a) * _signed_bytes(b)
    return np.int32(int(c) + int(products.sum()))


def _signed_bytes(word):
    return np.array([word], np.uint32).view(np.int8).astype(np.int32)


def bits(word, at, n):
    """int32: the n < 32 bits of a word from bit `at` on, as a number >= 0. PTX: bfe.u32."""
    return np.int32((int(word) >> int(at)) & ((1 << n) - 1))


def signed_byte(word, i):
    """int32: byte i of a word, read as int8. PTX: bfe.s32."""
    return np.int32(_signed_bytes(word)[i])


def byte_perm(low, high, selector):
    """uint32: four bytes chosen out of eight. Digit i of the hexadecimal selector says which byte becomes byte i:
    0 to 3 are those of `low`, 4 to 7 those of `high`. PTX: prmt.b32."""
    eight = (int(high) << 32) | int(low)
    return np.uint32(sum(((eight >> 8 * (int(selector) >> 4 * i & 7)) & 255) << 8 * i for i in range(4)))


def funnel_right(low, high, n):
    """uint32: the lower word of the 64 bits high:low shifted right by n modulo 32. PTX: shf.r.wrap.b32.

    funnel_right(x, x, n) rotates x.
    """
    return np.uint32((((int(high) << 32) | int(low)) >> (int(n) & 31)) & 0xFFFFFFFF)


def f16_to_f32(half):
    """float32: the value of the f16 in the lower half of a word. PTX: cvt.f32.f16."""
    return np.float32(np.array([half], np.uint32).view(np.float16)[0])


def f32_to_f16(value):
    """uint32: the bits of the nearest f16, half to even. PTX: cvt.rn.f16.f32."""
    with np.errstate(over="ignore"):
        return np.uint32(np.float32(value).astype(np.float16).view(np.uint16))


def f32_bits(value):
    """uint32: the bits of a float32. PTX: mov.b32."""
    return np.float32(value).view(np.uint32)


def bits_f32(word):
    """float32: the number with these bits. PTX: mov.b32."""
    return np.uint32(word).view(np.float32)


def divide(a, b):
    """float32: a / b, rounded to nearest; x / 0 is infinite. PTX: div.rn.f32."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.float32(a) / np.float32(b)


def round_even(value):
    """int32: the nearest integer, half to even; 0 for NaN. PTX: cvt.rni.s32.f32."""
    return np.int32(0 if np.isnan(value) else np.rint(value))


# What an operation does depends on where the thread stands, or on the others


def block_index():
    """int: which block of the grid. PTX: %ctaid.x."""
    raise _unbound("block_index")


def n_blocks():
    """int: how many blocks the grid has. PTX: %nctaid.x."""
    raise _unbound("n_blocks")


def thread_index():
    """int: which thread of the block; lane = thread % 32, warp = thread // 32. PTX: %tid.x."""
    raise _unbound("thread_index")


def shuffle_down(value, n):
    """float32: `value` of the lane n further in the same warp; a lane without such a one gets its own.

    All 32 lanes call it together. PTX: shfl.sync.down.b32.
    """
    raise _unbound("shuffle_down")


def warp_max(word):
    """uint32: the largest of the 32 lanes' words. All lanes call it together. PTX: redux.sync.max.u32 (sm_80)."""
    raise _unbound("warp_max")


def warp_sum(value):
    """int32: the sum of the 32 lanes' values. All lanes call it together. PTX: redux.sync.add.s32 (sm_80)."""
    raise _unbound("warp_sum")


def staged2(array, at):
    """load2 from the block's staging memory, `shared_bytes`. PTX: ld.shared.u16."""
    return load2(array, at)


def staged4(array, at):
    """load4 from the block's staging memory. PTX: ld.shared.u32."""
    return load4(array, at)


def staged8(array, at):
    """load8 from the block's staging memory. PTX: ld.shared.v2.u32."""
    return load8(array, at)


def staged16(array, at):
    """load16 from the block's staging memory. PTX: ld.shared.v4.u32."""
    return load16(array, at)


def shared_bytes():
    """uint8[n], one array for all threads of a block, at a multiple of 16; the launch says how many bytes it has."""
    raise _unbound("shared_bytes")


def shared_arrival():
    """uint64[1], one for all threads of a block: what `start_copy` and `wait_copy` agree by. PTX: an mbarrier."""
    raise _unbound("shared_arrival")


def start_copy(stage, array, at, n, arrival):
    """One thread, once: start copying n bytes from byte `at` of array to the beginning of stage, and go on at once.

    `at` and n are multiples of 16. PTX: mbarrier.init, mbarrier.arrive.expect_tx, cp.async.bulk (sm_90).
    """
    raise _unbound("start_copy")


def wait_copy(arrival):
    """Wait until all the bytes are there. A barrier must come between start_copy and this. PTX: mbarrier.try_wait."""
    raise _unbound("wait_copy")


def shared_f32(n):
    """float32[n], n <= 128, one array for all threads of a block. It holds anything at first. PTX: .shared."""
    raise _unbound("shared_f32")


def next_may_start():
    """The kernel behind this one in the stream may start, as soon as all blocks have come here, if it was launched so.

    It must call `previous_done` before it touches what this one writes. PTX: griddepcontrol.launch_dependents (sm_90).
    """
    raise _unbound("next_may_start")


def previous_done():
    """Wait until the kernel before this one has ended and all that it wrote can be read. PTX: griddepcontrol.wait."""
    raise _unbound("previous_done")


def barrier():
    """No thread of the block goes on before all have come here. PTX: bar.sync."""
    raise _unbound("barrier")


def _unbound(name):
    return UnsupportedError(
        f"gpu.ops.{name} has a meaning only in a running kernel: compile the kernel with gpu.device, or simulate it."
    )
