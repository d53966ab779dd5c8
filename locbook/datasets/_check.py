"""Parameter checks of the data sets: each error names the parameter, its value and what is allowed."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

RandomState = int | np.random.Generator | None


def check_random_state(random_state: RandomState) -> np.random.Generator:
    """Return a generator: a new one for None or a seed, the same one (its state moves on) if it is one."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, (bool, np.bool_)) or not isinstance(random_state, numbers.Integral):
        raise TypeError(
            f"random_state must be an int, a numpy.random.Generator or None, got {random_state!r} "
            f"({type(random_state).__name__})"
        )
    if random_state < 0:
        raise ValueError(f"random_state must be >= 0 if it is an int, got {random_state!r}")
    return np.random.default_rng(int(random_state))


def check_count(name: str, value: Any, minimum: int = 1) -> int:
    """Return ``value`` as an int >= ``minimum``; floats and bools are no counts."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an int >= {minimum}, got {value!r} ({type(value).__name__})")
    if value < minimum:
        raise ValueError(f"{name} must be an int >= {minimum}, got {value!r}")
    return int(value)


def check_real(
    name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, open_low=False
) -> float:
    """Return ``value`` as a finite float in ``[low, high]``, or in ``(low, high]``."""
    allowed = f"a finite number in {'(' if open_low or low == -math.inf else '['}{low:g}, {high:g}"
    allowed += ")" if high == math.inf else "]"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {allowed}, got {value!r} ({type(value).__name__})")
    if not math.isfinite(value) or value < low or value > high or (open_low and value == low):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return float(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")
    return value


def check_flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r} ({type(value).__name__})")
    return bool(value)


def check_text(name: str, value: Any) -> str:
    """Return ``value`` if it is a str."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, got {type(value).__name__}")
    return value


def check_array(
    name: str, value: Any, ndim: int | tuple[int, ...], columns: int | None = None
) -> NDArray[np.float64]:
    """Return ``value`` as float64: real, finite, not empty, of ``ndim`` axes and ``columns`` columns."""
    try:
        array = np.asarray(value)
    except ValueError as error:  # ragged rows
        raise ValueError(f"{name} must be a rectangular array of numbers: {error}") from None
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    ndims = (ndim,) if isinstance(ndim, int) else ndim
    if array.ndim not in ndims:
        raise ValueError(f"{name} must have {' or '.join(map(str, ndims))} axes, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    if columns is not None and array.shape[-1] != columns:
        raise ValueError(f"{name} must have {columns} columns, got shape {array.shape}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return array
