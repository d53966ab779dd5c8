"""The oracle table: each function of locbook, the peer that must agree with it, and how closely.

``tests/test_oracles.py`` checks every row, in float64 and float32; ``python -m benchmarks`` times every row. Both
sides of a row get the same arrays. In float32 the peer still runs in float64, on the float32 numbers, so that a row
states the accuracy of locbook and not that of the peer.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace as Data
from typing import Any

import numpy as np

import locbook as lb
from locbook import engine

from .case import Case, Peer

#: |ours - theirs| <= tolerance * (1 + |theirs|), by dtype.
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}


@dataclass(frozen=True)
class Oracle:
    """A row of the table.

    Attributes
    ----------
    function, case, peer : str
        What is compared, in words: ``peer`` begins with the module that must be installed.
    make : callable
        ``make(rng, n, m)`` gives the arrays of a problem with n samples and m queries.
    ours, theirs : callable
        From the arrays to an array or a tuple of arrays.
    size : (int, int)
        Samples and queries of the benchmark; ``--quick`` takes a quarter of each.
    tolerance : dict
    dtypes : tuple of str
    """

    function: str
    case: str
    peer: str
    make: Callable[[np.random.Generator, int, int], Data]
    ours: Callable[[Data], Any]
    theirs: Callable[[Data], Any]
    size: tuple[int, int] = (8000, 2000)
    tolerance: dict[str, float] | None = None
    dtypes: tuple[str, ...] = ("float64", "float32")

    @property
    def name(self) -> str:
        return f"{self.function}-{self.case}-{self.peer}"

    @property
    def package(self) -> str:
        return self.peer.split(".")[0]

    def data(self, n: int, m: int, dtype: str, seed: int = 0) -> Data:
        """The arrays; floating ones in ``dtype``."""
        made = self.make(np.random.default_rng(seed), n, m)
        return _cast(made, np.dtype(dtype))

    def reference(self, data: Data) -> Any:
        """The peer's answer, in float64 on the same numbers."""
        return self.theirs(_cast(data, np.dtype(np.float64)))

    def error(self, ours: Any, theirs: Any) -> float:
        """Largest error, relative to 1 + the size of the answer; inf where shapes, indices or infinities differ."""
        ours, theirs = (x if isinstance(x, tuple) else (x,) for x in (ours, theirs))
        if len(ours) != len(theirs):
            return math.inf
        return max(_error(np.asarray(a), np.asarray(b)) for a, b in zip(ours, theirs, strict=True))

    def bound(self, dtype: str) -> float:
        return (self.tolerance or TOLERANCE)[dtype]


def _cast(data: Data, dtype: np.dtype) -> Data:
    def cast(value: Any) -> Any:
        floating = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        return value.astype(dtype) if floating else value

    return Data(**{name: cast(value) for name, value in vars(data).items()})


def _error(ours: np.ndarray, theirs: np.ndarray) -> float:
    if ours.shape != theirs.shape:
        return math.inf
    if theirs.dtype.kind in "iub":
        return 0.0 if np.array_equal(ours, theirs) else math.inf
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(theirs)
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True):
        return math.inf
    gap = np.abs(ours[finite] - theirs[finite]) / (1.0 + np.abs(theirs[finite]))
    return math.inf if np.isnan(gap).any() else float(gap.max(initial=0.0))


# -- problems --------------------------------------------------------------------------------------------------------


def _regression(rng: np.random.Generator, n: int, m: int, d: int = 2) -> Data:
    x = rng.uniform(-1, 1, size=(n, d))
    y = np.sin(3 * x[:, 0]) + x[:, -1] ** 2 + 0.1 * rng.normal(size=n)
    return Data(x=x, y=y, q=rng.uniform(-1, 1, size=(m, d)), w=rng.integers(1, 4, size=n).astype(float))


def _two_outputs(rng: np.random.Generator, n: int, m: int) -> Data:
    data = _regression(rng, n, m)
    data.y = np.column_stack([data.y, np.cos(data.x[:, 0])])
    return data


def _labelled(rng: np.random.Generator, n: int, m: int) -> Data:
    data = _regression(rng, n, m)
    data.y = np.digitize(data.x[:, 0] + 0.3 * rng.normal(size=n), [-0.4, 0.4])
    return data


def _whitened(rng: np.random.Generator, n: int, m: int, d: int = 3) -> Data:
    x = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    white = np.linalg.solve(np.linalg.cholesky(np.cov(x.T)), (x - x.mean(0)).T).T
    return Data(x=white, q=2 * rng.normal(size=(m, d)), w=rng.integers(1, 4, size=n).astype(float))


def _near(rng: np.random.Generator, n: int, m: int) -> Data:
    # Three columns: scikit-learn's constant of the cosine kernel is wrong in even dimensions. Queries near samples:
    # its sums leave dust of 1e-15 where no sample is in reach.
    data = _whitened(rng, n, m)
    data.q = data.x[rng.integers(0, n, size=m)] + 0.02 * rng.normal(size=(m, 3))
    return data


def _angles(rng: np.random.Generator, n: int, m: int) -> Data:
    return Data(x=rng.vonmises(2.0, 1.5, size=(n, 1)), q=rng.uniform(-np.pi, np.pi, size=(m, 1)))


def _places(rng: np.random.Generator, n: int, m: int) -> Data:
    def places(size: int) -> np.ndarray:
        return np.column_stack([np.arcsin(rng.uniform(-1, 1, size)), rng.uniform(-np.pi, np.pi, size)])

    return Data(x=places(n), q=places(m))


def _codes(rng: np.random.Generator, n: int, m: int) -> Data:
    # no two samples at one distance: rows of different codes in nested columns
    return Data(
        x=rng.integers(0, 3, size=(n, 40)).astype(float), q=rng.integers(0, 3, size=(m, 40)).astype(float)
    )


def _missing(rng: np.random.Generator, n: int, m: int) -> Data:
    data = Data(x=rng.normal(size=(n, 6)), q=rng.normal(size=(m, 6)))
    for array in (data.x, data.q):
        array[:, 1:][rng.random((len(array), 5)) < 0.2] = np.nan
    return data


def _attention(rng: np.random.Generator, n: int, m: int, d: int = 16) -> Data:
    return Data(
        q=rng.normal(size=(m, d)),
        x=rng.normal(size=(n, d)),
        y=rng.normal(size=(n, d)),
        mask=rng.random((m, n)) < 0.7,
    )


def _sequence(rng: np.random.Generator, n: int, m: int) -> Data:  # noqa: ARG001 (as many queries as samples)
    data = _attention(rng, n, n)
    data.time = np.arange(n, dtype=np.float64)[:, None]
    return data


def _line(rng: np.random.Generator, n: int, m: int) -> Data:  # noqa: ARG001 (the queries are the samples)
    x = np.sort(rng.uniform(0, 6, size=n))[:, None]
    return Data(x=x, y=np.sin(x[:, 0]) + 0.3 * rng.normal(size=n), q=x)


# -- peers -----------------------------------------------------------------------------------------------------------

H = 0.3
K = 12


def _softmax(data: Data) -> np.ndarray:
    scores = data.q @ data.x.T / 2.0
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _gaussian_kde(data: Data) -> np.ndarray:
    from scipy.stats import gaussian_kde

    return gaussian_kde(data.x.T, bw_method=H).logpdf(data.q.T)


def _weighted_kde(data: Data) -> Any:
    from scipy.stats import gaussian_kde

    return gaussian_kde(data.x.T, bw_method=H, weights=data.w)


def _our_weighted_density(data: Data) -> np.ndarray:
    # SciPy's bandwidth is a factor on the weighted covariance: the same as a matrix
    centred = data.x - np.average(data.x, axis=0, weights=data.w)
    share = data.w.astype(np.float64) / data.w.sum()
    covariance = (centred.T * share) @ centred / (1 - share @ share)
    kernel = lb.gaussian(H * np.linalg.cholesky(covariance))
    return lb.log_density(data.q, data.x, kernel, sample_weight=data.w)


def _scores(kernel: str, *, weighted: bool = False) -> Callable[[Data], np.ndarray]:
    def theirs(data: Data) -> np.ndarray:
        from sklearn.neighbors import KernelDensity

        model = KernelDensity(kernel=kernel, bandwidth=H)
        return model.fit(data.x, sample_weight=data.w if weighted else None).score_samples(data.q)

    return theirs


def _von_mises_density(data: Data) -> np.ndarray:
    from scipy.special import logsumexp
    from scipy.stats import vonmises

    return logsumexp(vonmises.logpdf(data.q, 5.0, loc=data.x[:, 0]), axis=1) - math.log(len(data.x))


def _fitted(name: str, **options: Any) -> Callable[[Data], Any]:
    def fit(data: Data) -> Any:
        from sklearn import neighbors

        return getattr(neighbors, name)(algorithm="kd_tree", **options).fit(data.x, data.y)

    return fit


def _gaussian_weights(distances: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * (distances / H) ** 2)


def _weighted_neighbors(data: Data) -> np.ndarray:
    return _fitted("KNeighborsRegressor", n_neighbors=len(data.x), weights=_gaussian_weights)(data).predict(
        data.q
    )


def _leave_one_out(name: str, **options: Any) -> Callable[[Data], np.ndarray]:
    def theirs(data: Data) -> np.ndarray:
        from sklearn import neighbors
        from sklearn.model_selection import LeaveOneOut, cross_val_predict

        if "weights" in options:
            options["n_neighbors"] = len(data.x) - 1
        model = getattr(neighbors, name)(algorithm="kd_tree", **options)
        return cross_val_predict(model, data.x, data.y, cv=LeaveOneOut())

    return theirs


def _kernel_reg(data: Data, bandwidth: Any) -> Any:
    from statsmodels.nonparametric.kernel_regression import KernelReg

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # statsmodels about its own random generator
        return KernelReg(data.y, data.x, "c" * data.x.shape[1], reg_type="lc", bw=bandwidth)


def _sdpa(*, causal: bool = False, masked: bool = False) -> Callable[[Data], np.ndarray]:
    def theirs(data: Data) -> np.ndarray:
        import torch

        q, k, v = (torch.from_numpy(np.ascontiguousarray(a))[None, None] for a in (data.q, data.x, data.y))
        mask = torch.from_numpy(data.mask) if masked else None
        answer = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return answer[0, 0].numpy()

    return theirs


def _our_causal_attention(data: Data) -> np.ndarray:
    d = data.q.shape[1]
    kernel = lb.softmax(math.sqrt(d), on=range(d)) * lb.causal(on=d)
    return lb.local_mean(np.hstack([data.q, data.time]), np.hstack([data.x, data.time]), data.y, kernel)


def _nearest(metric: str | lb.Metric = "euclidean") -> Callable[[Data], Any]:
    def ours(data: Data) -> Any:
        problem = engine.Problem.check(data.q, data.x, lb.gaussian(metric=metric))
        found = engine.nearest(problem, K, metric)
        return found.distances, found.indices

    return ours


def _neighbors(algorithm: str, metric: str, p: float = 2, **options: Any) -> Callable[[Data], Any]:
    def theirs(data: Data) -> Any:
        from sklearn.neighbors import NearestNeighbors

        model = NearestNeighbors(
            n_neighbors=K, algorithm=algorithm, metric=metric, p=p, metric_params=options or None
        )
        return model.fit(data.x).kneighbors(data.q)

    return theirs


def _tree(data: Data) -> Any:
    from scipy.spatial import cKDTree

    return cKDTree(data.x).query(data.q, k=K, workers=2)


def _faiss(data: Data) -> Any:
    import faiss

    x, q = (np.ascontiguousarray(a, dtype=np.float32) for a in (data.x, data.q))
    index = faiss.IndexFlatL2(x.shape[1])
    index.add(x)
    squared, rows = index.search(q, K)
    return np.sqrt(squared), rows


LEVELS = np.array([0.1, 0.5, 0.9])


def _our_quantiles(data: Data) -> np.ndarray:
    problem = engine.Problem.check(data.q, data.x, lb.gaussian(H))
    return engine.quantile(problem, data.y[:, None], LEVELS)[:, 0]


def _numpy_quantiles(data: Data) -> np.ndarray:
    answer = []
    for q in data.q:
        weights = np.exp(-((data.x - q) ** 2).sum(1) / (2 * H * H))
        answer.append(np.quantile(data.y, LEVELS, weights=weights, method="inverted_cdf"))
    return np.array(answer)


def _our_classes(kernel: lb.Kernel) -> Callable[[Data], np.ndarray]:
    return lambda data: engine.classes(engine.Problem.check(data.q, data.x, kernel), data.y, 3)


def _our_mean(kernel: lb.Kernel) -> Callable[[Data], np.ndarray]:
    return lambda data: lb.local_mean(data.q, data.x, data.y, kernel)


def _our_density(kernel: lb.Kernel) -> Callable[[Data], np.ndarray]:
    return lambda data: lb.log_density(data.q, data.x, kernel)


_COVARIANCE = np.array([[1.0, 0.6], [0.6, 2.0]])
_SKLEARN_KERNELS = {
    "gaussian": lb.gaussian,
    "tophat": lb.uniform,
    "epanechnikov": lb.epanechnikov,
    "exponential": lb.laplace,
    "linear": lb.triangular,
    "cosine": lb.cosine,
}

ORACLES: tuple[Oracle, ...] = (
    Oracle(
        "local_weights", "softmax", "numpy.exp", _attention,
        lambda data: lb.local_weights(data.q, data.x, lb.softmax(2.0)), _softmax, (2000, 2000),
    ),
    Oracle(
        "log_density", "gaussian", "scipy.stats.gaussian_kde", _whitened, _our_density(lb.gaussian(H)),
        _gaussian_kde,
    ),
    Oracle(
        "log_density", "weighted, matrix bandwidth", "scipy.stats.gaussian_kde", _whitened,
        _our_weighted_density, lambda data: _weighted_kde(data).logpdf(data.q.T),
    ),
    Oracle(
        "log_density", "von Mises", "scipy.stats.vonmises", _angles, _our_density(lb.von_mises(5.0)),
        _von_mises_density, (4000, 500),
    ),
    *(
        Oracle("log_density", name, "sklearn.neighbors.KernelDensity", _near, _our_density(kernel(H)), _scores(name))
        for name, kernel in _SKLEARN_KERNELS.items()
    ),
    Oracle(
        "log_density", "weighted epanechnikov", "sklearn.neighbors.KernelDensity", _near,
        lambda data: lb.log_density(data.q, data.x, lb.epanechnikov(H), sample_weight=data.w),
        _scores("epanechnikov", weighted=True),
    ),
    Oracle(
        "local_mean", "knn", "sklearn.neighbors.KNeighborsRegressor", _two_outputs,
        _our_mean(lb.knn(K)), lambda data: _fitted("KNeighborsRegressor", n_neighbors=K)(data).predict(data.q),
    ),
    Oracle(
        "local_mean", "uniform", "sklearn.neighbors.RadiusNeighborsRegressor", _two_outputs,
        _our_mean(lb.uniform(0.5)),
        lambda data: _fitted("RadiusNeighborsRegressor", radius=0.5)(data).predict(data.q),
    ),
    Oracle(
        "local_mean", "uniform, manhattan", "sklearn.neighbors.RadiusNeighborsRegressor", _regression,
        _our_mean(lb.uniform(0.7, metric="manhattan")),
        lambda data: _fitted("RadiusNeighborsRegressor", radius=0.7, metric="manhattan")(data).predict(data.q),
    ),
    Oracle(
        "local_mean", "gaussian", "sklearn.neighbors.KNeighborsRegressor", _two_outputs,
        _our_mean(lb.gaussian(H)), _weighted_neighbors, (4000, 500),
    ),
    Oracle(
        "local_mean", "gaussian, two bandwidths", "statsmodels.nonparametric.KernelReg", _regression,
        _our_mean(lb.gaussian([0.3, 0.5])), lambda data: _kernel_reg(data, [0.3, 0.5]).fit(data.q)[0],
        (2000, 200),
    ),
    Oracle(
        "local_mean", "softmax", "torch.nn.functional.scaled_dot_product_attention", _attention,
        _our_mean(lb.softmax(4.0)), _sdpa(), (4000, 4000),
    ),
    Oracle(
        "local_mean", "softmax, causal", "torch.nn.functional.scaled_dot_product_attention", _sequence,
        _our_causal_attention, _sdpa(causal=True), (2000, 2000),
    ),
    Oracle(
        "local_mean", "softmax, masked", "torch.nn.functional.scaled_dot_product_attention", _attention,
        lambda data: lb.local_mean(data.q, data.x, data.y, lb.softmax(4.0), mask=data.mask),
        _sdpa(masked=True), (2000, 2000),
    ),
    Oracle(
        "classes", "knn", "sklearn.neighbors.KNeighborsClassifier", _labelled,
        _our_classes(lb.knn(K)),
        lambda data: _fitted("KNeighborsClassifier", n_neighbors=K)(data).predict_proba(data.q),
    ),
    Oracle(
        "classes", "uniform", "sklearn.neighbors.RadiusNeighborsClassifier", _labelled,
        _our_classes(lb.uniform(0.5)),
        lambda data: _fitted("RadiusNeighborsClassifier", radius=0.5)(data).predict_proba(data.q),
    ),
    Oracle("nearest", "euclidean", "scipy.spatial.cKDTree", _whitened, _nearest(), _tree),
    Oracle(
        "nearest", "euclidean", "sklearn.neighbors.NearestNeighbors", _whitened, _nearest(),
        _neighbors("kd_tree", "euclidean"),
    ),
    Oracle(
        # faiss has float32 only, and expands the square: its distances are the less exact side here
        "nearest", "euclidean", "faiss.IndexFlatL2", _attention, _nearest(), _faiss,
        tolerance={"float32": 1e-5}, dtypes=("float32",),
    ),
    Oracle(
        "nearest", "manhattan", "sklearn.neighbors.NearestNeighbors", _whitened, _nearest("manhattan"),
        _neighbors("kd_tree", "manhattan"),
    ),
    Oracle(
        "nearest", "chebyshev", "sklearn.neighbors.NearestNeighbors", _whitened, _nearest("chebyshev"),
        _neighbors("kd_tree", "chebyshev"),
    ),
    Oracle(
        "nearest", "minkowski", "sklearn.neighbors.NearestNeighbors", _whitened,
        _nearest(lb.minkowski(3.0)), _neighbors("kd_tree", "minkowski", p=3.0), (4000, 500),
    ),
    Oracle(
        "nearest", "mahalanobis", "sklearn.neighbors.NearestNeighbors", _regression,
        _nearest(lb.mahalanobis(_COVARIANCE)),
        _neighbors("brute", "mahalanobis", VI=np.linalg.inv(_COVARIANCE)),
    ),
    Oracle(
        "nearest", "haversine", "sklearn.neighbors.NearestNeighbors", _places, _nearest("haversine"),
        _neighbors("ball_tree", "haversine"), (4000, 500),
    ),
    Oracle(
        "nearest", "cosine", "sklearn.neighbors.NearestNeighbors", _attention, _nearest("cosine"),
        _neighbors("brute", "cosine"),
    ),
    Oracle(
        "nearest", "hamming", "sklearn.neighbors.NearestNeighbors", _codes,
        lambda data: _nearest("hamming")(data)[0], lambda data: _neighbors("brute", "hamming")(data)[0],
    ),
    Oracle(
        "nearest", "nan_euclidean", "sklearn.neighbors.NearestNeighbors", _missing,
        _nearest("nan_euclidean"), _neighbors("brute", "nan_euclidean"),
    ),
    Oracle(
        "quantile", "gaussian", "numpy.quantile", _regression, _our_quantiles, _numpy_quantiles, (4000, 500),
    ),
    Oracle(
        "leave_one_out", "knn", "sklearn.model_selection.LeaveOneOut", _regression,
        lambda data: lb.leave_one_out(data.x, data.y, lb.knn(K)),
        _leave_one_out("KNeighborsRegressor", n_neighbors=K), (400, 0),
    ),
    Oracle(
        "leave_one_out", "uniform", "sklearn.model_selection.LeaveOneOut", _regression,
        lambda data: lb.leave_one_out(data.x, data.y, lb.uniform(0.5)),
        _leave_one_out("RadiusNeighborsRegressor", radius=0.5), (400, 0),
    ),
    *(
        Oracle(
            "leave_one_out", f"gaussian, {method}", "sklearn.model_selection.LeaveOneOut", _regression,
            lambda data, method=method: lb.leave_one_out(data.x, data.y, lb.gaussian(H), method=method),
            _leave_one_out("KNeighborsRegressor", weights=_gaussian_weights), (400, 0),
        )
        for method in ("hollow", "shortcut")
    ),
    Oracle(
        # two searches for the minimum of one curve: as close as the flat bottom lets them
        "select_bandwidth", "loo", "statsmodels.nonparametric.KernelReg", _line,
        lambda data: np.array([lb.select_bandwidth(data.x, data.y).bandwidth]),
        lambda data: np.asarray(_kernel_reg(data, "cv_ls").bw), (600, 0),
        tolerance={"float64": 1e-3}, dtypes=("float64",),
    ),
)  # fmt: skip


def cases() -> list[Case]:
    """The table as rows of the benchmark, each in its first dtype and without a target."""
    found = []
    for row in ORACLES:
        n, m = row.size

        def make(rng: np.random.Generator, n: int, m: int, row: Oracle = row) -> Data:
            return row.make(rng, n, max(m, 1))

        peer = Peer(row.peer, row.theirs)
        found.append(
            Case(
                "oracles", f"{row.function} ({row.case})", n, m, None, None, row.dtypes[0],
                make, row.ours, row.reference, (peer,), None, row.error, row.bound(row.dtypes[0]),
            )
        )  # fmt: skip
    return found
