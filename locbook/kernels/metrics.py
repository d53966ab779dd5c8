r"""Distances: what "near" means before a profile turns it into a weight.

Every distance is computed from differences :math:`q_c - x_c`, never from an expanded square, so that 1e8 and
1e8 + 1 are 1 apart. One compiled function for each fills a row of *squared* distances from one query to
a tile of samples; the tile is transposed, ``(d, n)``, so that the inner loop runs over samples. (Minkowski's needs the
engine's exponential, and stands in :mod:`locbook.engine.named`.)

========================  ==========================================================  ======
name                      d(x, x')                                                    metric
========================  ==========================================================  ======
``euclidean``             :math:`(\sum_c (x_c - x'_c)^2)^{1/2}`                       yes
``manhattan``             :math:`\sum_c \lvert x_c - x'_c\rvert`                      yes
``chebyshev``             :math:`\max_c \lvert x_c - x'_c\rvert`                      yes
``minkowski(p)``          :math:`(\sum_c \lvert x_c - x'_c\rvert^p)^{1/p}`, p >= 1    yes
``mahalanobis(cov)``      :math:`((x-x')^\top C^{-1} (x-x'))^{1/2}`                   yes
``hamming``               share of the columns that differ                            yes
``haversine``             great-circle angle; columns are (latitude, longitude)       yes
                          in radians, the answer in radians
``periodic(period)``      Euclidean on a torus, each difference wrapped to            yes
                          [-period/2, period/2]
``cosine``                :math:`1 - \langle x, x'\rangle / \lVert x\rVert\lVert      no
                          x'\rVert`; 1 if a vector is 0
``nan_euclidean``         Euclidean on the columns present in both, scaled by         no
                          (columns / columns present); a pair with none in common
                          has no distance, and weight 0
========================  ==========================================================  ======

The last two are dissimilarities: they break the triangle inequality.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from .._validation import check_option, check_positive, check_square_matrix, check_vector, read_only

EUCLIDEAN, MANHATTAN, CHEBYSHEV, MINKOWSKI, MATRIX = 0, 1, 2, 3, 4
HAMMING, HAVERSINE, PERIODIC, COSINE, NAN_EUCLIDEAN, USER = 5, 6, 7, 8, 9, 10

_CODES = {
    "euclidean": EUCLIDEAN,
    "manhattan": MANHATTAN,
    "chebyshev": CHEBYSHEV,
    "minkowski": MINKOWSKI,
    "mahalanobis": MATRIX,
    "hamming": HAMMING,
    "haversine": HAVERSINE,
    "periodic": PERIODIC,
    "cosine": COSINE,
    "nan_euclidean": NAN_EUCLIDEAN,
}
#: Distances that are complete by their name alone.
PLAIN_METRICS = ("euclidean", "manhattan", "chebyshev", "hamming", "haversine", "cosine", "nan_euclidean")
#: Dissimilarities that break the triangle inequality.
NOT_METRICS = ("cosine", "nan_euclidean")
_SCALABLE = ("euclidean", "manhattan", "chebyshev", "minkowski", "periodic", "nan_euclidean")


class Metric:
    """A distance by name with its parameter, or a function of the user's.

    Build one with :func:`minkowski`, :func:`mahalanobis`, :func:`periodic` or :func:`as_metric`.

    Parameters
    ----------
    name : str
        Name of the distance; ``"user"`` for a function.
    parameter : float, array or callable, optional
        Exponent, covariance, period, or the user's scalar function of two 1-D arrays.
    """

    def __init__(self, name: str, parameter: Any = None):
        check_option(name, "name", (*_CODES, "user"))
        self.__setstate__({"name": name, "parameter": parameter})

    @property
    def code(self) -> int:
        """Number by which compiled code calls it."""
        return USER if self.name == "user" else _CODES[self.name]

    @property
    def is_metric(self) -> bool:
        """Whether the triangle inequality is known to hold."""
        return self.name not in (*NOT_METRICS, "user")

    @property
    def scalable(self) -> bool:
        """Whether a bandwidth per column makes sense; the distance is then made of differences column by column."""
        return self.name in _SCALABLE

    @property
    def allows_nan(self) -> bool:
        """Whether missing coordinates have a meaning."""
        return self.name == "nan_euclidean"

    def parameters(self, n_columns: int) -> np.ndarray:
        """The numbers that compiled code needs, flat.

        Raises
        ------
        ValueError
            If the parameter does not fit ``n_columns``.
        """
        if self.name == "minkowski":
            return np.array([self.parameter])
        if self.name == "mahalanobis":
            if len(self.parameter) != n_columns:
                raise ValueError(
                    f"metric: the covariance is {self.parameter.shape}, but the kernel looks at {n_columns} columns"
                )
            return np.linalg.inv(np.linalg.cholesky(self.parameter)).ravel()
        if self.name == "periodic":
            if self.parameter.size not in (1, n_columns):
                raise ValueError(
                    f"metric: {self.parameter.size} periods, but the kernel looks at {n_columns} columns"
                )
            return np.broadcast_to(self.parameter, n_columns).astype(np.float64)
        if self.name == "haversine" and n_columns != 2:
            raise ValueError(f"metric 'haversine' needs 2 columns (latitude, longitude), got {n_columns}")
        return np.empty(0)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a metric is immutable; build a new one instead of setting {name!r}")

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update((name, read_only(value)) for name, value in state.items())

    def _key(self) -> tuple:
        value = self.parameter
        return (self.name, (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Metric) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        if self.parameter is None:
            return repr(self.name)
        if self.name == "user":
            return getattr(self.parameter, "__name__", "function")
        value = self.parameter
        if isinstance(value, np.ndarray):
            value = value.item() if value.shape == (1,) else value.tolist()
        return f"{self.name}({value!r})"


def minkowski(p: float) -> Metric:
    """Minkowski distance with exponent ``p >= 1``; 1 is the Manhattan distance, 2 the Euclidean.

    Examples
    --------
    >>> minkowski(3.0)
    minkowski(3.0)
    """
    p = check_positive(p, "p")
    if p < 1:
        raise ValueError(f"p must be at least 1 (below, the triangle inequality fails), got {p}")
    return Metric({1.0: "manhattan", 2.0: "euclidean"}[p]) if p in (1.0, 2.0) else Metric("minkowski", p)


def mahalanobis(covariance: np.ndarray) -> Metric:
    """Mahalanobis distance for a covariance matrix, shape ``(d, d)``, symmetric and positive definite."""
    return Metric("mahalanobis", check_square_matrix(covariance, "covariance", symmetric=True))


def periodic(period: float | np.ndarray) -> Metric:
    """Euclidean distance on a torus: one period for all columns, or one for each, in the units of the column."""
    many = np.iterable(period) and not isinstance(period, str)
    values = period if many else [check_positive(period, "period")]
    return Metric("periodic", check_vector(values, "period", positive=True))


def as_metric(metric: str | Metric | Callable) -> Metric:
    """A :class:`Metric` from a name, a metric, or a scalar function of two 1-D arrays.

    Raises
    ------
    ValueError
        For an unknown name, or a name that needs a parameter.
    TypeError
        For anything else.
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        if metric in PLAIN_METRICS:
            return Metric(metric)
        if metric in _CODES:
            raise ValueError(f"metric {metric!r} needs a parameter: use lb.{metric}(...)")
        raise ValueError(f"metric must be one of {', '.join(sorted(_CODES))}, got {metric!r}")
    if callable(metric):
        return Metric("user", metric)
    raise TypeError(
        f"metric must be a name, a Metric or a function of two points, got {type(metric).__name__}"
    )


_JIT = {"cache": True, "error_model": "numpy", "nogil": True}


# Each function fills ``out[:n]`` with *squared* distances from the query ``q``, shape (d,), to the samples of a
# transposed tile, shape (d, >= n). ``columns`` are the columns looked at, ``scale`` the factor of each difference
# (one over the bandwidth of its column), ``parameters`` what :meth:`Metric.parameters` gave, ``work`` scratch of the
# size of ``out``.


@njit(**_JIT)
def euclidean_row(q, tile, n, columns, scale, parameters, out, work):
    for j in range(n):
        out[j] = 0.0
    for c in range(columns.size):
        at, unit = q[columns[c]], scale[c]
        x = tile[columns[c]]
        for j in range(n):
            difference = (at - x[j]) * unit
            out[j] += difference * difference


@njit(**_JIT)
def manhattan_row(q, tile, n, columns, scale, parameters, out, work):
    for j in range(n):
        out[j] = 0.0
    for c in range(columns.size):
        at, unit = q[columns[c]], scale[c]
        x = tile[columns[c]]
        for j in range(n):
            out[j] += abs(at - x[j]) * unit
    for j in range(n):
        out[j] *= out[j]


@njit(**_JIT)
def chebyshev_row(q, tile, n, columns, scale, parameters, out, work):
    for j in range(n):
        out[j] = 0.0
    for c in range(columns.size):
        at, unit = q[columns[c]], scale[c]
        x = tile[columns[c]]
        for j in range(n):
            difference = abs(at - x[j]) * unit
            if difference > out[j]:
                out[j] = difference
    for j in range(n):
        out[j] *= out[j]


@njit(**_JIT)
def matrix_row(q, tile, n, columns, scale, parameters, out, work):
    """Squared length of ``matrix @ (q - x)``; the matrix is flat, row by row."""
    size, matrix = columns.size, parameters
    for j in range(n):
        out[j] = 0.0
    for r in range(matrix.size // size):
        for j in range(n):
            work[j] = 0.0
        for c in range(size):
            entry, at = matrix[r * size + c], q[columns[c]]
            x = tile[columns[c]]
            if entry != 0.0:
                for j in range(n):
                    work[j] += entry * (at - x[j])
        for j in range(n):
            out[j] += work[j] * work[j]


@njit(**_JIT)
def hamming_row(q, tile, n, columns, scale, parameters, out, work):
    for j in range(n):
        out[j] = 0.0
    for c in range(columns.size):
        at = q[columns[c]]
        x = tile[columns[c]]
        for j in range(n):
            if at != x[j]:
                out[j] += 1.0
    for j in range(n):
        out[j] = (out[j] / columns.size) ** 2


@njit(**_JIT)
def haversine_row(q, tile, n, columns, scale, parameters, out, work):
    latitude, longitude = q[columns[0]], q[columns[1]]
    for j in range(n):
        a = math.sin(0.5 * (latitude - tile[columns[0], j])) ** 2
        b = math.sin(0.5 * (longitude - tile[columns[1], j])) ** 2
        h = a + math.cos(latitude) * math.cos(tile[columns[0], j]) * b
        angle = 2.0 * math.asin(min(1.0, math.sqrt(max(0.0, h))))  # h lies in [0, 1] but for rounding
        out[j] = angle * angle


@njit(**_JIT)
def periodic_row(q, tile, n, columns, scale, parameters, out, work):
    for j in range(n):
        out[j] = 0.0
    for c in range(columns.size):
        at, unit, length = q[columns[c]], scale[c], parameters[c]
        x = tile[columns[c]]
        for j in range(n):
            difference = at - x[j]
            difference = (difference - length * np.rint(difference / length)) * unit
            out[j] += difference * difference


@njit(**_JIT)
def cosine_row(q, tile, n, columns, scale, parameters, out, work):
    """1 - cos = half the squared difference of the unit vectors: 0 on the diagonal, no cancellation near it."""
    norm = 0.0
    for j in range(n):
        work[j] = 0.0
    for c in range(columns.size):
        at = q[columns[c]]
        norm += at * at
        x = tile[columns[c]]
        for j in range(n):
            work[j] += x[j] * x[j]
    norm = math.sqrt(norm)
    for j in range(n):
        work[j] = math.sqrt(work[j])
        out[j] = 0.0
    for c in range(columns.size):
        at = q[columns[c]] / norm
        x = tile[columns[c]]
        for j in range(n):
            difference = at - x[j] / work[j]
            out[j] += difference * difference
    for j in range(n):
        distance = 0.5 * out[j] if norm > 0.0 and work[j] > 0.0 else 1.0
        out[j] = distance * distance


@njit(**_JIT)
def nan_euclidean_row(q, tile, n, columns, scale, parameters, out, work):
    for j in range(n):
        out[j] = 0.0
        work[j] = 0.0
    for c in range(columns.size):
        at, unit = q[columns[c]], scale[c]
        x = tile[columns[c]]
        for j in range(n):
            difference = (at - x[j]) * unit
            if not math.isnan(difference):
                out[j] += difference * difference
                work[j] += 1.0
    for j in range(n):
        out[j] = out[j] * columns.size / work[j] if work[j] > 0.0 else math.inf
