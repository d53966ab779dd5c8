"""Where to compute: on the processor, or on an NVIDIA card by :mod:`locbook.engine.cuda`.

The package for the card is imported when a card is asked for, and not before.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from .._validation import check_option

DEVICES = ("auto", "cpu", "cuda")
#: What ``__dlpack_device__`` calls a card.
_DLPACK_CUDA = 2


def lives_on_card(array: Any) -> bool:
    """Whether an array is in the memory of a card: one of CuPy, PyTorch, Numba or any that says so."""
    if hasattr(array, "__cuda_array_interface__"):
        return True
    device_of = getattr(array, "__dlpack_device__", None)
    return device_of is not None and int(device_of()[0]) == _DLPACK_CUDA


def choose_device(device: str, **arrays: Any) -> str:
    """``"cpu"`` or ``"cuda"``; ``"auto"`` is where the arrays are.

    Raises
    ------
    ValueError
        For an unknown device, or ``"cpu"`` for arrays on a card.
    """
    check_option(device, "device", DEVICES)
    on_card = [name for name, array in arrays.items() if lives_on_card(array)]
    if device == "cpu" and on_card:
        raise ValueError(
            f"device='cpu', but {on_card[0]} lives on a card: use device='auto', or copy it back"
        )
    return "cuda" if on_card or device == "cuda" else "cpu"


def reductions_of(device: str) -> ModuleType:
    """The module with the reductions of a device.

    Raises
    ------
    DeviceError
        If there is no card, or nothing that can talk to it; it says what to install.
    """
    if device == "cpu":
        return sys.modules[__package__]
    from . import cuda

    cuda.require()
    return cuda
