r"""Profiles that are exponentials of a line, known by their formula.

A user who writes ``lambda s: math.exp(-s / 2)``, or its logarithm ``lambda s: -s / 2``, has written the Gaussian, and
gets what the Gaussian gets: weights in the log domain, and the paths that only need :math:`\log K = b + c\,s`, or
:math:`b + c \sqrt s` as in a Laplace kernel. The formula is read off by calling the function once with a symbol in the
place of s, which knows how to be added to and multiplied by numbers, and raises at all else, at a comparison for
example. So nothing is guessed from values; those at a few s are held against the formula, in case a function catches
what the symbol raises.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from functools import lru_cache
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np


class Line(NamedTuple):
    """The logarithm of a profile, ``start + slope s``, or ``start + slope sqrt(s)`` where ``root``."""

    start: float
    slope: float
    root: bool


def _names(code: CodeType) -> set[str]:
    """The names that a function uses, the functions inside it too."""
    inner = (_names(value) for value in code.co_consts if isinstance(value, CodeType))
    return set(code.co_names).union(*inner)


def rebuilt(
    function: FunctionType,
    convert: Callable[[Any], Any],
    convert_constant: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """A copy of a function with other values of its globals and closure, and other constants."""
    names = {
        name: convert(function.__globals__[name])
        for name in _names(function.__code__)
        if name in function.__globals__
    }
    cells = tuple(CellType(convert(cell.cell_contents)) for cell in function.__closure__ or ())
    constants = tuple(convert_constant(value) for value in function.__code__.co_consts)
    copy = FunctionType(
        function.__code__.replace(co_consts=constants),
        {"__builtins__": builtins, **names},
        function.__name__,
        function.__defaults__,
        cells,
    )
    copy.__module__ = function.__module__
    return copy


class NoLineError(Exception):
    """What was written is not of the form that is looked for."""


def _number(value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise NoLineError
    return float(value)


def _refuse(*_: Any) -> Any:
    raise NoLineError


class _Symbol:
    """Base of what stands for s; NumPy's numbers leave the arithmetic to it."""

    __array_ufunc__ = None
    __hash__ = None
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __float__ = __int__ = __len__ = _refuse


class _Sum(_Symbol):
    """``start + slope s``, or with the root of s."""

    def __init__(self, start: float, slope: float, root: bool):
        self.start, self.slope, self.root = start, slope, root

    def __add__(self, other: Any) -> _Sum:
        if not isinstance(other, _Sum):
            return _Sum(self.start + _number(other), self.slope, self.root)
        if other.root != self.root:
            raise NoLineError
        return _Sum(self.start + other.start, self.slope + other.slope, self.root)

    def __mul__(self, factor: Any) -> _Sum:
        factor = _number(factor)
        return _Sum(self.start * factor, self.slope * factor, self.root)

    def __truediv__(self, divisor: Any) -> _Sum:
        divisor = _number(divisor)
        if divisor == 0.0:
            raise NoLineError
        return _Sum(self.start / divisor, self.slope / divisor, self.root)

    def __pow__(self, power: Any) -> _Sum:
        if _number(power) != 0.5 or self.root or self.start != 0.0 or self.slope < 0.0:
            raise NoLineError
        return _Sum(0.0, math.sqrt(self.slope), True)

    def __neg__(self) -> _Sum:
        return self * -1.0

    def __sub__(self, other: Any) -> _Sum:
        return self + -other

    def __rsub__(self, other: Any) -> _Sum:
        return -self + other

    def __pos__(self) -> _Sum:
        return self

    __radd__, __rmul__ = __add__, __mul__


class _Exponential(_Symbol):
    """The exponential of such a sum."""

    def __init__(self, log: _Sum):
        self.log = log

    def __mul__(self, other: Any) -> _Exponential:
        if isinstance(other, _Exponential):
            return _Exponential(self.log + other.log)
        factor = _number(other)
        if not 0.0 < factor < math.inf:
            raise NoLineError
        return _Exponential(self.log + math.log(factor))

    def __truediv__(self, other: Any) -> _Exponential:
        return (
            _Exponential(self.log - other.log)
            if isinstance(other, _Exponential)
            else self * (1.0 / _number(other))
        )

    __rmul__ = __mul__


def _exp(value: Any) -> Any:
    return _Exponential(value) if isinstance(value, _Sum) else math.exp(_number(value))


def _sqrt(value: Any) -> Any:
    return value**0.5 if isinstance(value, _Sum) else math.sqrt(_number(value))


@lru_cache(maxsize=4)
def _symbolic(module: ModuleType) -> ModuleType:
    double = ModuleType(module.__name__)
    double.__dict__.update(vars(module), exp=_exp, sqrt=_sqrt)
    return double


def _replaced(value: Any) -> Any:
    if value is math or value is np:
        return _symbolic(value)
    functions = {math.exp: _exp, np.exp: _exp, math.sqrt: _sqrt, np.sqrt: _sqrt}
    return functions.get(value, value) if callable(value) and value.__hash__ else value


def line_of(function: Callable, log: bool) -> Line | None:
    """The line whose exponential a profile is, falling in s; None if it is anything else.

    Parameters
    ----------
    function : callable
        K(s), or log K(s) where ``log``. Only a plain Python function is looked into.
    """
    return _line_of(function, log) if isinstance(function, FunctionType) else None


@lru_cache(maxsize=256)
def _line_of(function: FunctionType, log: bool) -> Line | None:
    try:
        found = rebuilt(function, _replaced)(_Sum(0.0, 1.0, False))
    except Exception:  # whatever a function of numbers does with a symbol
        return None
    if not log:
        found = found.log if isinstance(found, _Exponential) else None
    if not isinstance(found, _Sum) or not (math.isfinite(found.start) and -math.inf < found.slope < 0.0):
        return None
    line = Line(found.start, found.slope, found.root)
    return line if _agrees(function, log, line) else None


def _agrees(function: FunctionType, log: bool, line: Line) -> bool:
    """Whether the function has the values of the line where these are, by its slope, from 0 to -300."""
    for fall in (0.0, 0.01, 0.7, 3.0, 40.0, 300.0):
        s = fall / -line.slope
        s = s * s if line.root else s
        try:
            value = float(function(s) if log else math.log(function(s)))
        except Exception:
            return False
        if not math.isclose(value, line.start - fall, rel_tol=1e-9, abs_tol=1e-9):
            return False
    return True


@lru_cache(maxsize=256)
def function_of(line: Line) -> Callable[[float], float]:
    """The logarithm that a line is, as a function of s that Numba compiles."""
    start, slope, _ = line
    if line.root:
        return lambda s: start + slope * math.sqrt(s)
    return lambda s: start + slope * s
