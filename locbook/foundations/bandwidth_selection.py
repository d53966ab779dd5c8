r"""Choosing the ruler: a bounded search for the bandwidth of a local mean.

Three scores, all from one fit and the diagonal of the smoother (:math:`n` samples, :math:`\nu = \mathrm{tr}\,S`):

==========  ====================================================================  ==============================
``"loo"``   :math:`\frac1n\sum_i (y_i-\hat y_{-i})^2`                             Stone (1974)
``"gcv"``   :math:`\frac1n\sum_i (y_i-\hat y_i)^2 \,/\, (1-\nu/n)^2`              Craven & Wahba (1979)
``"aicc"``  :math:`\log\hat\sigma^2 + 1 + \frac{2(\nu+1)}{n-\nu-2}`               Hurvich, Simonoff & Tsai (1998)
==========  ====================================================================  ==============================

The search runs over the logarithm of the bandwidth, between bounds in units of the data, with a fixed number of
steps: the answer is positive, scales with the data, and always comes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import engine
from .._validation import check_integer, check_option, check_positive
from ..engine import Problem
from ..kernels import Kernel
from ..kernels.bandwidth import VaryingBandwidth
from ..kernels.base import RadialKernel

METHODS = ("loo", "gcv", "aicc")


class BandwidthSelection(NamedTuple):
    """Result of :func:`select_bandwidth`.

    Attributes
    ----------
    bandwidth : float or array
        The best: a number, or the kernel's vector or matrix times the best factor.
    score : float
        Its score, lower is better.
    kernel : Kernel
        The kernel with that bandwidth.
    bandwidths, scores : arrays, shape (k,)
        All that were tried, ascending: numbers, or factors of the kernel's vector or matrix. The score is inf where
        some sample has no neighbour left, or no degree of freedom is left.
    at_bound : bool
        Whether the best is the smallest or largest allowed: the minimum may lie beyond.
    """

    bandwidth: float | np.ndarray
    score: float
    kernel: Kernel
    bandwidths: np.ndarray
    scores: np.ndarray
    at_bound: bool


def select_bandwidth(
    samples: Any,
    values: Any,
    kernel: Kernel | str = "gaussian",
    *,
    method: str = "loo",
    bounds: tuple[float, float] | None = None,
    n_grid: int = 25,
    sample_weight: Any = None,
) -> BandwidthSelection:
    """Choose the bandwidth of a local mean by a bounded search.

    Parameters
    ----------
    samples : array, shape (n, d)
    values : array, shape (n,) or (n, p)
        The squared errors of several outputs are added up.
    kernel : Kernel or str
        With one bandwidth in it. Of a number, only the kernel's form matters; a vector or matrix keeps its
        proportions, and a common factor is chosen.
    method : {"loo", "gcv", "aicc"}
        Leave-one-out, generalised cross-validation, corrected Akaike criterion.
    bounds : (float, float), optional
        Smallest and largest bandwidth (or factor). By default from half the distance between close neighbours to
        twice the largest distance.
    n_grid : int
        Bandwidths tried on a logarithmic grid, at least 3; at most 40 more refine the best.
    sample_weight : array, shape (n,), optional
        Multiplicities. Leave-one-out leaves a sample out with all its multiplicity.

    Returns
    -------
    BandwidthSelection

    Raises
    ------
    ValueError
        For fewer than 3 samples, samples that are all equal, bounds that are not ascending, a kernel without one
        fixed bandwidth, or when no bandwidth in the bounds has a finite score.

    Examples
    --------
    >>> import numpy as np
    >>> import locbook as lb
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.3 * np.random.default_rng(0).normal(size=60)
    >>> chosen = lb.select_bandwidth(x, y, method="loo")
    >>> 0.1 < chosen.bandwidth < 1.0
    True
    """
    from scipy.optimize import minimize_scalar  # a slow import

    check_option(method, "method", METHODS)
    n_grid = check_integer(n_grid, "n_grid", minimum=3)
    problem = Problem.check(samples, samples, kernel, sample_weight=sample_weight)
    flat = problem.values(values)
    flat = flat.reshape(len(flat), -1)
    weights = problem.sample_weight
    if weights is not None and not weights.all():  # a multiplicity of 0 is no sample
        samples, flat, weights = problem.samples[weights > 0], flat[weights > 0], weights[weights > 0]
        problem = Problem.check(samples, samples, problem.kernel, sample_weight=weights)
    if len(problem.samples) < 3:
        raise ValueError(
            f"samples must hold at least 3 rows to choose a bandwidth, got {len(problem.samples)}"
        )
    ruler = problem.kernel.bandwidth
    if ruler is None or isinstance(ruler, VaryingBandwidth):
        raise ValueError(f"kernel {problem.kernel!r} has no one fixed bandwidth to choose")
    unit = ruler if isinstance(ruler, np.ndarray) else 1.0
    low, high = _default_bounds(problem, unit) if bounds is None else _checked_bounds(bounds)
    tried: dict[float, float] = {}

    def score(step: float) -> float:
        factor = low * math.exp(step)
        value = bandwidth_score(
            problem.with_kernel(problem.kernel.with_bandwidth(factor * unit)), flat, method
        )
        tried[factor] = value
        return value

    width = math.log(high / low)
    steps = np.linspace(0.0, width, n_grid)
    grid = np.array([score(step) for step in steps])
    if not np.isfinite(grid).any():
        raise ValueError(
            f"bounds ({low:.3g}, {high:.3g}): no bandwidth between them leaves every sample a neighbour; widen them"
        )
    best = int(np.argmin(grid))
    around = (steps[max(best - 1, 0)], steps[min(best + 1, n_grid - 1)])
    # Brent's parabola cannot pass through infinity: what is not allowed is worse than all that is
    forbidden = 10.0 * float(np.abs(grid[np.isfinite(grid)]).max()) + 1.0
    minimize_scalar(
        lambda step: min(score(step), forbidden),
        bounds=around,
        method="bounded",
        options={"maxiter": 40, "xatol": 1e-4},
    )
    bandwidths = np.array(sorted(tried))
    scores = np.array([tried[h] for h in bandwidths])
    chosen = int(np.argmin(scores))
    factor = float(bandwidths[chosen])
    bandwidth = factor * unit
    margin = 1e-3 * width
    return BandwidthSelection(
        bandwidth,
        float(scores[chosen]),
        problem.kernel.with_bandwidth(bandwidth),
        bandwidths,
        scores,
        not margin < math.log(factor / low) < width - margin,
    )


def bandwidth_score(problem: Problem, values: np.ndarray, method: str) -> float:
    """Score of one bandwidth for values (n, p); inf where a sample is left without a neighbour."""
    weights = problem.sample_weight
    size = float(len(values)) if weights is None else float(weights.sum())

    def average(residuals: np.ndarray) -> float:
        squared = (residuals**2).sum(axis=1)
        return float(squared.mean() if weights is None else weights @ squared / size)

    if method == "loo":
        hollow = problem.with_kernel(problem.kernel.hollow())
        taken = np.ones(len(values), dtype=bool) if weights is None else weights > 0
        predictions = engine.mean(hollow, values, "nan", warn=False)[taken]
        if np.isnan(predictions).any():
            return math.inf
        if weights is not None:
            weights = weights[taken]
        return average(values[taken] - predictions)
    spent = float(np.nansum(engine.self_weights(problem)))
    error = average(values - engine.mean(problem, values, "nearest"))
    if method == "gcv":
        return error / (1.0 - spent / size) ** 2 if spent < size * (1 - 1e-12) else math.inf
    left = size - spent - 2.0
    return math.log(max(error, 1e-300)) + 1.0 + 2.0 * (spent + 1.0) / left if left > 1e-9 * size else math.inf


def _checked_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be a pair of numbers, got {bounds!r}") from None
    low, high = check_positive(low, "bounds[0]"), check_positive(high, "bounds[1]")
    if not low < high:
        raise ValueError(f"bounds must ascend, got ({low}, {high})")
    return low, high


def _default_bounds(problem: Problem, unit: float | np.ndarray) -> tuple[float, float]:
    """Half the distance between close neighbours (the lower tenth), and twice the largest distance seen."""
    leaf = next(k for k in problem.kernel.leaves() if isinstance(k, RadialKernel))
    ruler = RadialKernel("laplace", unit, metric=leaf.metric, on=leaf.on)
    some = np.unique(np.linspace(0, len(problem.samples) - 1, 200).astype(int))
    closest, farthest = [], 0.0
    for row in some:  # one row at a time: memory stays O(n)
        distances = -ruler.log(np.asarray(problem.samples[[row]], dtype=np.float64), problem.samples)
        distances = distances[(distances > 0) & (distances < np.inf)]
        if len(distances):
            closest.append(distances.min())
            farthest = max(farthest, float(distances.max()))
    if not closest:
        raise ValueError("samples are all equal: no bandwidth can be chosen")
    return 0.5 * float(np.quantile(closest, 0.1)), 2.0 * farthest
