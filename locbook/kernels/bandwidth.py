r"""The ruler: one meaning of "bandwidth", rules for densities, and a converter.

**The convention.** A bandwidth :math:`h` divides the distance: :math:`u = d(x, x') / h`, in the units of the
columns. For a compact kernel it is the radius of the support; for the Gaussian it is the standard deviation. A
vector gives one :math:`h_c` a column; a matrix :math:`B` gives :math:`u = \lVert B^{-1}(x - x')\rVert`, so that
``h``, ``[h, h]`` and ``h * identity`` mean the same. :func:`convert_bandwidth` goes to standard deviations or
radii and back. :func:`per_query`, :func:`per_sample` and :func:`knn_bandwidth` make it vary from place to place.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._validation import (
    as_real,
    check_integer,
    check_option,
    check_positive,
    check_square_matrix,
    check_vector,
    read_only,
)
from .profiles import PROFILES, get_profile

#: Smallest and largest bandwidth: beyond, one over its square is not a float64.
SMALLEST, LARGEST = 1e-150, 1e150


class VaryingBandwidth:
    """A bandwidth for each query or each sample.

    Build it with :func:`per_query`, :func:`per_sample` or :func:`knn_bandwidth`.
    """

    def __init__(
        self, side: str, values: np.ndarray | None = None, n_neighbors: int | None = None, scale: float = 1.0
    ):
        self.__setstate__({"side": side, "values": values, "n_neighbors": n_neighbors, "scale": scale})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a bandwidth is immutable; build a new one instead of setting {name!r}")

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update((name, read_only(value)) for name, value in state.items())

    def _key(self) -> tuple:
        values = None if self.values is None else self.values.tobytes()
        return (self.side, values, self.n_neighbors, self.scale)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VaryingBandwidth) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        if self.values is not None:
            shown = self.values.tolist() if self.values.size <= 8 else f"<{self.values.size} bandwidths>"
            return f"per_{self.side}({shown})"
        extra = "" if self.side == "query" else f", side={self.side!r}"
        extra += "" if self.scale == 1.0 else f", scale={self.scale!r}"
        return f"knn_bandwidth({self.n_neighbors}{extra})"


def per_query(bandwidths: np.ndarray) -> VaryingBandwidth:
    """One bandwidth for each query, shape ``(m,)``, positive, in the units of the distance."""
    return VaryingBandwidth("query", _within_bounds(check_vector(bandwidths, "bandwidths", positive=True)))


def per_sample(bandwidths: np.ndarray) -> VaryingBandwidth:
    """One bandwidth for each sample, shape ``(n,)``, positive, in the units of the distance."""
    return VaryingBandwidth("sample", _within_bounds(check_vector(bandwidths, "bandwidths", positive=True)))


def knn_bandwidth(n_neighbors: int, *, side: str = "query", scale: float = 1.0) -> VaryingBandwidth:
    r"""Distance to the ``n_neighbors``-th nearest sample as the bandwidth: wide where samples are rare.

    Parameters
    ----------
    n_neighbors : int
        k >= 1. Counted with multiplicity where ``sample_weight`` is given.
    side : {"query", "sample"}
        Whether the ruler belongs to the query (a kNN-scaled profile) or to each sample (measured to its k-th
        *other* sample).
    scale : float
        Factor on the distance.

    Notes
    -----
    Two rules keep it from 0/0. The distance is enlarged by a relative 1e-12, so that under a compact profile the
    k-th neighbour keeps a vanishing, positive weight: with k = 1 (or all k at one distance) the answer is the
    nearest neighbour (the mean of the tied). A distance of 0 (duplicates) is raised to 1e-9 of the samples' largest
    column range, or to 1 where all samples are equal.
    """
    return VaryingBandwidth(
        check_option(side, "side", ("query", "sample")),
        n_neighbors=check_integer(n_neighbors, "n_neighbors"),
        scale=float(_within_bounds(np.array(check_positive(scale, "scale")), "scale")),
    )


def _within_bounds(values: np.ndarray, name: str = "bandwidth") -> np.ndarray:
    if (values < SMALLEST).any() or (values > LARGEST).any():
        bad = values[(values < SMALLEST) | (values > LARGEST)].flat[0]
        raise ValueError(f"{name} must lie between {SMALLEST} and {LARGEST}, got {bad}")
    return values


def as_bandwidth(bandwidth: Any) -> float | np.ndarray | VaryingBandwidth:
    """A float, a read-only vector or matrix, or a varying bandwidth.

    Raises
    ------
    TypeError, ValueError
        If it is not a number, or not positive and finite, or a matrix that cannot be inverted.
    """
    if isinstance(bandwidth, VaryingBandwidth):
        return bandwidth
    if not np.iterable(bandwidth) or isinstance(bandwidth, str):
        return float(_within_bounds(np.array(check_positive(bandwidth, "bandwidth"))))
    if as_real(bandwidth, "bandwidth", ndim=(1, 2)).ndim == 1:
        return _within_bounds(check_vector(bandwidth, "bandwidth", positive=True))
    matrix = check_square_matrix(bandwidth, "bandwidth")
    _within_bounds(np.linalg.svd(matrix, compute_uv=False))
    return matrix


def bandwidth_key(bandwidth: float | np.ndarray | VaryingBandwidth) -> Any:
    """What two equal bandwidths have in common, hashable."""
    return (bandwidth.shape, bandwidth.tobytes()) if isinstance(bandwidth, np.ndarray) else bandwidth


def convert_bandwidth(
    bandwidth: float | np.ndarray,
    source: str,
    target: str,
    *,
    dimension: int = 1,
    parameter: float | None = None,
) -> float | np.ndarray:
    r"""The bandwidth of ``target`` that spreads its weight as widely as ``source`` does.

    Two kernels are held to be equally wide when one coordinate has the same standard deviation,
    :math:`h\sqrt{\mu_2(K)}`.

    Parameters
    ----------
    bandwidth : float or array, shape (k,)
        In the convention of ``source``.
    source, target : str
        Name of a kernel, or ``"std"``: the standard deviation itself. ``"radius"`` (the radius of the support,
        inf for full support) is a target only, and needs a compact source.
    dimension : int
        Dimension d of the space: the second moment depends on it.
    parameter : float, optional
        Shape (``nu``, ``alpha``) of the kernel that has one, or of both.

    Raises
    ------
    ValueError
        For an unknown name, or a kernel whose variance is infinite.

    Examples
    --------
    >>> round(convert_bandwidth(1.0, "gaussian", "epanechnikov"), 6)  # the square root of 5
    2.236068
    >>> convert_bandwidth(0.3, "tricube", "radius")
    0.3
    """
    if np.iterable(bandwidth) and not isinstance(bandwidth, str):
        values = check_vector(bandwidth, "bandwidth", positive=True)
    else:
        values = np.array(check_positive(bandwidth, "bandwidth"))
    if parameter is not None and not any(PROFILES[n].parameter for n in (source, target) if n in PROFILES):
        raise ValueError(f"parameter: neither {source!r} nor {target!r} has a shape, got {parameter!r}")

    def spread(name: str, role: str) -> float:
        if name == "std":
            return 1.0
        if name not in PROFILES:
            raise ValueError(f"{role} must be 'std' or one of {', '.join(PROFILES)}, got {name!r}")
        shape = shape_parameter(name, parameter if PROFILES[name].parameter else None)
        variance = PROFILES[name].second_moment(dimension, shape)
        if not math.isfinite(variance):
            raise ValueError(f"{role}: kernel {name!r} has no finite variance in dimension {dimension}")
        return math.sqrt(variance)

    if target == "radius":
        result = values * get_profile(source).support
    else:
        result = values * (spread(source, "source") / spread(target, "target"))
    return float(result) if result.ndim == 0 else result


def shape_parameter(name: str, value: float | None) -> float:
    """The checked shape parameter of a named profile, 0 where it has none.

    Raises
    ------
    ValueError
        If one is missing, or given to a profile that has none.
    """
    wanted = get_profile(name).parameter
    if wanted is None:
        if value is not None:
            raise ValueError(f"kernel {name!r} has no shape parameter, got {value!r}")
        return 0.0
    if value is None:
        raise ValueError(f"kernel {name!r} needs {wanted}")
    return check_positive(value, wanted)


def _spread_and_size(samples: Any) -> tuple[np.ndarray, int, int]:
    samples = as_real(samples, "samples", ndim=(1, 2)).astype(np.float64)
    samples = samples.reshape(len(samples), -1)
    n, d = samples.shape
    if n < 2:
        raise ValueError("samples must hold at least 2 rows: one row has no spread")
    # a constant column has no spread, to rounding: take it out exactly, not as 1e-17 of itself
    spread = np.where(np.ptp(samples, axis=0) > 0, samples.std(axis=0, ddof=1), 0.0)
    if not spread.all():
        raise ValueError(
            f"samples: column {int(np.argmin(spread))} is constant, so it has no density bandwidth"
        )
    return spread, n, d


def scott_bandwidth(samples: np.ndarray) -> np.ndarray:
    r"""Scott's rule for a *density* with the Gaussian kernel, one bandwidth a column.

    .. math:: h_c = \hat\sigma_c\, n^{-1/(d+4)}

    Parameters
    ----------
    samples : array, shape (n,) or (n, d)

    Returns
    -------
    array, shape (d,)
        In the units of the columns: ``scott_bandwidth(c * X) == c * scott_bandwidth(X)``.

    Raises
    ------
    ValueError
        For fewer than 2 samples or a constant column.

    Notes
    -----
    It aims at the integrated squared error of a density that looks normal (Scott 1992, section 6.3), not at
    regression: use :func:`locbook.select_bandwidth` there. For another kernel, convert it with
    :func:`convert_bandwidth`.

    Examples
    --------
    >>> import numpy as np
    >>> scott_bandwidth(np.array([0.0, 0.01, 0.02, 0.05])).round(4)
    array([0.0164])
    """
    spread, n, d = _spread_and_size(samples)
    return spread * n ** (-1.0 / (d + 4))


def silverman_bandwidth(samples: np.ndarray) -> np.ndarray:
    r"""Silverman's rule for a *density* with the Gaussian kernel, one bandwidth a column.

    .. math:: h_c = \hat\sigma_c \left(\frac{4}{(d+2)\,n}\right)^{1/(d+4)}

    Parameters, returns, errors and caveats are those of :func:`scott_bandwidth` (Silverman 1986, section 4.3.2).

    Examples
    --------
    >>> import numpy as np
    >>> silverman_bandwidth(np.array([0.0, 0.01, 0.02, 0.05])).round(4)
    array([0.0173])
    """
    spread, n, d = _spread_and_size(samples)
    return spread * (4.0 / ((d + 2) * n)) ** (1.0 / (d + 4))
