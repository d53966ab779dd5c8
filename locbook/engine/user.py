"""A user's own profile or distance inside the engine, at the engine's speed.

The scalar function is compiled into a part (:mod:`locbook.engine.parts`) of the same form as ours. The part is called
once for a row of samples, and calls the function, compiled with it, for each of them; nothing else is compiled for it.
Its values are checked where they are made: a part returns 0 where all are good. A plain Python function gets the
engine's exponential and logarithm for those of ``math`` and ``numpy``: a call of the system's keeps a loop from being
turned into vectors.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import cache, lru_cache
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import NumbaError

from ..kernels.lines import rebuilt
from ..kernels.logarithm import log
from .exponential import exp, exp_32
from .named import quotient
from .panels import PANEL
from .parts import FLOAT32_PROFILE_PART, METRIC_PART, PROFILE_PART, address

_lock = threading.Lock()


@lru_cache(maxsize=4)
def _with_ours(module: ModuleType, dtype: str) -> ModuleType:
    double = ModuleType(module.__name__)
    double.__dict__.update(vars(module), exp=_EXP[dtype], log=log)
    return double


_EXP = {"float64": exp, "float32": exp_32}


def _replaced(value: Any, dtype: str) -> Any:
    if value is math or value is np:
        return _with_ours(value, dtype)
    if value is math.exp or value is np.exp:
        return _EXP[dtype]
    if value is math.log or value is np.log:
        return log
    return value if dtype == "float64" else in_float32(value)


def in_float32(value: Any) -> Any:
    """A constant of a function that is to compute in float32: Python's floats, and its integers, would widen it."""
    if type(value) is float:  # beyond the range of float32 it stays, and widens
        return (
            value if math.isfinite(value) and value and not 1e-37 < abs(value) < 1e38 else np.float32(value)
        )
    if type(value) is int and abs(value) < 1 << 15:
        return np.int16(value)  # the integer that float32 takes in without becoming float64
    return tuple(in_float32(part) for part in value) if type(value) is tuple else value


def scalar_function(
    function: Callable, *arguments: types.Type, dtype: str = "float64", narrow: bool = True
) -> Callable:
    """The user's function, jitted without fast-math, for computing in ``dtype``; as it is where the user jitted it.

    With ``narrow`` its constants are of that dtype too.
    """
    if hasattr(function, "py_func"):
        function.compile(
            arguments
        )  # here, by the user's options: compiled inside ours it would take over ours
        return function
    if isinstance(function, FunctionType):
        dtype = dtype if narrow else "float64"
        constant = in_float32 if dtype == "float32" else lambda value: value
        function = rebuilt(function, lambda value: _replaced(value, dtype), constant)
    return njit(error_model="numpy")(function)


@cache
def _profile(function: Callable, log: bool, dtype: str, narrow: bool = True) -> Any:
    number = getattr(np, dtype)
    scalar = scalar_function(function, getattr(types, dtype), dtype=dtype, narrow=narrow)
    # s is exactly 1 at the distance h, where the profile may have an edge
    exact_edge = dtype == "float64" and not log
    nothing, zero, infinity, one = (
        number(value) for value in (-math.inf if log else 0.0, 0.0, math.inf, 1.0)
    )
    largest = np.finfo(number).max
    # the bits of a float: unsigned they grow from 0 to infinity, and go on with NaN and what is negative
    integer = np.uint64 if dtype == "float64" else np.uint32
    infinite = infinity.view(integer)

    @njit(error_model="numpy", nogil=True)
    def profile(row, n, a, squared):
        fine, square = True, number(squared)
        inverse = one / square
        normal = zero < inverse < infinity
        for j in range(n):
            s = quotient(row[j], square, inverse) if exact_edge else row[j] * inverse
            s = s if normal else row[j] / square
            # no column in common, or beyond all floats: weight 0, whatever the function says
            far = s == infinity
            weight = number(scalar(zero if far else s))
            weight = nothing if far else weight
            # a weight is a number >= 0 (-0 is one, and + 0 makes it 0), its logarithm anything below infinity
            fine &= weight <= largest if log else number(weight + zero).view(integer) < infinite
            row[j] = weight
        return 0 if fine else 1

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
        except (NumbaError, TypeError) as error:  # the second where it is no function
            raise TypeError(
                f"{name}: Numba cannot compile {getattr(function, '__name__', function)!r}; it must be a scalar "
                f"function of numbers, with math instead of numpy calls on arrays. Numba says: {error}"
            ) from None


def profile_address(function: Callable, *, log: bool, dtype: str = "float64") -> int:
    """Address of the part of a user's profile ``K(s)``, or ``log K(s)``, for rows of ``dtype``.

    Raises
    ------
    TypeError
        If Numba cannot compile it.
    """
    name = "log_profile" if log else "profile"
    if dtype == "float64":
        return _address(name, function, lambda: _profile(function, log, dtype), PROFILE_PART)
    try:
        return _address(name, function, lambda: _profile(function, log, dtype), FLOAT32_PROFILE_PART)
    except TypeError:  # what asks for Python's own numbers, as an index of a tuple
        return _address(name, function, lambda: _profile(function, log, dtype, False), FLOAT32_PROFILE_PART)


def metric_address(function: Callable) -> int:
    """Address of the part of a user's distance ``d(x, y)`` of two 1-D arrays.

    Raises
    ------
    TypeError
        If Numba cannot compile it.
    """
    return _address("metric", function, lambda: _metric(function), METRIC_PART)
