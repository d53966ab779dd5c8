"""Local mean under a kernel of compact support: the trees of scikit-learn and SciPy.

The peers' best known ways are taken: tables of neighbours that are flattened and summed at once, not query by query.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import locbook as lb

from .case import Case, Cost, Data, Peer, by_block

NEIGHBORS = 20
TARGET = 3.0


def arrays(d: int) -> Callable[[np.random.Generator, int, int], Data]:
    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        """Uniform in the unit cube; queries a bandwidth away from its faces, so that all have about 20 neighbours."""
        ball = math.pi ** (d / 2) / math.gamma(d / 2 + 1)
        h = min((NEIGHBORS / (n * ball)) ** (1 / d), 0.4)
        x = rng.uniform(size=(n, d))
        y = np.sin(5 * x[:, 0]) + x[:, -1]
        return Data(x=x, y=y, q=rng.uniform(h, 1 - h, size=(m, d)), h=h)

    return make


def ours(data: Data) -> np.ndarray:
    return lb.local_mean(data.q, data.x, data.y, lb.epanechnikov(data.h))


def reference(data: Data) -> np.ndarray:
    from scipy.spatial.distance import cdist

    def block(q: np.ndarray) -> np.ndarray:
        weights = np.maximum(0, 1 - cdist(q, data.x, "sqeuclidean") / data.h**2)
        return weights @ data.y / weights.sum(axis=1)

    return by_block(block, data.q)


def regressor(data: Data) -> np.ndarray:
    from sklearn.neighbors import RadiusNeighborsRegressor

    def weights(distances: np.ndarray) -> list[np.ndarray]:
        ends = np.cumsum([len(row) for row in distances])[:-1]
        return np.split(1 - (np.concatenate(distances) / data.h) ** 2, ends)

    model = RadiusNeighborsRegressor(data.h, weights=weights, algorithm="kd_tree", n_jobs=data.threads)
    return model.fit(data.x, data.y).predict(data.q)


def _mean(data: Data, rows: np.ndarray, columns: np.ndarray, distances: np.ndarray) -> np.ndarray:
    weights = 1 - (distances / data.h) ** 2
    m = len(data.q)
    return np.bincount(rows, weights * data.y[columns], m) / np.bincount(rows, weights, m)


def sklearn_tree(data: Data) -> np.ndarray:
    from sklearn.neighbors import KDTree

    columns, distances = KDTree(data.x).query_radius(data.q, data.h, return_distance=True)
    rows = np.repeat(np.arange(len(columns)), [len(row) for row in columns])
    return _mean(data, rows, np.concatenate(columns), np.concatenate(distances))


def scipy_tree(data: Data) -> np.ndarray:
    """Tree against tree; faster than ``query_ball_point`` on two threads. Trees without balance build faster."""
    from scipy.spatial import cKDTree

    samples, queries = (cKDTree(a, balanced_tree=False, compact_nodes=False) for a in (data.x, data.q))
    pairs = queries.sparse_distance_matrix(samples, data.h, output_type="ndarray")
    return _mean(data, pairs["i"], pairs["j"], pairs["v"])


def cost(d: int) -> Callable[[int, int], Cost]:
    """A neighbour: d subtractions, d multiply-adds, 1 - s/h^2, one multiply-add, the total's addition.

    The search for the neighbours is not counted, though it is most of the work: the share is small by construction.
    """
    return lambda n, m: Cost(
        flops=NEIGHBORS * m * (3 * d + 2 + 2 + 1), exponentials=0, bytes=8 * (m * d + n * (d + 1) + m)
    )


def cases() -> list[Case]:
    peers = (
        Peer("sklearn.neighbors.RadiusNeighborsRegressor", regressor, TARGET, "weights by a function"),
        Peer("sklearn.neighbors.KDTree", sklearn_tree, TARGET, "query_radius"),
        Peer("scipy.spatial.cKDTree", scipy_tree, TARGET, "sparse_distance_matrix"),
    )
    return [
        Case(
            "compact", "Epanechnikov local mean, about 20 neighbours", 50_000, 5_000, d, 1, "float64",
            arrays(d), ours, reference, peers, cost(d),
        )
        for d in (2, 3)
    ]  # fmt: skip
