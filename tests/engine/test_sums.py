"""Sums of kernels, part by part, and the kernel knn, by the rows of the neighbours."""

import itertools

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import locbook as lb
from locbook import engine
from locbook.engine import reductions, reference
from tests.engine.problems import twin_weights


def data(n=300, m=80, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, d)), rng.normal(size=(n, d)), rng.normal(size=(n, 2))


def check(kernel, q, x, values, **options):
    """Mean and log-sum against the weights written down."""
    mean, log_sum = engine.mean(
        engine.Problem.check(q, x, kernel, **options), values, with_log_sum=True, warn=False
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = twin_weights(kernel, q, x, **options)
        np.testing.assert_allclose(mean, reference.mean(weights, values), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(log_sum, reference.log_sum(weights), rtol=1e-12, atol=1e-12)


SUMS = {
    "two": lb.gaussian(0.5) + lb.cauchy(1.0),
    "a constant": lb.gaussian(0.1) + 1e-3,
    "times a constant": (lb.gaussian(0.1) + 1e-3) * 7.0,
    "multiplied out": (lb.gaussian(0.5, on=0) + 0.1) * (lb.laplace(2.0, on=1) + lb.epanechnikov(1.0, on=1)),
    "a constant times a heavy tail": (lb.gaussian(0.5, on=0) + 0.1) * lb.cauchy(1.0, on=1),
    "by the program": lb.von_mises(2.0, on=[0]) + lb.gaussian(0.5),
    "neighbours": lb.knn(3) + 0.01 * lb.gaussian(1.0),
    "kNN bandwidth": lb.gaussian(lb.knn_bandwidth(4)) + lb.tricube(lb.knn_bandwidth(9, side="sample")),
    "too many": sum([lb.gaussian(h) for h in np.linspace(0.2, 2.0, 11)], 0.5 * lb.cauchy(1.0)),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_is_the_sum_of_its_parts(name):
    q, x, values = data()
    rng = np.random.default_rng(1)
    weight = rng.choice([0.0, 1.0, 2.0], len(x))
    mask = rng.random((len(q), len(x))) < 0.6
    for options in ({}, {"sample_weight": weight}, {"mask": mask}, {"sample_weight": weight, "mask": mask}):
        check(SUMS[name], q, x, values, **options)
    check(SUMS[name].hollow(), x, x, values)
    check(SUMS[name].masked(rng.random((len(x), len(x))) < 0.6).hollow(), x, x, values)


@pytest.mark.parametrize("name", SUMS)
def test_the_parts_are_added_in_the_units_of_the_largest(name):
    """Far from all samples one part is 0 exactly, another too small for a float, and the mean is what is left."""
    q, x, values = data()
    for far in (3.0, 40.0, 1e4):
        problem = engine.Problem.check(q + far, x, SUMS[name])
        scale, total, sums = reductions._program_sums(problem, values, False)
        mean, log_sum = engine.mean(problem, values, with_log_sum=True)
        np.testing.assert_allclose(mean, sums / total[:, None], rtol=1e-6 if far > 1e3 else 1e-10)
        np.testing.assert_allclose(log_sum, scale + np.log(total), rtol=1e-12)


def test_multiplying_out():
    a, b, c = lb.gaussian(1.0), lb.laplace(1.0), lb.cauchy(1.0)
    for kernel, count in (((a + b) * (a + c), 4), (2 * (a + b + c).hollow(), 3), (a * b, 1), (a, 1)):
        assert reductions._count(kernel) == len(reductions._summands(kernel)) == count
    deep = a
    for _ in range(60):
        deep = deep * (a + 0.5)
    assert reductions._count(deep) == 2**60  # counted, not written down


@pytest.mark.parametrize("d", [1, 3, 7])
def test_neighbours_against_scikit_learn(d):
    q, x, values = data(2000, 300, d)
    labels = np.digitize(values[:, 0], [-0.5, 0.5])
    for k in (1, 2, 10, 500):
        peer = KNeighborsRegressor(k).fit(x, values).predict(q)
        np.testing.assert_allclose(lb.local_mean(q, x, values, lb.knn(k)), peer, atol=1e-13)
        shares = engine.classes(engine.Problem.check(q, x, lb.knn(k)), labels, 3)
        np.testing.assert_allclose(
            shares, KNeighborsClassifier(k).fit(x, labels).predict_proba(q), atol=1e-13
        )


def test_neighbours_under_restrictions():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 6, size=(60, 2)).astype(float)  # ties everywhere
    values = rng.normal(size=(60, 3))
    weight = rng.choice([1.0, 2.0, 3.0], 60)
    mask = rng.random((60, 60)) < 0.7
    for k, options in itertools.product((1, 4, 9), ({}, {"sample_weight": weight}, {"mask": mask})):
        check(lb.knn(k), x, x, values, **options)
        ties = lb.knn(k, ties="include")
        check(ties, x, x, values, **options)
        for kernel in (3.0 * lb.knn(k).hollow(), lb.knn(k, metric="manhattan").masked(mask), ties.hollow()):
            if "sample_weight" not in options:  # the twin repeats rows
                check(kernel, x, x, values, **options)
            problem = engine.Problem.check(x, x, kernel, **options)
            scale, total, sums = reductions._program_sums(problem, values, False)
            mean, log_sum = engine.mean(problem, values, with_log_sum=True)
            np.testing.assert_allclose(mean, sums / total[:, None], atol=1e-13)
            np.testing.assert_allclose(log_sum, scale + np.log(total), atol=1e-14)


def test_neighbours_of_multiplicities_far_apart():
    """One and a half of the first, a half of the second, however many there are of that one."""
    x, values = np.arange(4.0)[:, None], np.array([[1.0], [3.0], [7.0], [7.0]])
    for many in (1.0, 1e10, 1e20):
        weight = np.array([1.5, many, 1.0, 1.0])
        for kernel in (lb.knn(2), lb.knn(2) + 1e-40):
            problem = engine.Problem.check([[0.0]], x, kernel, sample_weight=weight)
            mean, log_sum = engine.mean(problem, values, with_log_sum=True)
            np.testing.assert_allclose((mean[0, 0], log_sum[0]), (1.5, np.log(2.0)), rtol=1e-14)


@pytest.mark.parametrize("count", [1, 5, 30])
def test_all_that_tie_are_let_in_however_many(count):
    x = np.repeat(np.arange(12.0), count)[:, None]
    values = np.random.default_rng(4).normal(size=(len(x), 2))
    for k in (1, 3, 13):
        if k <= len(x):
            check(lb.knn(k, ties="include"), x[::3] + 0.25, x, values)
            check(lb.knn(k, ties="include"), x[::3] + 0.5, x, values)
    far = lb.local_mean([[100.0]], x, values, lb.epanechnikov(1.0), empty="nearest")
    np.testing.assert_allclose(far[0], values[-count:].mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("prune", [True, False])
def test_neighbours_do_not_depend_on_who_asks(prune):
    q, x, values = data(3000, 200, 3)
    whole = lb.local_mean(q, x, values, lb.knn(7), prune=prune)
    parts = [lb.local_mean(some, x, values, lb.knn(7), prune=prune) for some in np.array_split(q, 7)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize("count", [2, 5, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_shares_of_classes(count, dtype):
    q, x, _ = (part.astype(dtype) for part in data())
    labels = np.random.default_rng(3).integers(0, count, len(x))
    for kernel in (lb.gaussian(0.3), lb.cauchy(1.0), lb.epanechnikov(1.0), lb.von_mises(1.0, on=[0])):
        problem = engine.Problem.check(q, x, kernel)
        weights = engine.normalized_weights(problem, "mean", warn=False)
        shares = engine.classes(problem, labels, count, "mean")
        np.testing.assert_allclose(
            shares, weights @ np.eye(count)[labels], atol=1e-5 if dtype == "float32" else 1e-12
        )
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-15)
