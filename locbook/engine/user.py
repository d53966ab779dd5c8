"""A user's own profile or distance inside the engine, at the engine's speed.

The scalar function is compiled into a part (:mod:`locbook.engine.parts`) of the same form as ours, and called once for
a row of samples; nothing else is compiled for it. Its values are checked where they are made: a part returns how many
are bad. A plain Python function gets the engine's exponential and logarithm for those of ``math`` and ``numpy``: a call
of the system's keeps a loop from being turned into vectors.
"""

from __future__ import annotations

import builtins
import math
import threading
from collections.abc import Callable
from functools import cache, lru_cache
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import NumbaError

from ..kernels.logarithm import log
from .exponential import exp
from .panels import PANEL
from .parts import METRIC_PART, PROFILE_PART, address

_lock = threading.Lock()


@lru_cache(maxsize=2)
def _with_ours(module: ModuleType) -> ModuleType:
    double = ModuleType(module.__name__)
    double.__dict__.update(vars(module), exp=exp, log=log)
    return double


def _replaced(value: Any) -> Any:
    if value is math or value is np:
        return _with_ours(value)
    if value is math.exp or value is np.exp:
        return exp
    return log if value is math.log or value is np.log else value


def scalar_function(function: Callable, *arguments: types.Type) -> Callable:
    """The user's function, jitted without fast-math; as it is where the user jitted it."""
    if hasattr(function, "py_func"):
        function.compile(
            arguments
        )  # here, by the user's options: compiled inside ours it would take over ours
        return function
    if isinstance(function, FunctionType):
        names = {
            name: _replaced(function.__globals__[name])
            for name in function.__code__.co_names
            if name in function.__globals__
        }
        cells = tuple(CellType(_replaced(cell.cell_contents)) for cell in function.__closure__ or ())
        function = FunctionType(
            function.__code__,
            {"__builtins__": builtins, **names},
            function.__name__,
            function.__defaults__,
            cells,
        )
    return njit(error_model="numpy")(function)


@cache
def _profile(function: Callable, log: bool) -> Any:
    scalar = scalar_function(function, types.float64)

    nothing = -math.inf if log else 0.0

    @njit(error_model="numpy", nogil=True)
    def profile(row, n, a, squared):
        good, inverse = 0, 1.0 / squared
        exact = not log or not 0.0 < inverse < math.inf
        for j in range(n):
            s = row[j] / squared if exact else row[j] * inverse
            far = (
                s == math.inf
            )  # no column in common, or beyond all floats: weight 0, whatever the function says
            weight = float(scalar(0.0 if far else s))
            weight = nothing if far else weight
            # a weight is a number >= 0, its logarithm anything below infinity
            if log:
                good += weight < math.inf
            else:
                good += (weight >= 0.0) & (weight < math.inf)
            row[j] = weight
        return n - good

    return profile


@cache
def _metric(function: Callable) -> Any:
    scalar = scalar_function(function, *2 * [types.Array(types.float64, 1, "C")])

    @njit(error_model="numpy", nogil=True)
    def metric(queries, i, panels, first, count, columns, scale, parameters, out, work):
        x, y = np.empty(columns.size), np.empty(columns.size)
        for c in range(columns.size):
            x[c] = queries[i, columns[c]]
        good = 0
        for t in range(count):
            for j in range(PANEL):
                for c in range(columns.size):
                    y[c] = panels[first + t, columns[c], j]
                distance = float(scalar(x, y))
                good += 1 if 0.0 <= distance < math.inf else 0
                out[t * PANEL + j] = distance * distance
        return count * PANEL - good

    return metric


def _address(
    name: str, function: Callable, part: Callable[[], Any], signature: tuple[types.Type, ...]
) -> int:
    with _lock:
        try:
            return address(part(), *signature)
        except NumbaError as error:
            raise TypeError(
                f"{name}: Numba cannot compile {getattr(function, '__name__', function)!r}; it must be a scalar "
                f"function of numbers, with math instead of numpy calls on arrays. Numba says: {error}"
            ) from None


def profile_address(function: Callable, *, log: bool) -> int:
    """Address of the part of a user's profile ``K(s)``, or ``log K(s)``.

    Raises
    ------
    TypeError
        If Numba cannot compile it.
    """
    name = "log_profile" if log else "profile"
    return _address(name, function, lambda: _profile(function, log), PROFILE_PART)


def metric_address(function: Callable) -> int:
    """Address of the part of a user's distance ``d(x, y)`` of two 1-D arrays.

    Raises
    ------
    TypeError
        If Numba cannot compile it.
    """
    return _address("metric", function, lambda: _metric(function), METRIC_PART)
