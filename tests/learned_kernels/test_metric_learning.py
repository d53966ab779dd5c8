"""A linear map learned on the leave-one-out loss."""

import numpy as np
import pytest

import locbook as lb

RNG = np.random.default_rng(5)
N = 160
#: Values follow one direction of four columns of unlike units.
UNITS = np.array([1.0, 50.0, 1e-3, 2.0])
DIRECTION = np.array([1.0, -0.8, 0.5, 0.0])
X = RNG.normal(size=(N, 4)) * UNITS
Y = np.sin(2 * (X / UNITS) @ DIRECTION) + 0.1 * RNG.normal(size=N)


def leave_one_out_score(transform, kernel, x=X, y=Y):
    z = x @ transform.T
    return ((y - lb.local_mean(z, z, y, kernel.hollow())) ** 2).mean()


@pytest.mark.parametrize("r", [1, 2, 4])
def test_it_finds_the_direction(r):
    learned = lb.learn_metric(X, Y, n_components=r)
    assert learned.transform.shape == (r, 4)
    assert learned.score < 0.5 * learned.initial_score
    assert learned.score < 0.3 * lb.select_bandwidth(X, Y, lb.gaussian(UNITS)).score
    assert learned.score == pytest.approx(leave_one_out_score(learned.transform, learned.kernel), rel=1e-9)
    axis = np.linalg.svd(learned.transform * UNITS)[2][0]
    assert abs(axis @ DIRECTION) / np.linalg.norm(DIRECTION) > 0.99
    # and it predicts
    queries = RNG.normal(size=(500, 4)) * UNITS
    means = lb.local_mean(learned.apply(queries), learned.apply(X), Y, learned.kernel)
    assert ((means - np.sin(2 * (queries / UNITS) @ DIRECTION)) ** 2).mean() < 0.1


@pytest.mark.parametrize(
    "kernel",
    [
        lb.laplace(),
        lb.gaussian(0.3) * lb.cauchy(on=0),
        lb.triweight(3.0) + 1e-3,
        lb.gaussian(metric="manhattan"),
        lb.cauchy(),
    ],
    ids=repr,
)
def test_it_is_a_minimum_for_any_kernel(kernel):
    learned = lb.learn_metric(X, Y, kernel, n_components=2)
    assert learned.score < 0.7 * learned.initial_score
    assert learned.kernel == kernel
    for seed in range(5):
        change = 1 + 1e-2 * np.random.default_rng(seed).normal(size=learned.transform.shape)
        assert leave_one_out_score(learned.transform * change, kernel) > learned.score * (1 - 1e-5)


def test_a_compact_kernel_stops_before_it_leaves_a_sample_alone():
    learned = lb.learn_metric(X, Y, "triweight", n_components=2)
    assert learned.score < 0.7 * learned.initial_score
    assert learned.score == pytest.approx(leave_one_out_score(learned.transform, learned.kernel), rel=1e-9)


def test_units_do_not_matter():
    one = lb.learn_metric(X, Y, n_components=1)
    other = lb.learn_metric(X * 2.0**10, Y * 2.0**20, n_components=1)
    assert other.score == pytest.approx(one.score * 2.0**40, rel=1e-6)
    np.testing.assert_allclose(other.transform * 2.0**10, one.transform, rtol=1e-3, atol=1e-6 / UNITS.min())


def test_it_starts_where_one_says_and_stops_when_one_says():
    start = np.array([[0.5, 0.01, 200.0, 0.1]])
    short = lb.learn_metric(X, Y, initial=start, max_iterations=1)
    assert short.initial_score == pytest.approx(leave_one_out_score(start, lb.gaussian()), rel=1e-9)
    assert short.n_iterations == 1
    assert not short.converged
    assert short.score < short.initial_score
    again = lb.learn_metric(X, Y, initial=lb.learn_metric(X, Y, initial=start).transform)
    assert again.score == pytest.approx(again.initial_score, rel=1e-4)
    assert again.converged


def test_multiplicities_are_samples_that_are_left_out_together():
    weight = np.ones(N)
    weight[::4] = 0
    broken = np.where(weight[:, None] > 0, X, 1e9)
    ours = lb.learn_metric(broken, Y, n_components=1, sample_weight=weight)
    without = lb.learn_metric(X[weight > 0], Y[weight > 0], n_components=1)
    np.testing.assert_allclose(ours.transform, without.transform, rtol=1e-6)
    assert lb.learn_metric(X, Y, n_components=1, sample_weight=np.full(N, 3.0)).score == pytest.approx(
        lb.learn_metric(X, Y, n_components=1).score, rel=1e-6
    )


def test_several_outputs_and_float32():
    both = np.column_stack([Y, 0.5 * Y])
    one, two = (lb.learn_metric(X, v, n_components=1, max_iterations=20) for v in (Y, both))
    assert two.score == pytest.approx(1.25 * one.score, rel=1e-3)
    small = lb.learn_metric(X.astype(np.float32), Y.astype(np.float32), n_components=1, max_iterations=20)
    assert small.score == pytest.approx(one.score, rel=1e-2)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_components": 5}, ValueError, "n_components must be between 1 and 4, got 5"),
        ({"n_components": 1.0}, TypeError, "n_components must be an integer"),
        ({"initial": np.eye(3)}, ValueError, "initial must have 4 columns"),
        (
            {"initial": np.eye(4), "n_components": 2},
            ValueError,
            "initial must have n_components=2 rows, got 4",
        ),
        ({"initial": np.eye(4) * 1e9, "kernel": "tricube"}, ValueError, "some sample has no neighbour"),
        ({"kernel": "uniform"}, ValueError, "kernel uniform.* has the derivative 0"),
        ({"max_iterations": 0}, ValueError, "max_iterations must be at least 1"),
        ({"kernel": lb.gaussian(metric="hamming")}, ValueError, "metric 'hamming' has no derivative"),
        ({"values": Y[:5]}, ValueError, "values has 5 rows"),
        ({"sample_weight": -np.ones(N)}, ValueError, "sample_weight must be >= 0"),
    ],
)
def test_bad_input(change, error, message):
    with pytest.raises(error, match=message):
        lb.learn_metric(**{"samples": X, "values": Y, **change})
    with pytest.raises(ValueError, match="points must have 4 columns"):
        lb.learn_metric(X, Y, max_iterations=1).apply(np.ones((2, 3)))
