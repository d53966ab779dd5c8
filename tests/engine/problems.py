"""Kernels, problems and twins that the tests of the engine share."""

import numpy as np

import locbook as lb
from locbook.engine import Problem, reference

M, N, D = 23, 41, 3


def bump(s):
    return (1.0 - s) ** 4 if s < 1.0 else 0.0


def log_quartic(s):
    return -s * s


def canberra(x, y):
    total = 0.0
    for c in range(x.size):
        total += abs(x[c] - y[c]) / (1.0 + abs(x[c]) + abs(y[c]))
    return total


_rng = np.random.default_rng(7)
TABLE = _rng.uniform(0.1, 1.0, size=(4, 5))
MATRIX = np.array([[1.2, 0.1, 0.0], [0.0, 0.9, 0.2], [0.3, 0.0, 1.5]])
QUERY_WIDTHS, SAMPLE_WIDTHS = _rng.uniform(0.8, 2.0, M), _rng.uniform(0.8, 2.0, N)

#: Name -> kernel. The last column of the data holds codes 0..3, the one before holds a time.
KERNELS = {
    **{name: lb.KERNELS[name](2.5) for name in ("uniform", "triangular", "epanechnikov", "biweight", "triweight")},
    **{name: lb.KERNELS[name](2.5) for name in ("tricube", "cosine", "gaussian", "laplace", "cauchy")},
    "student_t": lb.student_t(0.7, nu=2.5),
    "rational_quadratic": lb.rational_quadratic(0.7, alpha=0.6),
    "softmax": lb.softmax(1.7),
    "von_mises": lb.von_mises(2.0, on=[0, 1]),
    "knn": lb.knn(5),
    "knn, ties": lb.knn(5, ties="include", metric="hamming"),
    "discrete": lb.discrete(TABLE, on=2),
    "relative bias": lb.relative_bias([0.3, -0.5, 1.1, 0.2], on=2, first=-1),
    "causal": lb.causal(on=1) + 0.01,
    "window": lb.window(1.0, on=1) + 0.01,
    "vector bandwidth": lb.gaussian([0.8, 1.5, 3.0]),
    "matrix bandwidth": lb.laplace(MATRIX),
    "per query": lb.biweight(lb.per_query(QUERY_WIDTHS)) + 0.01,
    "per sample": lb.gaussian(lb.per_sample(SAMPLE_WIDTHS)),
    "knn bandwidth": lb.tricube(lb.knn_bandwidth(6)),
    "knn bandwidth of samples": lb.gaussian(lb.knn_bandwidth(6, side="sample", scale=0.7)),
    "manhattan": lb.gaussian(metric="manhattan"),
    "chebyshev": lb.gaussian(metric="chebyshev"),
    "minkowski": lb.laplace(metric=lb.minkowski(3.0)),
    "mahalanobis": lb.gaussian(metric=lb.mahalanobis(MATRIX @ MATRIX.T)),
    "hamming": lb.gaussian(0.3, metric="hamming"),
    "haversine": lb.gaussian(metric="haversine", on=[0, 1]),
    "periodic": lb.gaussian(0.4, metric=lb.periodic(2.0)),
    "cosine distance": lb.gaussian(0.5, metric="cosine"),
    "user profile": lb.Kernel(bump, 4.0),
    "user log profile": lb.Kernel(log_profile=log_quartic, bandwidth=2.0),
    "user metric": lb.gaussian(0.3, metric=canberra),
    "sum": 0.5 * lb.gaussian(0.8, on=0) + lb.uniform(2.0, on=1),
    "product": lb.laplace(2.0, on=[0, 1]) * lb.discrete(TABLE, on=2) * 3.0,
    "attention": lb.softmax(2.0, on=0) * (lb.causal(on=1) + 1e-3) * lb.laplace(1.0, on=1),
    "biased attention": lb.softmax(1.3, on=0) * lb.relative_bias([0.4, -1.0, 0.7], on=2) * lb.tricube(4.0, on=1),
    "knn in a product": lb.knn(9) * lb.gaussian(1.0),
}  # fmt: skip


def arrays(m=M, n=N, seed=0):
    """Queries, samples, values (n, 2), labels, integer multiplicities with zeros, a mask."""
    rng = np.random.default_rng(seed)

    def points(size):
        first, time = rng.normal(size=size), np.round(rng.uniform(-2, 2, size), 1)
        return np.column_stack([first, time, rng.integers(0, 4, size)])

    values = np.column_stack([rng.normal(size=n), rng.integers(-3, 4, n)])
    multiplicity = rng.integers(0, 4, n).astype(float)
    return points(m), points(n), values, rng.integers(0, 3, n), multiplicity, rng.random((m, n)) < 0.8


def twin_weights(kernel, q, x, sample_weight=None, mask=None):
    """The twin's weights, with the mask and the multiplicities that the engine takes beside the kernel.

    Multiplicities are rows that stand there several times, and then are added up.
    """
    q, x = np.asarray(q, dtype=float), np.asarray(x, dtype=float)
    if sample_weight is None:
        w = reference.weights(kernel, q, x, mask)
        return w if mask is None else np.where(mask, w, 0.0)
    rows = np.repeat(np.arange(len(x)), np.asarray(sample_weight, dtype=int))
    repeated = kernel
    if getattr(kernel.bandwidth, "side", None) == "sample" and kernel.bandwidth.values is not None:
        repeated = kernel.with_bandwidth(lb.per_sample(kernel.bandwidth.values[rows]))
    w = twin_weights(repeated, q, x[rows], mask=None if mask is None else mask[:, rows])
    total = np.zeros((len(q), len(x)))
    np.add.at(total.T, rows, w.T)
    return total


def problem(kernel, q, x, **options):
    return Problem.check(q, x, kernel, **options)


def close(ours, twin, tolerance=1e-11):
    """Equal to the twin, relative to the size of the column of answers."""
    ours, twin = np.asarray(ours, dtype=float), np.asarray(twin, dtype=float)
    assert ours.shape == twin.shape
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(twin))
    size = max(1.0, float(np.nanmax(np.abs(twin), initial=0.0)))
    assert np.nanmax(np.abs(ours - twin), initial=0.0) <= tolerance * size
