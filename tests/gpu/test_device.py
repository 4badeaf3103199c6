"""What a machine without a GPU, or without numba-cuda, is told."""

import sys

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.cli import main
from minfer_lib.gpu import device, ops
from minfer_lib.gpu.matvec import Matrix


@pytest.fixture
def without_numba_cuda(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    device.cuda.cache_clear()
    yield
    device.cuda.cache_clear()


def test_the_error_says_what_to_install(without_numba_cuda, capsys):
    assert not device.has_gpu()
    with pytest.raises(mf.UnsupportedError, match=r"requirements.lock -e .\.\[gpu\]"):
        Matrix("Q4_K", np.zeros((1, 144), np.uint8))
    assert main(["bench", "--gpu"]) == 1
    assert 'pip install -c requirements.lock -e ".[gpu]"' in capsys.readouterr().err


def test_a_machine_without_a_gpu_says_so():
    if device.has_gpu():
        pytest.skip("this machine has a GPU")
    with pytest.raises(mf.UnsupportedError, match="numba-cuda|NVIDIA GPU"):
        device.cuda()


@pytest.mark.parametrize("name", ["thread_index", "shuffle_down", "barrier", "start_copy", "previous_done"])
def test_an_operation_that_needs_a_running_kernel_says_so(name):
    operation = getattr(ops, name)
    with pytest.raises(mf.UnsupportedError, match=name):
        operation(*[0] * operation.__code__.co_argcount)
