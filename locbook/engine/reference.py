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


def scaled_distances(kernel: base.RadialKernel, queries, samples, taken=None) -> tuple:
    """Distances u = d / h of all pairs, the h that divides, and the k-th neighbours that it is measured to.

    ``kernel.ruler`` is the bandwidth: a number, one for each column, a matrix, or one for each query or sample.
    """
    columns = kernel.columns(queries.shape[1])
    q, x, ruler, rows = queries[:, columns], samples[:, columns], kernel.ruler, None
    if isinstance(ruler, VaryingBandwidth):
        d = distances(q, x, kernel.metric)
        if ruler.values is not None:
            h = ruler.values
        else:
            if ruler.side == "sample":  # to the k-th other sample
                rivals = _rivals(distances(x, x, kernel.metric), ~np.eye(len(x), dtype=bool))
            else:
                rivals = _rivals(d, taken)
            h = _kth_distance(rivals, ruler.n_neighbors)
            order = np.argsort(rivals, axis=1, kind="stable")
            rows = order[np.arange(len(h)), (rivals <= h[:, None]).sum(1).clip(1, ruler.n_neighbors) - 1]
            spread = np.ptp(x, axis=0).max()
            h = np.maximum(h * (1 + 1e-12), 1e-9 * spread if spread > 0 else 1.0) * ruler.scale
        h = h[:, None] if ruler.side == "query" else h[None, :]
        return d / h, np.broadcast_to(h, d.shape), rows
    if np.ndim(ruler) == 2:
        inverse = np.linalg.inv(ruler)
        return np.sqrt((((q[:, None] - x[None]) @ inverse.T) ** 2).sum(-1)), 1.0, None
    scaled = np.ndim(ruler) == 1
    h = 1.0 if scaled else ruler
    return distances(q, x, kernel.metric, ruler if scaled else 1.0) / h, h, None


@weights.register
def _(kernel: base.RadialKernel, queries, samples, taken=None):
    with np.errstate(over="ignore", under="ignore"):
        return profile_weights(kernel, scaled_distances(kernel, queries, samples, taken)[0])


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
            function = kernel.function_given
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
def _(kernel: base.RelativeBiasKernel, queries, samples, taken=None):
    offsets = queries[:, None, kernel.on[0]] - samples[None, :, kernel.on[0]]
    return np.exp(kernel.bias[np.clip(offsets - kernel.first, 0, len(kernel.bias) - 1).astype(int)])


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


# -- the gradient ------------------------------------------------------------------------------------------------------


def mean_vjp(
    kernel: Kernel,
    queries: np.ndarray,
    samples: np.ndarray,
    values: np.ndarray,
    cotangent: np.ndarray,
    sample_weight: np.ndarray | None = None,
    mask: np.ndarray | None = None,
) -> tuple:
    """What ``(cotangent * mean).sum()`` changes by: queries, samples, values, multiplicities, parameters by leaf."""
    k = weights(kernel, queries, samples, mask)
    k = k if mask is None else np.where(mask, k, 0.0)
    copies = np.ones(len(samples)) if sample_weight is None else sample_weight
    w = k * copies
    some = w.sum(1, keepdims=True) > 0
    total = np.where(some, w.sum(1, keepdims=True), 1.0)
    error = np.where(
        some, cotangent @ values.T - (cotangent * (w @ values / total)).sum(1, keepdims=True), 0.0
    )
    of_queries, of_samples = np.zeros(queries.shape), np.zeros(samples.shape)
    by_weight = error * copies / total
    if mask is not None:
        by_weight = np.where(mask, by_weight, 0.0)
    leaves = pull(kernel, by_weight, queries, samples, mask, of_queries, of_samples)
    of_values = (w / total).T @ np.where(some, cotangent, 0.0)
    return of_queries, of_samples, of_values, (k * error / total).sum(0), tuple(leaves)


@singledispatch
def pull(kernel: Kernel, by_weight, queries, samples, taken, of_queries, of_samples) -> list:
    """From the derivatives by the weights (m, n) to the coordinates, added up, and the leaves' parameters, a list."""
    return [None]


@pull.register
def _(kernel: base.RadialKernel, by_weight, queries, samples, taken, of_queries, of_samples):
    columns, ruler = kernel.columns(queries.shape[1]), kernel.ruler
    q, x = queries[:, columns], samples[:, columns]
    u, h, rows = scaled_distances(kernel, queries, samples, taken)
    by_u = by_weight * profile_slopes(kernel, u)
    if np.ndim(ruler) == 2:
        inverse = np.linalg.inv(ruler)
        difference = q[:, None] - x[None]
        by_z = np.where(u > 0, by_u / np.where(u > 0, u, 1), 0)[..., None] * (difference @ inverse.T)
        of_queries[:, columns] += (by_z @ inverse).sum(1)
        of_samples[:, columns] -= (by_z @ inverse).sum(0)
        return [-inverse.T @ np.einsum("ijr,ijc->rc", by_z, difference) @ inverse.T]
    scaled = np.ndim(ruler) == 1 and not isinstance(ruler, VaryingBandwidth)
    here, there, by_scale = distance_slopes(q, x, kernel.metric, ruler if scaled else 1.0)
    of_queries[:, columns] += ((by_u / h)[..., None] * here).sum(1)
    of_samples[:, columns] += ((by_u / h)[..., None] * there).sum(0)
    if scaled:
        return [np.einsum("ij,ijc->c", by_u, by_scale)]
    by_h = -by_u * u / h
    if not isinstance(ruler, VaryingBandwidth):
        return [by_h.sum()]
    by_h = by_h.sum(1 if ruler.side == "query" else 0)
    if rows is None:
        return [by_h]
    by_distance = (by_h * ruler.scale * (1 + 1e-12))[:, None]
    line, target = np.arange(len(rows)), of_queries
    if ruler.side == "sample":
        target = of_samples
        here, there, _ = distance_slopes(x, x, kernel.metric, 1.0)
    target[:, columns] += by_distance * here[line, rows]
    np.add.at(of_samples, (rows[:, None], columns), by_distance * there[line, rows])
    return [None]


def distance_slopes(
    queries: np.ndarray, samples: np.ndarray, metric: Metric, scale: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Derivatives of :func:`distances` by query, sample and scale, shape (m, n, d); 0 where two points coincide."""
    difference = queries[:, None, :] - samples[None, :, :]
    d = distances(queries, samples, metric, scale)[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        match metric.name:
            case "cosine":
                lengths = [np.linalg.norm(a, axis=-1, keepdims=True) for a in (queries, samples)]
                e, f = (queries / lengths[0])[:, None], (samples / lengths[1])[None]
                here, there = ((1 - d) * e - f) / lengths[0][:, None], ((1 - d) * f - e) / lengths[1][None]
                return np.nan_to_num(here), np.nan_to_num(there), np.nan
            case "haversine":
                latitudes, half = (queries[:, None, :1], samples[None, :, :1]), difference / 2
                a, across = np.sin(d / 2) ** 2, np.sin(half[..., 1:]) ** 2
                along = np.sin(half[..., :1]) * np.cos(half[..., :1])
                here, there = (np.cos(latitude) for latitude in latitudes)
                turn = here * there * np.sin(half[..., 1:]) * np.cos(half[..., 1:])
                by_a = np.nan_to_num(1 / np.sqrt(a * (1 - a)), posinf=0)
                by_query = np.concatenate([along - np.sin(latitudes[0]) * there * across, turn], -1)
                by_sample = np.concatenate([along + np.sin(latitudes[1]) * here * across, turn], -1)
                return by_a * by_query, -by_a * by_sample, np.nan
            case "mahalanobis":
                slope = difference @ np.linalg.inv(metric.parameter) / d
                return np.nan_to_num(slope), -np.nan_to_num(slope), np.nan
            case "periodic":
                difference = difference - metric.parameter * np.round(difference / metric.parameter)
                slope = difference / scale / d
            case "euclidean":
                slope = difference / scale / d
            case "nan_euclidean":
                present = ~np.isnan(difference)
                difference = np.where(present, difference, 0.0)
                slope = difference / scale / d * difference.shape[-1] / present.sum(-1, keepdims=True)
            case "manhattan":
                slope = np.sign(difference)
            case "chebyshev":
                first = np.abs(difference / scale).argmax(-1)[..., None]
                slope = np.sign(difference) * (np.arange(difference.shape[-1]) == first)
            case "minkowski":
                slope = (np.abs(difference / scale) / d) ** (metric.parameter - 1) * np.sign(difference)
            case _:
                raise ValueError(f"metric {metric!r} has no derivative")
        slope = np.where(d > 0, slope, 0.0) / scale
        return slope, -slope, -slope * difference / scale


def profile_slopes(kernel: base.RadialKernel, u: np.ndarray) -> np.ndarray:
    """Derivatives of :func:`profile_weights` by u."""
    a, inside = kernel.parameter, u < 1
    match kernel.profile:
        case "uniform":
            return np.zeros(u.shape)
        case "triangular":
            return -1.0 * inside
        case "epanechnikov" | "biweight" | "triweight":
            power = {"e": 1, "b": 2, "t": 3}[kernel.profile[0]]
            return -2 * power * u * np.where(inside, 1 - u**2, 0) ** (power - 1) * inside
        case "tricube":
            return -9 * u**2 * (1 - u**3) ** 2 * inside
        case "cosine":
            return -np.pi / 2 * np.sin(np.pi * u / 2) * inside
        case "gaussian":
            return -u * np.exp(-(u**2) / 2)
        case "laplace":
            return -np.exp(-u)
        case "cauchy":
            return -2 * u / (1 + u**2) ** 2
        case "student_t":
            return -(a + 1) / a * u * (1 + u**2 / a) ** (-(a + 3) / 2)
        case "rational_quadratic":
            return -u * (1 + u**2 / (2 * a)) ** (-a - 1)
        case _:
            step = 6e-6 * np.maximum(u, 1.0)
            return (profile_weights(kernel, u + step) - profile_weights(kernel, u - step)) / (2 * step)


@pull.register
def _(kernel: base.SoftmaxKernel, by_weight, queries, samples, taken, of_queries, of_samples):
    columns = kernel.columns(queries.shape[1])
    q, x = queries[:, columns], samples[:, columns]
    by_score = by_weight * weights(kernel, queries, samples) / kernel.temperature
    of_queries[:, columns] += by_score @ x
    of_samples[:, columns] += by_score.T @ q
    return [-(by_score * (q @ x.T)).sum() / kernel.temperature]


@pull.register
def _(kernel: base.VonMisesKernel, by_weight, queries, samples, taken, of_queries, of_samples):
    columns = kernel.columns(queries.shape[1])
    turn = queries[:, None, columns] - samples[None][..., columns]
    by_log = (by_weight * weights(kernel, queries, samples))[..., None]
    of_queries[:, columns] -= kernel.concentration * (by_log * np.sin(turn)).sum(1)
    of_samples[:, columns] += kernel.concentration * (by_log * np.sin(turn)).sum(0)
    return [(by_log * np.cos(turn)).sum()]


@pull.register
def _(kernel: base.DiscreteKernel, by_weight, queries, samples, taken, of_queries, of_samples):
    table, column = np.zeros(kernel.matrix.shape), kernel.on[0]
    np.add.at(table, np.ix_(queries[:, column].astype(int), samples[:, column].astype(int)), by_weight)
    return [table]


@pull.register
def _(kernel: base.RelativeBiasKernel, by_weight, queries, samples, taken, of_queries, of_samples):
    offsets = queries[:, None, kernel.on[0]] - samples[None, :, kernel.on[0]]
    table, place = np.zeros(len(kernel.bias)), np.clip(offsets - kernel.first, 0, len(kernel.bias) - 1)
    np.add.at(table, place.astype(int), by_weight * weights(kernel, queries, samples))
    return [table]


@pull.register
def _(kernel: base.SumKernel, by_weight, queries, samples, taken, of_queries, of_samples):
    return [
        x
        for part in kernel.parts
        for x in pull(part, by_weight, queries, samples, taken, of_queries, of_samples)
    ]


@pull.register
def _(kernel: base.ProductKernel, by_weight, queries, samples, taken, of_queries, of_samples):
    left, right = (weights(part, queries, samples, taken) for part in kernel.parts)
    found = pull(kernel.left, by_weight * right, queries, samples, taken, of_queries, of_samples)
    return found + pull(kernel.right, by_weight * left, queries, samples, taken, of_queries, of_samples)


@pull.register
def _(kernel: base.ScaledKernel, by_weight, queries, samples, taken, of_queries, of_samples):
    return pull(kernel.kernel, kernel.factor * by_weight, queries, samples, taken, of_queries, of_samples)


@pull.register
def _(kernel: base.HollowKernel, by_weight, queries, samples, taken, of_queries, of_samples):
    others = ~np.eye(len(queries), dtype=bool)
    seen = others if taken is None else taken & others
    return pull(kernel.kernel, by_weight * others, queries, samples, seen, of_queries, of_samples)


@pull.register
def _(kernel: base.MaskedKernel, by_weight, queries, samples, taken, of_queries, of_samples):
    seen = kernel.mask if taken is None else taken & kernel.mask
    return pull(kernel.kernel, by_weight * kernel.mask, queries, samples, seen, of_queries, of_samples)
