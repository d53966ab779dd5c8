"""The smoother: its trace, its rows, and leave-one-out three ways."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locbook as lb
from tests.foundations.test_properties import ADAPTIVE, ALL, FIXED, RADIAL, random_problem

few = settings(derandomize=True, max_examples=6, deadline=None, database=None)
seeds = st.integers(0, 10_000)


def refit(x, y, kernel, sample_weight=None, empty="mean"):
    """Leave-one-out by its definition: n local means of n - 1 samples."""
    answer = []
    for i in range(len(x)):
        others = np.arange(len(x)) != i
        weight = None if sample_weight is None else sample_weight[others]
        answer.append(
            lb.local_mean(x[[i]], x[others], y[others], kernel, sample_weight=weight, empty=empty)[0]
        )
    return np.array(answer)


def size_of(name):
    # hollow takes what the others leave, so a compact kernel must reach some
    return RADIAL[name](3.0) if name in RADIAL else ALL[name]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", FIXED)
@few
@given(seed=seeds)
def test_leave_one_out_three_ways(name, weighted, seed):
    _, x, y = random_problem(seed)
    weight = np.random.default_rng(seed).integers(0, 3, len(x)) + 0.0 if weighted else None
    kernel = size_of(name)
    expected = refit(x, y, kernel, weight)
    for method in ("hollow", "shortcut"):
        answer = lb.leave_one_out(x, y, kernel, method=method, sample_weight=weight, empty="mean")
        np.testing.assert_allclose(answer, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ADAPTIVE)
@pytest.mark.parametrize("weighted", [False, True])
@few
@given(seed=seeds, ties=st.booleans())
def test_leave_one_out_of_adaptive_kernels(name, weighted, seed, ties):
    _, x, y = random_problem(seed, ties=ties)
    weight = np.random.default_rng(seed).integers(0, 3, len(x)) + 0.0 if weighted else None
    kernel = ALL[name]
    answer = lb.leave_one_out(x, y, kernel, sample_weight=weight, empty="mean")
    np.testing.assert_allclose(answer, refit(x, y, kernel, weight), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="method='shortcut'"):
        lb.leave_one_out(x, y, kernel, method="shortcut")


def test_the_shortcut_where_a_sample_is_nearly_alone():
    x = np.array([[0.0], [1e-3], [0.05], [7.0], [7.5]])
    y = np.array([1.0, 2.0, -1.0, 5.0, 1e6])
    for h in (1.0, 0.1, 0.02, 0.01, 1e-3, 1e-5):
        np.testing.assert_allclose(
            lb.leave_one_out(x, y, lb.gaussian(h), method="shortcut"), refit(x, y, lb.gaussian(h)), rtol=1e-9
        )
    duplicates = np.array([[0.0], [0.0], [9.0]])
    for method in ("hollow", "shortcut"):  # S_ii = 1 at the third: 0/0 by the formula
        answer = lb.leave_one_out(duplicates, [1.0, 3.0, 8.0], lb.gaussian(1e-3), method=method)
        np.testing.assert_allclose(answer, [3.0, 1.0, 2.0])


def test_the_left_out_sample_must_leave_k_others():
    x = np.arange(5.0)[:, None]
    assert np.isfinite(lb.leave_one_out(x, x[:, 0], lb.knn(4))).all()
    with pytest.raises(ValueError, match="at most the 4 others"):
        lb.leave_one_out(x, x[:, 0], lb.knn(5))
    with pytest.raises(ValueError, match="at most the 4 others"):  # it leaves with all its multiplicity
        lb.leave_one_out(x, x[:, 0], lb.knn(5), sample_weight=[1, 1, 1, 9, 1])
    assert np.isfinite(lb.leave_one_out(x, x[:, 0], lb.knn(5), sample_weight=[2, 2, 2, 2, 2])).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_degrees_of_freedom_are_the_trace(name, weighted):
    _, x, y = random_problem(5)
    weight = np.random.default_rng(5).integers(1, 4, len(x)) if weighted else None
    kernel = size_of(name)
    smoother = lb.smoother_matrix(x, kernel, sample_weight=weight)
    np.testing.assert_allclose(smoother.sum(1), 1.0, rtol=1e-14)
    assert lb.degrees_of_freedom(x, kernel, sample_weight=weight) == pytest.approx(
        np.trace(smoother), rel=1e-12
    )
    np.testing.assert_allclose(smoother @ y, lb.local_mean(x, x, y, kernel, sample_weight=weight), atol=1e-12)


def test_degrees_of_freedom_from_one_to_n(threads):
    x = np.linspace(0, 1, 300)[:, None]  # more than a block
    assert lb.degrees_of_freedom(x, lb.gaussian(1e9)) == pytest.approx(1.0)
    assert lb.degrees_of_freedom(x, lb.gaussian(1e-9)) == pytest.approx(300.0)
    for count in (1, 2, 5):
        threads(count)
        assert lb.degrees_of_freedom(x, lb.gaussian(0.1)) == pytest.approx(
            np.trace(lb.smoother_matrix(x, lb.gaussian(0.1))), rel=1e-13
        )


def test_hollow_needs_the_samples_as_queries():
    x = np.arange(4.0)[:, None]
    with pytest.raises(ValueError, match="hollow"):
        lb.local_mean(x + 0.5, x, x[:, 0], lb.gaussian().hollow())
    with pytest.raises(ValueError, match="hollow"):
        lb.local_mean(x[::-1], x, x[:, 0], lb.gaussian().hollow())
    # an equal copy is the samples too, and so are the first of them
    np.testing.assert_array_equal(
        lb.local_mean(x.copy(), x, x[:, 0], lb.gaussian().hollow()),
        lb.leave_one_out(x, x[:, 0], lb.gaussian()),
    )
