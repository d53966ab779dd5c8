"""The 10 nearest samples: faiss, scikit-learn and SciPy's tree; and the local mean over them, kNN regression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import locbook as lb
from locbook import engine

from .case import Case, Cost, Data, Peer, by_block, range_error

K = 10
TARGETS = {3: 1.0, 8: 2.0, 50: 2.0}
#: What was fastest of scikit-learn's at these sizes.
SKLEARN = {3: "kd_tree", 8: "kd_tree", 50: "brute"}


def arrays(d: int) -> Callable[[np.random.Generator, int, int], Data]:
    """Standard normal."""
    return lambda rng, n, m: Data(x=rng.normal(size=(n, d)), q=rng.normal(size=(m, d)))


def ours(data: Data) -> tuple[np.ndarray, np.ndarray]:
    found = engine.nearest(engine.Problem.check(data.q, data.x, lb.gaussian()), K)
    return found.distances, found.indices


def faiss_flat(data: Data) -> tuple[np.ndarray, np.ndarray]:
    import faiss

    index = faiss.IndexFlatL2(data.x.shape[1])
    index.add(data.x)
    squared, rows = index.search(data.q, K)
    return np.sqrt(squared), rows


def sklearn_neighbors(data: Data) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.neighbors import NearestNeighbors

    algorithm = SKLEARN[data.x.shape[1]]
    model = NearestNeighbors(n_neighbors=K, algorithm=algorithm, n_jobs=data.threads)
    return model.fit(data.x).kneighbors(data.q)


def scipy_tree(data: Data) -> tuple[np.ndarray, np.ndarray]:
    from scipy.spatial import cKDTree

    return cKDTree(data.x).query(data.q, k=K, workers=data.threads)


def reference(data: Data) -> tuple[np.ndarray, Data]:
    """The sorted distances, and the arrays: which of two samples equally far is named does not matter."""
    from scipy.spatial.distance import cdist

    x = data.x.astype(np.float64)
    nearest = by_block(lambda q: np.partition(cdist(q, x), K - 1, axis=1)[:, :K], data.q)
    return np.sort(nearest, axis=1), data


def error(answer: tuple[np.ndarray, np.ndarray], reference: tuple[np.ndarray, Data]) -> float:
    """Of the distances that are told, and of those that the named rows have."""
    distances, rows = answer
    right, data = reference
    if np.shape(rows) != right.shape or not (rows.min() >= 0 and rows.max() < len(data.x)):
        return np.inf
    told = np.linalg.norm(data.x[rows].astype(np.float64) - data.q[:, None], axis=2)
    repeated = np.diff(np.sort(rows, axis=1), axis=1).min() == 0
    return np.inf if repeated else max(range_error(distances, right), range_error(told, right))


def cost(d: int, dtype: str) -> Callable[[int, int], Cost]:
    """A pair: d subtractions and d multiply-adds; for all pairs, though a tree leaves most of them out at d = 3.

    So a share above 1 means that less was computed than all distances.
    """
    size = np.dtype(dtype).itemsize
    return lambda n, m: Cost(
        flops=n * m * 3 * d, exponentials=0, bytes=size * d * (m + n) + m * K * (size + 8)
    )


def with_values(d: int) -> Callable[[np.random.Generator, int, int], Data]:
    def data(rng: np.random.Generator, n: int, m: int) -> Data:
        return Data(x=rng.normal(size=(n, d)), q=rng.normal(size=(m, d)), v=rng.normal(size=(n, 1)))

    return data


def our_regression(data: Data) -> np.ndarray:
    return lb.local_mean(data.q, data.x, data.v, lb.knn(K))


def sklearn_regression(data: Data) -> np.ndarray:
    from sklearn.neighbors import KNeighborsRegressor

    algorithm = SKLEARN[data.x.shape[1]]
    return (
        KNeighborsRegressor(K, algorithm=algorithm, n_jobs=data.threads).fit(data.x, data.v).predict(data.q)
    )


def regression_reference(data: Data) -> np.ndarray:
    from scipy.spatial.distance import cdist

    def block(q: np.ndarray) -> np.ndarray:
        rows = np.argpartition(cdist(q, data.x), K - 1, axis=1)[:, :K]
        return data.v[rows].mean(axis=1)

    return by_block(block, data.q)


def cases() -> list[Case]:
    found = [
        Case(
            "neighbors", f"regression by the {K} nearest", 50_000, 5_000, d, 1, "float64", with_values(d),
            our_regression, regression_reference,
            (Peer("sklearn.neighbors.KNeighborsRegressor", sklearn_regression, target, SKLEARN[d]),),
            cost(d, "float64"), range_error,
        )
        for d, target in TARGETS.items()
    ]  # fmt: skip
    for dtype in ("float32", "float64"):
        for d, target in TARGETS.items():
            peers = [
                Peer("sklearn.neighbors.NearestNeighbors", sklearn_neighbors, target, SKLEARN[d]),
                Peer("scipy.spatial.cKDTree", scipy_tree, target),
            ]
            if dtype == "float32":  # faiss has no other
                peers.insert(0, Peer("faiss.IndexFlatL2", faiss_flat, target))
            found.append(
                Case(
                    "neighbors", f"{K} nearest", 50_000, 5_000, d, 0, dtype,
                    arrays(d), ours, reference, tuple(peers), cost(d, dtype), error,
                )
            )  # fmt: skip
    return found
