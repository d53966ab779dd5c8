"""Where to compute: on the processor, or on an NVIDIA card by :mod:`locbook.engine.cuda`.

The package for the card is imported when a card is asked for, and not before.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np

from .._validation import check_option
from .problem import Problem

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


def set_up(
    device: str, queries: Any, samples: Any, kernel: Any, values: Any = None, **options: Any
) -> tuple[ModuleType, Problem, Any]:
    """The reductions of a device, a problem for them, and its values (n, p), if there are any; all checked.

    Arrays that live on a card stay there, and then so do the answers; ``options`` are those of :meth:`Problem.check`.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter.
    DeviceError
        As :func:`reductions_of`.
    """
    here = reductions_of(device)
    if any(map(lives_on_card, (queries, samples, values))):
        problem = here.check_problem(queries, samples, kernel, **options)
        return here, problem, None if values is None else here.check_values(values, problem)
    problem = Problem.check(queries, samples, kernel, **options)
    if values is not None:
        values = problem.values(values)
        values = values.reshape(len(values), -1)
    return here, problem, values


def as_type(array: Any, dtype: Any) -> Any:
    """A NumPy array in another precision; what lives on a card is in its own, and what is no array stays as it is."""
    return array.astype(dtype, copy=False) if isinstance(array, np.ndarray) else array


def of_host(array: Any) -> np.ndarray:
    """A NumPy array; copied if it lives on a card."""
    return reductions_of("cuda").to_host(array) if lives_on_card(array) else np.asarray(array)
