"""Faults A (empty and vanishing neighbourhoods) and B 14 (ties) of shared/faults.md: one test for each number."""

import numpy as np
import pytest

import locbook as lb
from locbook import EmptyNeighborhoodWarning


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("h", [0.1, 1e-3, 1e-10])
@pytest.mark.parametrize("query", [50.0, 5000.0, -50.0])
def test_a1_far_from_the_data_the_limit_and_no_made_up_zero(dtype, h, query):
    x = np.arange(6, dtype=dtype)[:, None]
    y = (x[:, 0] ** 2 + 1).astype(dtype)
    end = 26.0 if query > 0 else 1.0
    far = np.array([[query]], dtype=dtype)
    for kernel in (lb.gaussian(h), lb.laplace(h)):
        assert lb.local_mean(far, x, y, kernel)[0] == pytest.approx(end, rel=1e-4)
    assert 1.0 < lb.local_mean(far, x, y, lb.cauchy(h))[0] < 26.0
    with pytest.warns(EmptyNeighborhoodWarning):
        assert np.isnan(lb.local_mean(far, x, y, lb.epanechnikov(h)))
    # between two samples that are a thousand bandwidths away
    assert lb.local_mean(np.array([[5.2]], dtype), x, y, lb.gaussian(h / 100))[0] == 26.0


@pytest.mark.parametrize(
    "kernel", ["uniform", "triangular", "epanechnikov", "biweight", "triweight", "tricube", "cosine"]
)
def test_a3_one_policy_for_every_kernel_and_good_rows_as_they_were(kernel):
    x, y = np.arange(4.0)[:, None], np.array([0.0, 0.0, 1.0, 1.0])
    q = np.array([[-2.0], [0.0], [3.0], [9.0]])
    with pytest.warns(EmptyNeighborhoodWarning, match="2 of 4"):
        answer = lb.local_mean(q, x, y, lb.KERNELS[kernel](1.0))
    assert np.isnan(answer).tolist() == [True, False, False, True]
    np.testing.assert_array_equal(answer[1:3], lb.local_mean(q[1:3], x, y, lb.KERNELS[kernel](1.0)))
    assert lb.local_mean(q, x, y, lb.KERNELS[kernel](1.0), empty="nearest")[[0, 3]].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("far", [14.0, 40.0, 1e4])
def test_a5_a_ratio_of_weights_that_underflow(dtype, far):
    x, y = np.array([[0, 0], [0, 1]], dtype), np.array([0, 1], dtype)
    q = np.array([[far, 0.5], [0.0, 0.5]], dtype)
    answer, w = lb.local_mean(q, x, y, lb.gaussian(1.0), return_weights=True)
    assert answer.dtype == dtype
    assert answer.tolist() == [0.5, 0.5]  # exactly: a tie
    assert w.tolist() == [[0.5, 0.5]] * 2
    assert lb.leave_one_out(x * np.array(far, dtype), y, lb.gaussian(1.0)).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("shift", [0.0, 1000.0, 1e6])
def test_a6_log_densities_are_returned_and_renormalised_by_their_maximum(shift):
    # two sums of weights one e-fold apart, far down
    log_p = np.array([-1000.0 - shift, -1001.0 - shift])
    q = np.sqrt(-2 * (log_p + 0.5 * np.log(2 * np.pi)))[:, None]
    ours = lb.log_density(q, [[0.0]], lb.gaussian(1.0))
    np.testing.assert_allclose(ours, log_p, rtol=1e-14)
    weights = lb.local_weights([[0.0]], q, lb.gaussian(1.0))[0]
    np.testing.assert_allclose(weights, [0.73106, 0.26894], atol=1e-5)


def test_b14_ties_go_by_distance_then_by_row():
    x, q = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]), np.zeros((1, 2))
    y = np.array([1.0, 2.0, 4.0, 8.0])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        for k in (1, 2, 3):
            assert lb.local_mean(q, x[order], y[order], lb.knn(k))[0] == y[order][:k].mean()
            assert lb.local_mean(q, x[order], y[order], lb.knn(k, ties="include"))[0] == 3.75
            found = lb.engine.nearest(lb.engine.Problem.check(q, x[order], "gaussian"), k)
            assert found.indices.tolist() == [list(range(k))]
        # with columns swapped the rows decide alike
        assert lb.local_mean(q, x[order][:, ::-1], y[order], lb.knn(1))[0] == y[order][0]
    # more ties than a tile, a chunk or a block holds
    many = np.ones((9000, 1))
    found = lb.engine.nearest(lb.engine.Problem.check(np.zeros((600, 1)), many, "gaussian"), 5)
    np.testing.assert_array_equal(found.indices, np.tile(np.arange(5), (600, 1)))


def test_l82_queries_outside_the_data_are_answered():
    x = np.linspace(0, 1, 50)[:, None]
    q = np.array([[-1.0], [0.5], [2.0], [1e8]])
    for kernel in lb.PROFILES:
        answer = lb.local_mean(q, x, x[:, 0], lb.KERNELS[kernel](0.2), empty="nearest")
        assert ((answer >= 0) & (answer <= 1)).all()
