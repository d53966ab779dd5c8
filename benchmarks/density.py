"""Logarithm of a density: SciPy's ``gaussian_kde`` and scikit-learn's ``KernelDensity``, both without tolerance."""

from __future__ import annotations

import math

import numpy as np

import locbook as lb

from .case import Case, Cost, Data, Peer, by_block

N, M, D = 20_000, 5_000, 2


def make(rng: np.random.Generator, n: int, m: int) -> Data:
    """Normal samples with the unit as their covariance: then SciPy's bandwidth, a factor on it, is a number."""
    x = rng.normal(size=(n, D))
    x = np.linalg.solve(np.linalg.cholesky(np.cov(x.T)), (x - x.mean(axis=0)).T).T
    return Data(x=x, q=rng.normal(size=(m, D)), h=n ** (-1 / (D + 4)))  # Scott's rule


def ours(data: Data) -> np.ndarray:
    return lb.log_density(data.q, data.x, lb.gaussian(data.h))


def reference(data: Data) -> np.ndarray:
    from scipy.spatial.distance import cdist
    from scipy.special import logsumexp

    def block(q: np.ndarray) -> np.ndarray:
        return logsumexp(-cdist(q, data.x, "sqeuclidean") / (2 * data.h**2), axis=1)

    scale = math.log(len(data.x)) + D / 2 * math.log(2 * math.pi * data.h**2)
    return by_block(block, data.q) - scale


def scipy_density(data: Data) -> np.ndarray:
    from scipy.stats import gaussian_kde

    return gaussian_kde(data.x.T, bw_method=data.h).logpdf(data.q.T)


def sklearn_density(data: Data) -> np.ndarray:
    from sklearn.neighbors import KernelDensity

    return KernelDensity(bandwidth=data.h, rtol=0).fit(data.x).score_samples(data.q)


def cost(n: int, m: int) -> Cost:
    """A pair: D subtractions, D multiply-adds, a scale, the exponential, the sum's addition."""
    return Cost(flops=n * m * (3 * D + 2), exponentials=n * m, bytes=8 * (m * D + n * D + m))


def cases() -> list[Case]:
    peers = (
        Peer("scipy.stats.gaussian_kde", scipy_density, 8.0),
        Peer("sklearn.neighbors.KernelDensity", sklearn_density, 30.0, "rtol=0"),
    )
    return [
        Case("density", "log-density", N, M, D, 0, "float64", make, ours, reference, peers, cost),
    ]
