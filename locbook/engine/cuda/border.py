"""Arrays of the card, checked once at the border without leaving it.

What :meth:`Problem.check` is for arrays of the host: shapes and types are looked at, and a kernel looks for NaN and
infinities, of which only a flag comes back.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._validation import check_mask, check_same_columns, check_sample_weight
from ...kernels.base import Kernel
from ...kernels.constructors import make_kernel
from ..problem import Problem
from . import backend
from .arrays import column_ranges, converted, gather, specials


def check_array(array: Any, name: str, *, allow_nan: bool = False, allow_minus_infinity: bool = False) -> Any:
    """A 2-D float array of the card (host arrays are brought there), not copied where it is float32 or float64.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, as for arrays of the host.
    """
    given, kind = array, backend.kind_of(array)
    array = backend.as_device(array)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.ndim == 1 and name == "values":
        given = array = array.reshape(array.shape[0], 1)
    if array.ndim != 2:
        raise ValueError(f"{name} must be 2-D, got an array of shape {tuple(array.shape)}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {tuple(array.shape)}")
    if array.dtype not in (np.float32, np.float64):
        array = gather(array, np.arange(array.shape[1]), np.float64)
        given = array if kind == "numpy" else backend.give_back(array, kind)
    nan, infinite, below = specials(array)
    infinite = infinite or (below and not allow_minus_infinity)
    if infinite or (nan and not allow_nan):
        found = "infinity" if infinite else "NaN"
        raise ValueError(f"{name} contains {found}; it must be finite{' or NaN' if allow_nan else ''}")
    return array if kind == "numpy" else given


def check_numbers(array: Any, name: str, **allowed: bool) -> Any:
    """As :func:`check_array`, for any number of axes."""
    shape = tuple(array.shape)
    if len(shape) == 2:
        return check_array(array, name, **allowed)
    backend.as_device(array)  # waits for its stream, which what is reshaped may have forgotten
    rows = array.reshape(math.prod(shape[:-1]), shape[-1])
    return check_array(rows, name, **allowed).reshape(shape)


def check_values(values: Any, problem: Problem) -> Any:
    """Values of the samples of a problem, shape (n, p)."""
    columns = check_array(values, "values", allow_nan=problem.mask is not None)
    n = len(problem.samples)
    if len(columns) != n:
        raise ValueError(f"values has {len(columns)} rows, but samples have {n}; they must agree")
    return columns


def check_copies(weight: Any, problems: int = 1) -> Any:
    """Multiplicities (n,) of the card, of so many problems end to end, as a device array of float64.

    Raises
    ------
    TypeError, ValueError
        For what is not finite or below 0, and where those of a problem are 0 for all samples.
    """
    weight, n = backend.as_device(weight), weight.shape[0]
    weight = converted(check_array(weight.reshape(n, 1), "sample_weight"), np.float64)
    low, high = column_ranges(weight, weight.reshape(n), -np.inf, problems)
    if low.min() < 0:
        raise ValueError(f"sample_weight must be >= 0, got {low.min()}")
    if not high.all():
        raise ValueError(f"sample_weight must not be zero for all samples{' of a problem' * (problems > 1)}")
    return weight.reshape(n)


def check_problem(
    queries: Any, samples: Any, kernel: Kernel | str, *, sample_weight: Any = None, mask: Any = None
) -> Problem:
    """A problem whose queries and samples stay on the card, in the caller's kind, in which the answers come back.

    NaN in the samples is allowed beside a mask: what it leaves out is never read.
    """
    if isinstance(kernel, str):
        kernel = make_kernel(kernel)
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a Kernel or a name, got {type(kernel).__name__}")
    same = queries is samples
    samples = check_array(samples, "samples", allow_nan=kernel.allows_nan or mask is not None)
    queries = samples if same else check_array(queries, "queries", allow_nan=kernel.allows_nan)
    check_same_columns(queries, samples)
    m, n = queries.shape[0], samples.shape[0]
    if mask is not None and backend.kind_of(mask) != "numpy":
        mask = backend.as_device(mask)
        if mask.dtype != np.bool_ or tuple(mask.shape) != (m, n):
            raise ValueError(
                f"mask must be boolean of shape ({m}, {n}), got {mask.dtype} of shape {tuple(mask.shape)}"
            )
    else:
        mask = check_mask(mask, m, n)
    if backend.kind_of(sample_weight) != "numpy" and tuple(sample_weight.shape) == (n,):
        weight = check_copies(sample_weight)
    else:
        weight = check_sample_weight(None if sample_weight is None else backend.to_host(sample_weight), n)
    dtype = np.dtype(np.float32 if backend.all_single(queries, samples) else np.float64)
    return Problem(queries, samples, kernel, weight, mask, np.arange(m), dtype)
