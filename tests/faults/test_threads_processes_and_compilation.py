"""Faults L (Numba, threads, processes, API) of shared/faults.md: one test for each number."""

import math
import os
import pickle
import re
import signal
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import dask.array
import distributed
import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import locbook as lb
from locbook import engine
from locbook.engine import fused_sweep, pool, program, sweep
from locbook.kernels import metrics, profiles

X = np.random.default_rng(0).normal(size=(3000, 3))
Y = X[:, 0] * X[:, 1]
Q = X[:700] + 0.01


def bump(s):
    return (1.0 - s) ** 4 if s < 1.0 else 0.0


@pytest.fixture
def two_threads(threads):
    threads(2)


def jitted():
    for module in (sweep, program, metrics, profiles):
        for name, value in vars(module).items():
            if hasattr(value, "targetoptions") and value.__module__ == module.__name__:
                yield f"{module.__name__}.{name}", value.targetoptions


def test_l70_no_fast_math_that_deletes_nan_and_infinity():
    seen = dict(jitted())
    assert len(seen) > 25
    for name, options in seen.items():
        allowed = set()
        if name in ("locbook.engine.sweep.row_sum", "locbook.engine.sweep.row_product"):
            allowed = {"contract", "reassoc", "arcp", "nsz"}
        elif "exp" in name.rpartition(".")[2] or name.endswith(".log1p"):
            allowed = {"contract"}
        assert set(options.get("fastmath") or ()) <= allowed, name
    # and what would go wrong first: weights that are all -inf, and a NaN that stands for "missing"
    mask = np.zeros((1, 3), dtype=bool)
    with pytest.warns(lb.EmptyNeighborhoodWarning):
        assert np.isnan(lb.local_mean([[0.0]], [[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0], "gaussian", mask=mask))
    assert (
        lb.local_mean(
            [[0.0, np.nan]], [[np.nan, 1.0], [0.0, 1.0]], [1.0, 3.0], lb.gaussian(metric="nan_euclidean")
        )[0]
        == 3.0
    )


def test_l71_a_division_by_zero_is_ieee():
    for name, options in jitted():
        assert options.get("error_model") == "numpy", name
    # 0/0 inside a user's profile is a bad weight, by name, and no ZeroDivisionError
    with pytest.raises(ValueError, match="NaN"):
        lb.local_mean([[0.0]], [[0.0]], [1.0], lb.Kernel(lambda s: s / s))
    # a vector of length zero: the cosine distance to it is 1
    assert lb.gaussian(metric="cosine")([[0.0, 0.0]], [[1.0, 0.0]])[0, 0] == pytest.approx(math.exp(-0.5))


def test_l72_two_python_threads_at_once(two_threads):
    jobs = [
        lambda: lb.local_mean(Q, X, Y, lb.gaussian(0.3)),
        lambda: lb.local_mean(Q, X, Y, lb.knn(5)),
        lambda: lb.log_density(Q, X, lb.epanechnikov(2.0)),
        lambda: lb.local_mean(Q, X, Y, lb.Kernel(bump, 3.0)),
    ]
    serial = [job() for job in jobs]
    stop = threading.Event()

    def unsettle():
        count = 0
        while not stop.is_set():
            lb.set_num_threads(1 + count % 3)
            count += 1

    restless = threading.Thread(target=unsettle)
    with ThreadPoolExecutor(4) as callers:
        for round_ in range(2):
            if round_ == 1:  # while the number of threads changes
                restless.start()
            results = list(callers.map(lambda k: jobs[k % 4](), range(16)))
            for k, result in enumerate(results):
                np.testing.assert_array_equal(result, serial[k % 4])
    stop.set()
    restless.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_l73_fork_after_use(two_threads):
    expected = lb.local_mean(Q, X, Y, lb.gaussian(0.3))  # the pool is there now
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's own about fork and threads
        child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that hangs is killed, and the test fails
        code = 1
        try:
            code = 0 if np.array_equal(lb.local_mean(Q, X, Y, lb.gaussian(0.3)), expected) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(lb.local_mean(Q, X, Y, lb.gaussian(0.3)), expected)


def test_l74_read_only_memory_maps_in_other_processes():
    x = np.random.default_rng(0).normal(size=(25_000, 6))  # 1.2 MB: joblib hands it on as a read-only map
    y = np.sin(x[:, 0])
    search = GridSearchCV(
        lb.LocalMeanRegressor(lb.uniform(2.0)), {"kernel": [lb.knn(1), lb.knn(5)]},
        cv=[(range(300, 25_000), range(300))], n_jobs=2, refit=False, error_score="raise",
    )  # fmt: skip
    with joblib.parallel_backend("loky", n_jobs=2), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a worker that is slow to start
        search.fit(x, y)
        flags = joblib.Parallel()(joblib.delayed(_look)(x) for _ in range(2))
    assert all(not writeable and mean == pytest.approx(y[0], abs=1.0) for writeable, mean in flags)
    assert search.best_params_["kernel"] == lb.knn(5)


def _look(x):
    return x.flags.writeable, lb.local_mean(x[:1], x, np.sin(x[:, 0]), lb.knn(5))[0]


def _of_block(q):
    with mock.patch.object(pool, "WORTH", 0):  # several tasks, though the problem is small
        return lb.local_mean(q, X, Y, lb.gaussian(0.3))


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask_workers(scheduler):
    expected = lb.local_mean(Q, X, Y, lb.gaussian(0.3))
    blocks = dask.array.from_array(Q, chunks=(len(Q) // 3, -1)).map_blocks(
        _of_block, drop_axis=1, dtype=float
    )
    np.testing.assert_array_equal(blocks.compute(scheduler=scheduler, num_workers=2), expected)


def test_dask_cluster():
    """Workers with two threads each: the engine's pool inside Dask's."""
    expected = lb.local_mean(Q, X, Y, lb.gaussian(0.3))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        parts = client.gather(client.map(_of_block, [Q[i::5] for i in range(5)], pure=False))
    for i, part in enumerate(parts):
        np.testing.assert_array_equal(part, expected[i::5])


def test_l75_a_second_bandwidth_compiles_nothing():
    lb.LocalMeanRegressor(bandwidth=0.5).fit(X[:50], Y[:50]).predict(X[:5])
    functions = [sweep.sweep, program.evaluate, fused_sweep._fused_sweep]
    before = [(len(f.signatures), sum(f.stats.cache_misses.values())) for f in functions]
    kernels = [make(0.123 + 0.1 * k) for k, make in enumerate(lb.KERNELS[name] for name in lb.PROFILES)]
    kernels += [lb.knn(3), lb.softmax(3.0), lb.gaussian([1.0, 2.0, 3.0]), lb.gaussian() * lb.causal() + 0.1]
    kernels += [
        lb.gaussian(lb.knn_bandwidth(7)),
        lb.discrete([[1.0]]) + lb.laplace(metric=lb.minkowski(1.7), on=1),
    ]
    x = X[:50].copy()
    x[:, 0] = 0
    for kernel in kernels:
        for array in (x, x.astype(np.float32), np.asfortranarray(x), x[::-1, ::-1][::-1, ::-1]):
            lb.local_mean(
                array[:7],
                array,
                Y[:50],
                kernel,
                empty="nearest",
                sample_weight=np.ones(50),
                mask=np.ones((7, 50), bool),
            )
    engine.quantile(engine.Problem.check(x, x, "gaussian"), Y[:50, None], np.array([0.5]))
    engine.moments(engine.Problem.check(x, x, "gaussian"), Y[:50, None], 2)
    engine.classes(engine.Problem.check(x, x, "gaussian"), np.zeros(50, dtype=np.int8), 1)
    lb.Kernel(bump, 1.0)(x)  # a user's function is compiled alone
    assert [(len(f.signatures), sum(f.stats.cache_misses.values())) for f in functions] == before
    assert len(sweep.sweep.signatures) == 1


@pytest.mark.parametrize("k", [3.0, np.float64(3.0), "3", True, None, 3 + 0j])
def test_l76_neighbours_are_counted_in_integers(k):
    for make in (lb.knn, lb.knn_bandwidth):
        with pytest.raises(TypeError, match="n_neighbors"):
            make(k)
    if k is not None:
        with pytest.raises((TypeError, ValueError), match="n_neighbors"):
            lb.LocalMeanRegressor("knn", n_neighbors=k).fit(X[:9], Y[:9])
    assert lb.knn(np.int32(3)) == lb.knn(3)
    # mixed dtypes are no error at all
    mixed = lb.local_mean(X[:5].astype(np.float32), X[:9], Y[:9].astype(int), lb.knn(3))
    assert mixed.dtype == np.float64


def test_l78_pickles_and_clones():
    kernels = [
        lb.gaussian(0.5), lb.knn(3, ties="include"), lb.gaussian(lb.knn_bandwidth(3)), lb.Kernel(bump, 2.0),
        lb.softmax() * lb.causal(on=1),
        (lb.gaussian([1.0, 2.0, 3.0]) + 0.1).hollow(), lb.gaussian(metric=lb.mahalanobis(np.eye(3))),
        lb.laplace(np.eye(3)),
        lb.uniform(1.0).masked(np.ones((2, 3), bool)), lb.gaussian(lb.per_sample(np.ones(50))),
    ]  # fmt: skip
    for kernel in kernels:
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(kernel, protocol)) == kernel
    for kernel in (lb.Kernel(lambda s: 1.0 / (1.0 + s), 1.0), lb.Kernel(bump, 2.0)):
        model = lb.LocalMeanRegressor(kernel).fit(X[:50], Y[:50])
        copy = clone(model).fit(X[:50], Y[:50])
        np.testing.assert_array_equal(copy.predict(Q[:5]), model.predict(Q[:5]))
    with pytest.raises(pickle.PicklingError, match="lambda"):
        pickle.dumps(lb.LocalMeanRegressor(lb.Kernel(lambda s: 1.0)))
    for name, value in lb.LocalMeanRegressor(bandwidth=3).get_params().items():  # __init__ alters nothing
        assert getattr(lb.LocalMeanRegressor(**{name: value}), name) is value


def test_no_test_of_a_fault_goes_missing():
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    found = set(re.findall(r"def test_([a-z]\d+(?:_[a-z]\d+)*)_", text))
    numbers = {int(n) for name in found for n in re.findall(r"\d+", name)}
    assert numbers == {
        1,
        3,
        5,
        6,
        14,
        22,
        23,
        25,
        26,
        27,
        30,
        31,
        32,
        34,
        35,
        37,
        40,
        70,
        71,
        72,
        73,
        74,
        75,
        76,
        78,
        82,
    }
    assert sys.flags.optimize == 0  # asserts are on
