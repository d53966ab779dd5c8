r"""Choosing the ruler: a bounded search for the bandwidth of a local mean.

Three scores, all from one fit and the diagonal of the smoother (:math:`n` samples, :math:`\nu = \mathrm{tr}\,S`):

==========  ====================================================================  ==============================
``"loo"``   :math:`\frac1n\sum_i (y_i-\hat y_{-i})^2`                             Stone (1974)
``"gcv"``   :math:`\frac1n\sum_i (y_i-\hat y_i)^2 \,/\, (1-\nu/n)^2`              Craven & Wahba (1979)
``"aicc"``  :math:`\log\hat\sigma^2 + 1 + \frac{2(\nu+1)}{n-\nu-2}`               Hurvich, Simonoff & Tsai (1998)
==========  ====================================================================  ==============================

The search runs over the logarithm of the bandwidth, between bounds in units of the data, with a fixed number of
steps: the answer is positive, scales with the data, and always comes. From the best of a grid, ``"gradient"`` follows
the derivative of the leave-one-out loss (:func:`locbook.local_mean_vjp`): so it can choose one bandwidth a column.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import engine
from .._validation import check_integer, check_option, check_positive
from ..engine import LocalMeanGradient, Problem
from ..kernels import Kernel
from ..kernels.bandwidth import VaryingBandwidth
from ..kernels.base import RadialKernel

METHODS = ("loo", "gcv", "aicc")
#: How far an entry of a vector may leave the bounds of the common factor.
BEYOND = 100.0


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
        All that were tried, ascending: numbers, or factors of the kernel's vector or matrix; by ``"gradient"`` for a
        vector, vectors, shape (k, d), in the order of trial. The score is inf where some sample has no neighbour left,
        or no degree of freedom is left.
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
        With exactly one bandwidth in it. If that is a number, its size does not matter, it is chosen anew; a vector or
        matrix keeps its proportions and gets a common factor, but ``"gradient"`` chooses each entry of a vector.
    method : {"loo", "gcv", "aicc", "gradient"}
        Leave-one-out, generalised cross-validation, corrected Akaike criterion; leave-one-out by its gradient
        (L-BFGS in the logarithms).
    bounds : (float, float), optional
        Smallest and largest bandwidth (or factor). By default from half the distance between close neighbours to
        twice the largest distance, both as seen from at most 200 of the samples; by ``"gradient"`` an entry of a
        vector may go a hundred times beyond, for a column that counts for more or for less than the others.
    n_grid : int
        Bandwidths tried on a logarithmic grid, at least 3; at most 40 more refine the best (by ``"gradient"``, at most
        100 steps).
    sample_weight : array, shape (n,), optional
        Multiplicities. Leave-one-out leaves a sample out with all its multiplicity.

    Returns
    -------
    BandwidthSelection

    Raises
    ------
    TypeError, ValueError
        If an argument is not fit; for fewer than 3 samples, samples that are all equal, bounds that are not ascending,
        a kernel without one fixed bandwidth, or when no bandwidth in the bounds has a finite score. By ``"gradient"``
        also for the uniform kernel, whose derivative is 0, and for a matrix.

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

    check_option(method, "method", (*METHODS, "gradient"))
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
    size = size_of(flat)
    flat = flat / size
    if method == "gradient":
        return _of_size(_follow_gradient(problem, flat, unit, low, high, n_grid), size, method)
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
    around, forbidden = _best_of_grid(steps, np.array([score(step) for step in steps]), low, high)
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
    found = BandwidthSelection(
        bandwidth,
        float(scores[chosen]),
        problem.kernel.with_bandwidth(bandwidth),
        bandwidths,
        scores,
        not margin < math.log(factor / low) < width - margin,
    )
    return _of_size(found, size, method)


def size_of(values: np.ndarray) -> float:
    """A power of two by which values are divided, so that their squares stay among the floats."""
    largest = float(np.abs(values).max())
    return 1.0 if largest == 0 or 1e-100 < largest < 1e100 else 2.0 ** float(np.frexp(largest)[1] - 1)


def _of_size(found: BandwidthSelection, size: float, method: str) -> BandwidthSelection:
    """The scores of the values, from those of the values over ``size``."""
    if size == 1.0:
        return found
    if method == "aicc":  # a logarithm
        more = 2.0 * math.log(size)
        return found._replace(score=found.score + more, scores=found.scores + more)
    with np.errstate(over="ignore", under="ignore"):
        scores = found.scores * size * size
        return found._replace(score=float(np.float64(found.score) * size * size), scores=scores)


def _best_of_grid(
    steps: np.ndarray, grid: np.ndarray, low: float, high: float
) -> tuple[tuple[float, float], float]:
    """The steps around the best, and a score worse than all: Brent's parabola cannot pass through infinity."""
    if not np.isfinite(grid).any():
        raise ValueError(
            f"bounds ({low:.3g}, {high:.3g}): no bandwidth between them leaves every sample a neighbour; widen them"
        )
    best = int(np.argmin(grid))
    around = (float(steps[max(best - 1, 0)]), float(steps[min(best + 1, len(steps) - 1)]))
    return around, 10.0 * float(np.abs(grid[np.isfinite(grid)]).max()) + 1.0


def leave_one_out_loss(
    problem: Problem, values: np.ndarray, wrt: tuple[str, ...]
) -> tuple[float, LocalMeanGradient | None]:
    """Leave-one-out loss of values (n, p) and its derivatives; inf and None where a sample is left alone."""
    hollow = problem.with_kernel(problem.kernel.hollow())
    forward = engine.mean(hollow, values, "nan", warn=False, with_log_sum=True)
    residuals = forward[0] - values
    if np.isnan(residuals).any():
        return math.inf, None
    weights = np.ones(len(values)) if problem.sample_weight is None else problem.sample_weight
    share = (weights / weights.sum())[:, None]
    loss = float((share * residuals**2).sum())
    return loss, engine.mean_vjp(hollow, values, 2.0 * share * residuals, wrt, forward)


def _follow_gradient(
    problem: Problem, values: np.ndarray, unit: float | np.ndarray, low: float, high: float, n_grid: int
) -> BandwidthSelection:
    """Minimum of the leave-one-out loss over the logarithms of the bandwidths, from the best of a grid."""
    from scipy.optimize import minimize  # a slow import

    leaves = list(problem.kernel.leaves())
    (number,) = (k for k, leaf in enumerate(leaves) if isinstance(leaf, RadialKernel))
    if leaves[number].profile == "uniform":
        raise ValueError(
            "method='gradient': the derivative of the uniform kernel is 0; choose another method"
        )
    if np.ndim(unit) == 2:
        raise ValueError("method='gradient' learns a number or a vector, got a matrix; see learn_metric")
    width = math.log(high / low)
    tried: list[tuple[np.ndarray, float]] = []

    def at(step: np.ndarray) -> tuple[float | np.ndarray, Problem]:
        bandwidth = low * np.exp(step) * unit
        bandwidth = float(bandwidth[0]) if np.ndim(unit) == 0 else bandwidth
        return bandwidth, problem.with_kernel(problem.kernel.with_bandwidth(bandwidth))

    def one(step: float) -> float:
        bandwidth, changed = at(np.full(np.size(unit), step))
        score = bandwidth_score(changed, values, "loo")
        tried.append((bandwidth, score))
        return score

    steps = np.linspace(0.0, width, n_grid)
    grid = np.array([one(step) for step in steps])
    around, forbidden = _best_of_grid(steps, grid, low, high)
    size = (
        float(grid.min()) or 1.0
    )  # the loss in units of itself: the tolerances do not know those of the values

    def objective(step: np.ndarray) -> tuple[float, np.ndarray]:
        bandwidth, changed = at(step)
        loss, gradient = leave_one_out_loss(changed, values, ("kernel",))
        tried.append((bandwidth, loss))
        if gradient is None:
            return forbidden / size, np.zeros(len(step))
        return loss / size, np.ravel(bandwidth * gradient.kernel[number]) / size

    beyond = 0.0 if np.ndim(unit) == 0 else math.log(BEYOND)
    minimize(
        objective,
        np.full(np.size(unit), steps[int(np.argmin(grid))]),
        jac=True,
        method="L-BFGS-B",
        bounds=[around if np.ndim(unit) == 0 else (-beyond, width + beyond)] * np.size(unit),
        options={"maxiter": 100, "ftol": 1e-12, "gtol": 1e-7},
    )
    if np.ndim(unit) == 0:
        tried = sorted(dict(tried).items())
    bandwidths, scores = (np.array(part) for part in zip(*tried, strict=True))
    best = int(np.argmin(scores))
    bandwidth = float(bandwidths[best]) if np.ndim(unit) == 0 else bandwidths[best]
    inside = np.log(bandwidth / unit / low)
    margin = 1e-3 * width
    return BandwidthSelection(
        bandwidth,
        float(scores[best]),
        problem.kernel.with_bandwidth(bandwidth),
        bandwidths,
        scores,
        bool(np.any((inside <= margin - beyond) | (inside >= width + beyond - margin))),
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
