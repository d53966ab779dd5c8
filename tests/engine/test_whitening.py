"""Distances with a matrix as Euclidean ones of other columns: the same weights, by a cheaper way."""

import numpy as np
import pytest

import locbook as lb
from locbook.engine import Problem, dense_weights
from locbook.engine.leaf import as_leaf
from locbook.engine.whitening import FARTHEST, whiten

COVARIANCE = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.4], [0.1, -0.4, 0.5]])
METRIC = lb.mahalanobis(COVARIANCE)
ROOT = np.linalg.cholesky(COVARIANCE)
KERNELS = {
    "covariance": lb.gaussian(0.7, metric=METRIC),
    "matrix": lb.laplace(0.4 * ROOT),
    "two columns": lb.epanechnikov(2.0, metric=lb.mahalanobis(COVARIANCE[1:, 1:]), on=[2, 0]),
    "product": lb.softmax(2.0) * lb.cauchy(ROOT) * lb.causal(on=1) * lb.triweight(5.0, metric=METRIC),
    "sum": lb.tricube(3.0, metric=METRIC) + 0.5 * lb.gaussian(2.0),
    "hollow": lb.gaussian(ROOT).hollow(),
    "per sample": lb.gaussian(lb.per_sample(np.linspace(0.5, 2.0, 60)), metric=METRIC),
    "per query": lb.gaussian(lb.per_query(np.linspace(0.5, 2.0, 60)), metric=METRIC),
}


def data(offset=0.0, dtype=np.float64):
    return (np.random.default_rng(0).normal(size=(60, 3)) + offset).astype(dtype)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("keep_columns", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_the_weights_are_the_same(name, keep_columns, offset):
    x = data(offset)
    problem = Problem.check(x, x, KERNELS[name])
    other = whiten(problem, keep_columns=keep_columns)
    assert other is not problem
    assert other.queries is other.samples
    assert all(leaf.metric.name == "euclidean" for leaf in other.kernel.leaves() if hasattr(leaf, "metric"))
    if keep_columns:
        np.testing.assert_array_equal(other.samples[:, :3], x)
    some = problem.rows(np.arange(5, 20), problem.kernel), other.rows(np.arange(5, 20), other.kernel)
    for before, after in [(problem, other), some]:
        got, want = (lb.engine.normalized_weights(p) for p in (after, before))
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-14)


def test_one_leaf_becomes_one_that_the_fused_path_knows():
    problem = Problem.check(data(), data(), KERNELS["covariance"])
    assert as_leaf(problem) is None
    assert as_leaf(whiten(problem)) is not None
    assert whiten(problem).samples.shape == (60, 3)


@pytest.mark.parametrize(
    "kernel",
    [
        lb.gaussian(2.0),
        lb.gaussian(metric=lb.minkowski(3.0)),
        lb.gaussian(lb.knn_bandwidth(5), metric=METRIC),
        lb.knn(5, metric=METRIC),
        lb.gaussian(1e-3 / FARTHEST, metric=METRIC),
        lb.gaussian(1e-3 / FARTHEST * ROOT),
    ],
    ids=repr,
)
def test_what_is_no_map_or_would_lose_digits_stays(kernel):
    problem = Problem.check(data(), data(), kernel)
    assert whiten(problem) is problem


def test_a_query_beyond_all_floats_stays_and_is_refused():
    x = data()
    far = np.full((1, 3), 1e200)
    with pytest.raises(ValueError, match="must not go beyond"):
        lb.local_mean(far, x, x[:, 0], KERNELS["covariance"])


def test_an_answer_depends_on_no_other_query():
    x, y = data(), np.arange(60.0)
    whole = lb.local_mean(x, x, y, KERNELS["covariance"], prune=False)
    for i in (0, 7, 59):
        assert lb.local_mean(x[i : i + 1], x, y, KERNELS["covariance"], prune=False)[0] == whole[i]


def test_a_covariance_that_does_not_fit_is_named():
    with pytest.raises(ValueError, match="covariance is"):
        lb.local_mean(data(), data(), np.ones(60), lb.gaussian(metric=lb.mahalanobis(np.eye(2))))


@pytest.mark.parametrize("name", ["covariance", "matrix", "two columns"])
def test_dense_weights_take_differences_first(name):
    x = data(1e8)
    mapped = np.exp(lb.engine.log_sum(Problem.check(x[:4], x, KERNELS[name])))
    dense = dense_weights(KERNELS[name], x[:4], x, log=False).sum(1)
    np.testing.assert_allclose(mapped, dense, rtol=1e-11)
