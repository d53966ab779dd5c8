"""Checks at the border: everything is looked at once, before compiled code runs.

A message names the parameter, the value it got, and what is allowed. Real numbers go on as float64 or float32;
integers and booleans become float64; complex, object, text and sparse input is refused.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np


def as_real(array: Any, name: str, *, ndim: tuple[int, ...] = (2,), allow_nan: bool = False) -> np.ndarray:
    """A float32 or float64 array of the wanted number of dimensions, not copied when it already is one.

    Small integers keep their type until the engine converts them block by block.

    Raises
    ------
    TypeError
        For sparse, complex, object or text input.
    ValueError
        For a wrong number of dimensions, an empty array, infinities, or NaN where not allowed.
    """
    if hasattr(array, "tocsr") or hasattr(array, "todense"):
        raise TypeError(f"{name} must be a dense array, got a sparse one: use {name}.toarray()")
    if np.ma.is_masked(array):
        raise TypeError(f"{name} must not be a masked array: what its mask hides would be read")
    try:
        values = np.asarray(array)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array of numbers: {error}") from None
    if values.dtype.kind == "c":
        raise TypeError(f"{name}: complex data not supported, got dtype {values.dtype}")
    if values.dtype == object:
        try:
            values = values.astype(np.float64)
        except OverflowError:
            raise ValueError(f"{name} must be finite, got a number that no float64 can hold") from None
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be numeric, got dtype object") from None
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numeric, got dtype {values.dtype}")
    if values.dtype.kind == "f" and values.dtype not in (np.float32, np.float64):
        with np.errstate(over="ignore"):  # what overflows becomes an infinity, and is refused below
            values = values.astype(np.float32 if values.dtype == np.float16 else np.float64)
    if values.ndim not in ndim:
        wanted = " or ".join(f"{k}-D" for k in ndim)
        hint = (
            f" Reshape a single feature with {name}.reshape(-1, 1)."
            if ndim == (2,) and values.ndim == 1
            else ""
        )
        raise ValueError(f"{name} must be {wanted}, got an array of shape {values.shape}.{hint}")
    if values.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {values.shape}")
    if values.dtype.kind == "f":
        check_finite(values, name, allow_nan=allow_nan)
    return values


def check_finite(values: np.ndarray, name: str, *, allow_nan: bool = False) -> None:
    """Refuse infinities, and NaN unless allowed, naming the first place; works in blocks, without a full mask."""
    flat = np.atleast_1d(values)
    flat = flat.reshape(len(flat), -1)
    step = max(1, (1 << 20) // flat.shape[1])
    for start in range(0, len(flat), step):
        block = flat[start : start + step]
        bad = np.isinf(block) if allow_nan else ~np.isfinite(block)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            kind = "NaN" if np.isnan(block[row, column]) else "infinity"
            raise ValueError(
                f"{name} contains {kind} (first at row {start + row}, column {column}); "
                f"it must be finite{' or NaN' if allow_nan else ''}"
            )


def result_dtype(*arrays: np.ndarray) -> np.dtype:
    """float32 if every array is float32 (or smaller float), else float64."""
    return np.dtype(np.float32 if all(a.dtype == np.float32 for a in arrays) else np.float64)


def check_same_columns(queries: np.ndarray, samples: np.ndarray) -> None:
    if queries.shape[1] != samples.shape[1]:
        raise ValueError(
            f"queries have {queries.shape[1]} columns, but samples have {samples.shape[1]}; they must agree"
        )


def check_values(values: Any, n_samples: int, *, name: str = "values", allow_nan: bool = False) -> np.ndarray:
    values = as_real(values, name, ndim=(1, 2), allow_nan=allow_nan)
    if len(values) != n_samples:
        raise ValueError(f"{name} has {len(values)} rows, but samples have {n_samples}; they must agree")
    return values


def check_sample_weight(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    """Multiplicities, float64 of shape (n,), >= 0 and not all 0; None stays None (all 1)."""
    if sample_weight is None:
        return None
    weights = as_real(sample_weight, "sample_weight", ndim=(0, 1)).astype(np.float64)
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have shape ({n_samples},), one for each sample, got {weights.shape}"
        )
    if (weights < 0).any():
        raise ValueError(f"sample_weight must be >= 0, got {weights.min()}")
    if not weights.any():
        raise ValueError("sample_weight must not be zero for all samples")
    return weights


def check_mask(mask: Any, n_queries: int, n_samples: int, *, name: str = "mask") -> np.ndarray | None:
    """Boolean (m, n), True takes part; rows or columns of length 1 are not stretched by surprise."""
    if mask is None:
        return None
    mask = np.asarray(mask)
    if mask.dtype != np.bool_:
        raise TypeError(f"{name} must be boolean (True takes part), got dtype {mask.dtype}")
    if mask.shape != (n_queries, n_samples):
        raise ValueError(f"{name} must have shape ({n_queries}, {n_samples}), got {mask.shape}")
    return mask


def check_positive(value: Any, name: str) -> float:
    """A finite number above 0."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        array = np.asarray(value)
        if array.ndim or array.dtype.kind not in "fiu":
            raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        number = np.inf
    if not np.isfinite(number) or number <= 0:
        raise ValueError(f"{name} must be a finite number above 0, got {number}")
    return number


def check_integer(value: Any, name: str, *, minimum: int = 1, maximum: int | None = None) -> int:
    """A true integer in bounds: 3.0 and True are refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    value = int(value)
    if value < minimum or (maximum is not None and value > maximum):
        bound = f"between {minimum} and {maximum}" if maximum is not None else f"at least {minimum}"
        raise ValueError(f"{name} must be {bound}, got {value}")
    return value


def check_option(value: Any, name: str, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def check_vector(values: Any, name: str, *, positive: bool = False) -> np.ndarray:
    """A finite 1-D float64 array, optionally of positive entries; a private read-only copy."""
    values = _as_numbers(values, name, ndim=1)
    if positive and (values <= 0).any():
        raise ValueError(f"{name} must be above 0 everywhere, got {values.min()}")
    values.flags.writeable = False
    return values


def read_only(value: Any) -> Any:
    """The value itself; if it is an array, nobody may write to it any more."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return value


def check_square_matrix(values: Any, name: str, *, symmetric: bool = False) -> np.ndarray:
    """A finite, invertible float64 matrix; symmetric and positive definite when asked. A private read-only copy."""
    values = _as_numbers(values, name, ndim=2)
    if values.shape[0] != values.shape[1]:
        raise ValueError(f"{name} must be square, got shape {values.shape}")
    if symmetric:
        # in the units of the columns, so that neither rounding nor columns of unlike size mislead
        unit = np.sqrt(np.abs(values.diagonal()))
        if (np.abs(values - values.T) > 1e-10 * np.outer(unit, unit)).any():
            raise ValueError(f"{name} must be symmetric")
        lowest = np.linalg.eigvalsh(values / unit / unit[:, None])[0] if values.diagonal().all() else 0.0
        if lowest <= 1e-14 or (values.diagonal() < 0).any():
            raise ValueError(
                f"{name} must be positive definite, got smallest eigenvalue {np.linalg.eigvalsh(values)[0]:.3g}"
            )
    elif np.linalg.cond(values) > 1e14:
        raise ValueError(f"{name} must be invertible, got a matrix that is singular to working precision")
    values.flags.writeable = False
    return values


def _as_numbers(values: Any, name: str, *, ndim: int) -> np.ndarray:
    """A private float64 copy; booleans, which data may hold, are no parameter."""
    values = as_real(values, name, ndim=(ndim,))
    if values.dtype.kind == "b":
        raise TypeError(f"{name} must hold numbers, got dtype {values.dtype}")
    return values.astype(np.float64)


RandomState = int | np.random.Generator | None


def check_random_state(random_state: RandomState) -> np.random.Generator:
    """A generator: a new one for None or a seed, the same one (its state moves on) if it is one."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, (bool, np.bool_)) or not isinstance(random_state, numbers.Integral):
        raise TypeError(
            f"random_state must be an int, a numpy.random.Generator or None, got {random_state!r} "
            f"({type(random_state).__name__})"
        )
    return np.random.default_rng(check_integer(random_state, "random_state", minimum=0))


def check_real(
    value: Any, name: str, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False
) -> float:
    """A finite number in ``[low, high]``, or in ``(low, high]``."""
    allowed = f"a finite number in {'(' if open_low or low == -math.inf else '['}{low:g}, {high:g}"
    allowed += ")" if high == math.inf else "]"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {allowed}, got {value!r} ({type(value).__name__})")
    if not math.isfinite(value) or value < low or value > high or (open_low and value == low):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return float(value)


def check_flag(value: Any, name: str) -> bool:
    """True or False, nothing that merely acts like it."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r} ({type(value).__name__})")
    return bool(value)


def check_text(value: Any, name: str) -> str:
    """A str."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, got {type(value).__name__}")
    return value


def check_array(values: Any, name: str, ndim: tuple[int, ...], columns: int | None = None) -> np.ndarray:
    """A finite float64 array of ``ndim`` axes and, if given, so many columns; a copy."""
    array = np.array(as_real(values, name, ndim=ndim), dtype=np.float64)
    if columns is not None and array.shape[-1] != columns:
        raise ValueError(f"{name} must have {columns} columns, got shape {array.shape}")
    return array
