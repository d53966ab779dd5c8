"""Tensors that pass for those of a card, for the simulator.

Their numbers are out of reach, as on a card: no storage, no ``numpy()``. Only PyTorch's own operations work, and who
takes the pointer of ``__cuda_array_interface__``.
"""

import contextlib
import ctypes
from types import SimpleNamespace

import numpy as np
import torch
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
from torch.utils._pytree import tree_map

from locbook.engine.cuda import backend


class CardTensor(torch.Tensor):
    """A tensor that says that it is on a card; ``inner`` holds its numbers."""

    @staticmethod
    def __new__(cls, inner, *_, requires_grad=False):
        form = {"strides": inner.stride(), "dtype": inner.dtype, "requires_grad": requires_grad}
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, **form)

    def __init__(self, inner, device="cuda:0", **_):
        self.inner, self.card = inner.detach(), torch.device(device)

    device = property(lambda self: self.card)
    is_cuda = True

    @property
    def __cuda_array_interface__(self):
        if self.requires_grad:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad")
        kind = {torch.float32: "<f4", torch.float64: "<f8", torch.bool: "|b1"}[self.dtype]
        strides = tuple(step * self.inner.element_size() for step in self.inner.stride())
        pointer = self.inner.data_ptr(), False
        return {
            "shape": tuple(self.shape), "strides": strides, "typestr": kind, "data": pointer, "version": 2,
        }  # fmt: skip

    def cpu(self):
        return self.inner.clone()

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), named=None):
        def plain(x):
            return x.inner if isinstance(x, CardTensor) else x

        def ours(x):
            return CardTensor(x) if isinstance(x, torch.Tensor) else x

        return tree_map(ours, function(*tree_map(plain, arguments), **tree_map(plain, named or {})))


CardTensor.__module__ = "torch"  # by which the border knows its own


def as_cuda_array(array):
    """What Numba makes of a pointer."""
    given = array.__cuda_array_interface__
    dtype, (pointer, _) = np.dtype(given["typestr"]), given["data"]
    size = (
        sum(step * (n - 1) for step, n in zip(given["strides"], given["shape"], strict=True)) + dtype.itemsize
    )
    memory = (ctypes.c_char * size).from_address(pointer)
    return FakeCUDAArray(np.ndarray(given["shape"], dtype, memory, 0, given["strides"]))


def as_tensor(data, dtype=None, device=None, real=torch.as_tensor):
    """``torch.as_tensor`` of a machine with a card: arrays of the card are shared."""
    if isinstance(data, FakeCUDAArray):
        assert torch.device(device).type == "cuda"
        data, device = CardTensor(real(data._ary)), None
    if isinstance(data, CardTensor):
        return data if dtype in (None, data.dtype) else CardTensor(data.inner.to(dtype))
    if device is not None and torch.device(device).type == "cuda":
        return CardTensor(real(data, dtype=dtype))
    return real(data, dtype=dtype, device=device)


def install(monkeypatch, current=0):
    """PyTorch and Numba as on a machine with a card; returns what is noted: streams waited for, cards made current."""
    noted = []
    stream = SimpleNamespace(cuda_stream=current, synchronize=lambda: noted.append("stream"))

    @contextlib.contextmanager
    def of(device):
        noted.append(str(device))
        yield

    monkeypatch.setattr(torch, "as_tensor", as_tensor)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    monkeypatch.setattr(torch.cuda, "device", of)
    monkeypatch.setattr(backend.cuda, "as_cuda_array", as_cuda_array, raising=False)
    return noted
