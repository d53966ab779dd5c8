"""NumPy twins of the engine: the same answers, said as plainly as possible, with every weight in memory.

They are for reading and for testing. :func:`weights` evaluates a kernel pair by pair; each reduction below is then a
line or two. Nothing here is tiled, streamed, shifted or compiled, so far queries underflow as the formulas do.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from ..kernels import base
from ..kernels.bandwidth import VaryingBandwidth
from ..kernels.base import Kernel
from ..kernels.metrics import Metric


def distances(
    queries: np.ndarray, samples: np.ndarray, metric: Metric, scale: np.ndarray | float = 1.0
) -> np.ndarray:
    """All distances, shape (m, n); ``scale`` divides the differences column by column."""
    queries, samples = np.asarray(queries, float), np.asarray(samples, float)
    difference = (queries[:, None, :] - samples[None, :, :]) / scale
    value = metric.parameter
    match metric.name:
        case "euclidean":
            return np.sqrt((difference**2).sum(-1))
        case "manhattan":
            return np.abs(difference).sum(-1)
        case "chebyshev":
            return np.abs(difference).max(-1)
        case "minkowski":
            return (np.abs(difference) ** value).sum(-1) ** (1 / value)
        case "mahalanobis":
            return np.sqrt(np.einsum("ijc,cd,ijd->ij", difference, np.linalg.inv(value), difference))
        case "hamming":
            return (difference != 0).mean(-1)
        case "haversine":
            cosines = np.cos(queries[:, None, 0]) * np.cos(samples[None, :, 0])
            a = np.sin(difference[..., 0] / 2) ** 2 + cosines * np.sin(difference[..., 1] / 2) ** 2
            return 2 * np.arcsin(np.sqrt(np.minimum(a, 1)))
        case "periodic":
            raw = difference * scale
            return np.sqrt((((raw - value * np.round(raw / value)) / scale) ** 2).sum(-1))
        case "cosine":
            lengths = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(samples, axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                return np.where(lengths > 0, np.maximum(0, 1 - queries @ samples.T / lengths), 1.0)
        case "nan_euclidean":
            present = ~np.isnan(difference)
            with np.errstate(invalid="ignore", divide="ignore"):
                squared = np.nansum(difference**2, axis=-1) * difference.shape[-1] / present.sum(-1)
            return np.where(present.any(-1), np.sqrt(squared), np.inf)
        case _:
            return np.array([[value(q, x) for x in samples] for q in queries], dtype=float)


def _rivals(d: np.ndarray, taken: np.ndarray | None) -> np.ndarray:
    """The distances, infinite where a sample is no neighbour to choose."""
    return d if taken is None else np.where(taken, d, np.inf)


def _kth_distance(d: np.ndarray, k: int) -> np.ndarray:
    """The k-th smallest of each row, or the largest finite one where there are fewer."""
    return np.sort(d, axis=1)[np.arange(len(d)), np.clip(np.isfinite(d).sum(1), 1, k) - 1]


@singledispatch
def weights(
    kernel: Kernel, queries: np.ndarray, samples: np.ndarray, taken: np.ndarray | None = None
) -> np.ndarray:
    """Weights of all pairs, shape (m, n), not normalised; ``taken`` says who may be a neighbour of whom."""
    raise TypeError(f"no twin for {kernel!r}")


@weights.register
def _(kernel: base.RadialKernel, queries, samples, taken=None):
    columns = kernel.columns(queries.shape[1])
    q, x, ruler = queries[:, columns], samples[:, columns], kernel.ruler
    if isinstance(ruler, VaryingBandwidth):
        d = distances(q, x, kernel.metric)
        if ruler.values is not None:
            h = ruler.values
        else:
            if ruler.side == "sample":  # to the k-th other sample
                rivals = _rivals(distances(x, x, kernel.metric), ~np.eye(len(x), dtype=bool))
            else:
                rivals = _rivals(d, taken)
            h = _kth_distance(rivals, ruler.n_neighbors) * (1 + 1e-12)
            spread = np.ptp(x, axis=0).max()
            h = np.maximum(h, 1e-9 * spread if spread > 0 else 1.0) * ruler.scale
        u = d / (h[:, None] if ruler.side == "query" else h[None, :])
    elif np.ndim(ruler) == 2:
        inverse = np.linalg.inv(ruler)
        u = np.sqrt((((q[:, None] - x[None]) @ inverse.T) ** 2).sum(-1))
    else:
        scaled = np.ndim(ruler) == 1
        u = distances(q, x, kernel.metric, ruler if scaled else 1.0) / (1.0 if scaled else ruler)
    with np.errstate(over="ignore", under="ignore"):
        return profile_weights(kernel, u)


def profile_weights(kernel: base.RadialKernel, u: np.ndarray) -> np.ndarray:
    """The profiles once more, as functions of u."""
    a = kernel.parameter
    inside = np.clip(1 - u, 0, None)
    match kernel.profile:
        case "uniform":
            return (u <= 1).astype(float)
        case "triangular":
            return inside
        case "epanechnikov" | "biweight" | "triweight":
            return np.clip(1 - u**2, 0, None) ** {"e": 1, "b": 2, "t": 3}[kernel.profile[0]]
        case "tricube":
            return np.clip(1 - u**3, 0, None) ** 3
        case "cosine":
            return np.where(u < 1, np.cos(np.pi * np.minimum(u, 1) / 2), 0.0)
        case "gaussian":
            return np.exp(-(u**2) / 2)
        case "laplace":
            return np.exp(-u)
        case "cauchy":
            return 1 / (1 + u**2)
        case "student_t":
            return (1 + u**2 / a) ** (-(a + 1) / 2)
        case "rational_quadratic":
            return (1 + u**2 / (2 * a)) ** -a
        case _:
            function = kernel.profile if kernel.profile is not None else kernel.log_profile
            values = np.vectorize(getattr(function, "py_func", function), otypes=[float])(u**2)
            return values if kernel.profile is not None else np.exp(values)


@weights.register
def _(kernel: base.SoftmaxKernel, queries, samples, taken=None):
    columns = kernel.columns(queries.shape[1])
    return np.exp(queries[:, columns] @ samples[:, columns].T / kernel.temperature)


@weights.register
def _(kernel: base.VonMisesKernel, queries, samples, taken=None):
    columns = kernel.columns(queries.shape[1])
    return np.exp(
        kernel.concentration * np.cos(queries[:, None, columns] - samples[None][..., columns]).sum(-1)
    )


@weights.register
def _(kernel: base.NeighborKernel, queries, samples, taken=None):
    columns = kernel.columns(queries.shape[1])
    d = _rivals(distances(queries[:, columns], samples[:, columns], kernel.metric), taken)
    if kernel.ties == "include":
        chosen = d <= _kth_distance(d, kernel.n_neighbors)[:, None]
    else:
        chosen = np.zeros(d.shape, dtype=bool)
        np.put_along_axis(chosen, np.argsort(d, axis=1, kind="stable")[:, : kernel.n_neighbors], True, axis=1)
    return (chosen & np.isfinite(d)).astype(float)


@weights.register
def _(kernel: base.DiscreteKernel, queries, samples, taken=None):
    column = kernel.on[0]
    return kernel.matrix[np.ix_(queries[:, column].astype(int), samples[:, column].astype(int))]


@weights.register
def _(kernel: base.CausalKernel, queries, samples, taken=None):
    return (samples[None, :, kernel.on[0]] <= queries[:, None, kernel.on[0]]).astype(float)


@weights.register
def _(kernel: base.ConstantKernel, queries, samples, taken=None):
    return np.full((len(queries), len(samples)), kernel.value)


@weights.register
def _(kernel: base.SumKernel, queries, samples, taken=None):
    return weights(kernel.left, queries, samples, taken) + weights(kernel.right, queries, samples, taken)


@weights.register
def _(kernel: base.ProductKernel, queries, samples, taken=None):
    return weights(kernel.left, queries, samples, taken) * weights(kernel.right, queries, samples, taken)


@weights.register
def _(kernel: base.ScaledKernel, queries, samples, taken=None):
    return kernel.factor * weights(kernel.kernel, queries, samples, taken)


@weights.register
def _(kernel: base.HollowKernel, queries, samples, taken=None):
    others = ~np.eye(len(queries), dtype=bool)
    inner = weights(kernel.kernel, queries, samples, others if taken is None else taken & others)
    return np.where(others, inner, 0.0)


@weights.register
def _(kernel: base.MaskedKernel, queries, samples, taken=None):
    seen = kernel.mask if taken is None else taken & kernel.mask
    return np.where(kernel.mask, weights(kernel.kernel, queries, samples, seen), 0.0)


def log_sum(w: np.ndarray) -> np.ndarray:
    """Logarithm of the sum of the weights, shape (m,)."""
    return np.log(w.sum(1))


def mean(w: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Weighted mean, shape (m, p)."""
    return w @ values / w.sum(1, keepdims=True)


def classes(w: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Share of each class, shape (m, c)."""
    return mean(w, np.eye(n_classes)[labels])


def moments(
    w: np.ndarray,
    queries: np.ndarray,
    samples: np.ndarray,
    values: np.ndarray,
    table: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of w z z' and w z y', z the monomials of x - query."""
    difference = samples[None] - queries[:, None]
    z = np.ones((*w.shape, len(table[0])))
    for k in range(1, len(table[0])):
        z[..., k] = z[..., table[0][k]] * difference[..., table[1][k]]
    return np.einsum("ij,ijf,ijg->ifg", w, z, z), np.einsum("ij,ijf,jp->ifp", w, z, values)


def quantile(w: np.ndarray, values: np.ndarray, level: float) -> np.ndarray:
    """The smallest value at which the share of the weight reaches the level, for values of shape (n,)."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(w[:, order], axis=1)
    reached = (share >= level * share[:, -1:]) & (share > 0)
    return values[order][reached.argmax(1)]


def nearest(d: np.ndarray, k: int) -> np.ndarray:
    """Rows of the k nearest, by distance, then by row."""
    return np.argsort(d, axis=1, kind="stable")[:, :k]
