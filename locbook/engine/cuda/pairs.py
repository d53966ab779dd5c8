"""Distances and profiles as functions of the card: ours by name, and the user's own.

All are factories: they close over positions and counts, which are constants of the compiled kernel, and read numbers
(bandwidths, periods, matrices) from an array, so that a new number compiles nothing. ``T`` is ``numpy.float32`` or
``numpy.float64``; every constant is made by it, so that a float32 kernel holds no float64 instruction.

A distance is ``squared(q, i, x, b, numbers)``: the squared distance of column i of the transposed queries ``q``, shape
(columns, m), and row b of ``x``. A profile is ``profile(u, a)`` of the squared distance in bandwidths; it gives the
weight, or its logarithm, as its twin in :mod:`locbook.kernels.profiles`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ...kernels import metrics, profiles
from ...kernels.logarithm import log1p
from ..user import rebuilt
from .backend import device, nearest_whole, trigonometry


def metric(code: int, at: int, count: int, number: int, scaled: bool, T: type, user: Any = None) -> Callable:
    """The squared distance over ``count`` columns from ``at`` on; factors stand at ``number``, parameters after them.

    ``scaled`` says whether any factor differs from 1.
    """
    if code == metrics.USER:
        return _user_metric(user, at, count, T)
    if code in (metrics.EUCLIDEAN, metrics.MANHATTAN, metrics.CHEBYSHEV, metrics.MINKOWSKI):
        return _of_differences(code, at, count, number, scaled, T)
    makers = {
        metrics.MATRIX: _matrix,
        metrics.HAMMING: _hamming,
        metrics.HAVERSINE: _haversine,
        metrics.PERIODIC: _periodic,
        metrics.COSINE: _cosine,
        metrics.NAN_EUCLIDEAN: _nan_euclidean,
    }
    return makers[code](at, count, number, T)


def _of_differences(code: int, at: int, count: int, number: int, scaled: bool, T: type) -> Callable:
    zero, two, infinity = T(0), T(2), T(math.inf)

    @device
    def euclidean(q, i, x, b, numbers):
        total = zero
        for c in range(count):
            gap = q[at + c, i] - x[b, at + c]
            if scaled:
                gap *= numbers[number + c]
            total += gap * gap
        return total

    @device
    def manhattan(q, i, x, b, numbers):
        total = zero
        for c in range(count):
            total += abs(q[at + c, i] - x[b, at + c]) * numbers[number + c]
        return total * total

    @device
    def chebyshev(q, i, x, b, numbers):
        largest = zero
        for c in range(count):
            largest = max(largest, abs(q[at + c, i] - x[b, at + c]) * numbers[number + c])
        return largest * largest

    @device
    def minkowski(q, i, x, b, numbers):
        power = numbers[number + count]
        largest = zero
        for c in range(count):
            largest = max(largest, abs(q[at + c, i] - x[b, at + c]) * numbers[number + c])
        total = zero
        if zero < largest < infinity:  # in units of the largest, so that no power is beyond all floats
            for c in range(count):
                total += (abs(q[at + c, i] - x[b, at + c]) * numbers[number + c] / largest) ** power
            largest = largest * largest * total ** (two / power)
        return largest

    return (euclidean, manhattan, chebyshev, minkowski)[code]


def _matrix(at: int, count: int, number: int, T: type) -> Callable:
    zero = T(0)

    @device
    def squared(q, i, x, b, numbers):
        total = zero
        for r in range(count):
            inner = zero
            for c in range(count):
                inner += numbers[number + count + r * count + c] * (q[at + c, i] - x[b, at + c])
            total += inner * inner
        return total

    return squared


def _hamming(at: int, count: int, number: int, T: type) -> Callable:
    zero, one, all_of_them = T(0), T(1), T(count)

    @device
    def squared(q, i, x, b, numbers):
        differ = zero
        for c in range(count):
            differ += one if q[at + c, i] != x[b, at + c] else zero
        differ /= all_of_them
        return differ * differ

    return squared


def _haversine(at: int, count: int, number: int, T: type) -> Callable:
    zero, one, two = T(0), T(1), T(2)
    turn, half_turn = T(1 / math.pi), T(0.5 / math.pi)
    sinpi, cospi = trigonometry(T)

    @device
    def squared(q, i, x, b, numbers):
        first, second = q[at, i], x[b, at]
        up = sinpi((first - second) * half_turn)
        along = sinpi((q[at + 1, i] - x[b, at + 1]) * half_turn)
        h = up * up + cospi(first * turn) * cospi(second * turn) * along * along
        angle = two * T(math.asin(min(one, T(math.sqrt(max(zero, T(h)))))))
        return angle * angle

    return squared


def _periodic(at: int, count: int, number: int, T: type) -> Callable:
    zero, rint = T(0), nearest_whole(T)

    @device
    def squared(q, i, x, b, numbers):
        total = zero
        for c in range(count):
            period = numbers[number + count + c]
            gap = q[at + c, i] - x[b, at + c]
            gap = (gap - period * T(rint(gap / period))) * numbers[number + c]
            total += gap * gap
        return total

    return squared


def _cosine(at: int, count: int, number: int, T: type) -> Callable:
    zero, half, one = T(0), T(0.5), T(1)

    @device
    def squared(q, i, x, b, numbers):
        ours, theirs = zero, zero
        for c in range(count):
            ours += q[at + c, i] * q[at + c, i]
            theirs += x[b, at + c] * x[b, at + c]
        distance = one
        if ours > zero and theirs > zero:  # half the squared difference of the unit vectors
            ours, theirs, distance = T(math.sqrt(ours)), T(math.sqrt(theirs)), zero
            for c in range(count):
                gap = q[at + c, i] / ours - x[b, at + c] / theirs
                distance += gap * gap
            distance *= half
        return distance * distance

    return squared


def _nan_euclidean(at: int, count: int, number: int, T: type) -> Callable:
    zero, one, infinity, all_of_them = T(0), T(1), T(math.inf), T(count)

    @device
    def squared(q, i, x, b, numbers):
        total, present = zero, zero
        for c in range(count):
            gap = (q[at + c, i] - x[b, at + c]) * numbers[number + c]
            if gap == gap:
                total += gap * gap
                present += one
        return total * all_of_them / present if present > zero else infinity

    return squared


def _user_metric(function: Any, at: int, count: int, T: type) -> Callable:
    scalar = specialise(function, T)
    zero, infinity, wrong = T(0), T(math.inf), T(math.nan)

    @device
    def squared(q, i, x, b, numbers):
        distance = T(scalar(q[at : at + count, i], x[b, at : at + count]))
        return distance * distance if zero <= distance < infinity else wrong

    return squared


# -- profiles --------------------------------------------------------------------------------------------------------


def profile(code: int, T: type) -> Callable:
    """The named profile, or the score by which the nearest are found: the function of the registry in ``T``."""
    if code == profiles.SCORE:
        return device(lambda u, a: -u)
    named = list(profiles.PROFILES.values())[code]
    return _cosine_profile(T) if named.name == "cosine" else specialise(named.function, T)


def _cosine_profile(T: type) -> Callable:
    zero, one, half = T(0), T(1), T(0.5)
    cospi = trigonometry(T)[1]
    return device(lambda u, a: T(cospi(half * T(math.sqrt(u)))) if u < one else zero)


def user_profile(function: Any, log: bool, T: type) -> Callable:
    """A user's ``K(u)`` or ``log K(u)``; a value that is no weight becomes NaN, which the kernels report."""
    scalar = specialise(function, T)
    zero, infinity, wrong, nothing = T(0), T(math.inf), T(math.nan), T(-math.inf) if log else T(0)

    @device
    def profile(u, a):
        # no column in common, or beyond all floats: weight 0, whatever the function says
        value = T(scalar(u)) if u < infinity else nothing
        if log:
            return value if value < infinity else wrong
        return value if zero <= value < infinity else wrong

    return profile


# -- the user's functions --------------------------------------------------------------------------------------------

_MATH = {
    getattr(np, name): getattr(math, name)
    for name in (
        *(
            "exp",
            "log",
            "sqrt",
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
            "log1p",
            "expm1",
            "log2",
            "log10",
            "exp2",
        ),
        *("fabs", "floor", "ceil", "hypot"),
    )
} | {
    np.abs: abs,
    np.arctan: math.atan,
    np.arcsin: math.asin,
    np.arccos: math.acos,
    np.maximum: max,
    np.minimum: min,
}
#: NumPy's names as they work on the card: its functions of numbers are those of ``math``.
_NUMPY = ModuleType("numpy")
_NUMPY.__dict__.update(vars(np))
_NUMPY.__dict__.update(
    (name, _MATH[value]) for name, value in vars(np).items() if isinstance(value, np.ufunc) and value in _MATH
)


def specialise(function: Any, T: type, _seen: dict | None = None) -> Callable:
    """A scalar function, ours or the user's, plain Python or jitted, as a function of the card in the precision ``T``.

    Python's numbers are float64, and would make a float32 kernel compute in it: floats among the function's constants,
    globals and closure become ``T``, small integers those that do not widen it. Functions that it calls
    follow. What is computed with a size (``x.size``) stays float64: slower, not wrong.
    """
    function = getattr(function, "py_func", function)
    seen = {} if _seen is None else _seen
    if not isinstance(function, FunctionType):
        return _MATH.get(function, function) if callable(function) else function
    if function not in seen:
        seen[function] = None  # recursion ends here

        def convert(value: Any) -> Any:
            return _converted(value, T, seen)

        seen[function] = device(rebuilt(function, convert, convert))
    return seen[function]


def _converted(value: Any, T: type, seen: dict) -> Any:
    if value is log1p:  # ours is for float64 and for vectors
        return math.log1p
    if type(value) is float:
        return T(value)
    if type(value) is int and T is np.float32 and abs(value) < 1 << 15:
        return np.int16(value)  # the integer that float32 takes in without becoming float64
    if type(value) is tuple:
        return tuple(_converted(part, T, seen) for part in value)
    if value is np:
        return _NUMPY
    if isinstance(value, FunctionType) or hasattr(value, "py_func"):
        return specialise(value, T, seen)
    if isinstance(value, np.ufunc):
        return _MATH.get(value, value)
    return value
