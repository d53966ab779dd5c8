"""Queries without a neighbour: four policies, one warning with the right count, and the good rows as they were."""

import warnings

import numpy as np
import pytest

import locbook as lb
from locbook import EmptyNeighborhoodWarning, engine
from tests.engine.problems import problem

X = np.array([[0.0], [1.0], [2.0], [6.0]])
Y = np.array([1.0, 2.0, 4.0, 10.0])
Q = np.array([[0.5], [4.0], [-9.0], [6.2]])  # rows 1 and 2 see nobody; row 1 ties between samples 2 and 3
GOOD, EMPTY = [0, 3], [1, 2]
COMPACT = {
    name: lb.KERNELS[name](1.0)
    for name in ("uniform", "triangular", "epanechnikov", "biweight", "triweight", "tricube", "cosine")
}
COMPACT |= {
    "product": lb.uniform(1.0) * lb.gaussian(3.0),
    "sum": lb.uniform(1.0) + lb.triangular(0.5),
    "scaled": 3.0 * lb.uniform(1.0),
    "window": lb.window(1.0),
    "user": lb.Kernel(lambda s: 1.0 if s <= 1.0 else 0.0),
}
EXPECTED = {"nearest": [7.0, 1.0], "mean": [4.25, 4.25], "nan": [np.nan, np.nan]}


@pytest.mark.parametrize("policy", ["nan", "nearest", "mean"])
@pytest.mark.parametrize("name", COMPACT)
def test_policies(name, policy):
    kernel = COMPACT[name]
    good = lb.local_mean(Q[GOOD], X, Y, kernel)  # no warning: warnings are errors here
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer, weights = lb.local_mean(Q, X, Y, kernel, empty=policy, return_weights=True)
    np.testing.assert_array_equal(answer[GOOD], good)
    np.testing.assert_allclose(answer[EMPTY], EXPECTED[policy], rtol=1e-15)
    if policy == "nan":
        assert [w.category for w in caught] == [EmptyNeighborhoodWarning]
        assert "2 of 4 queries" in str(caught[0].message)
        assert "first: row 1" in str(caught[0].message)
        assert caught[0].filename == __file__
        np.testing.assert_array_equal(weights[EMPTY], 0.0)
    else:
        assert not caught
        np.testing.assert_allclose(weights.sum(1), 1.0, rtol=1e-15)
        np.testing.assert_allclose(weights @ Y, answer, rtol=1e-14)


@pytest.mark.parametrize("name", COMPACT)
def test_raise_says_how_many(name):
    with pytest.raises(ValueError, match="2 of 4 queries"):
        lb.local_mean(Q, X, Y, COMPACT[name], empty="raise")
    lb.local_mean(Q[GOOD], X, Y, COMPACT[name], empty="raise")
    with pytest.raises(ValueError, match="2 of 4 queries"):
        lb.local_weights(Q, X, COMPACT[name], empty="raise")


def test_every_reduction_follows_the_policy():
    given = problem(lb.uniform(1.0), Q, X)
    labels = np.array([0, 0, 1, 2])
    np.testing.assert_array_equal(engine.classes(given, labels, 3, "nearest")[1], [0, 0.5, 0.5])
    np.testing.assert_array_equal(engine.classes(given, labels, 3, "mean")[2], [0.5, 0.25, 0.25])
    np.testing.assert_array_equal(
        engine.quantile(given, Y[:, None], np.array([0.5, 1.0]), "nearest")[1, 0], [4, 10]
    )
    np.testing.assert_array_equal(
        engine.quantile(given, Y[:, None], np.array([0.5, 1.0]), "mean")[2, 0], [2, 10]
    )
    for reduction in (
        lambda: engine.classes(given, labels, 3),
        lambda: engine.quantile(given, Y[:, None], np.array([0.5])),
        lambda: engine.normalized_weights(given),
        lambda: engine.mean(given, Y[:, None]),
    ):
        with pytest.warns(EmptyNeighborhoodWarning, match="2 of 4"):
            reduction()


def test_masked_rows():
    mask = np.ones((4, 4), dtype=bool)
    mask[0] = False  # a query that sees nobody at all
    mask[1, 3] = False  # its nearest that takes part is sample 2 alone
    with pytest.warns(EmptyNeighborhoodWarning, match=r"1 of 4 queries .*row 0\).*'nearest'"):
        answer = lb.local_mean(Q, X, Y, lb.uniform(1.0), mask=mask, empty="nearest")
    np.testing.assert_array_equal(answer, [np.nan, 4.0, 1.0, 10.0])
    with pytest.warns(EmptyNeighborhoodWarning, match="1 of 4"):
        answer = lb.local_mean(Q, X, Y, lb.uniform(1.0), mask=mask, empty="mean")
    np.testing.assert_allclose(answer, [np.nan, 7 / 3, 4.25, 10.0])
    with pytest.raises(ValueError, match="3 of 4"):
        lb.local_mean(Q, X, Y, lb.uniform(1.0), mask=mask, empty="raise")
    # a kernel that is positive everywhere has empty rows too where a mask hides everybody
    for kernel in ("gaussian", "cauchy", "softmax", "von_mises"):
        with pytest.warns(EmptyNeighborhoodWarning, match="1 of 4"):
            answer = lb.local_mean(Q, X, Y, kernel, mask=mask)
        assert np.isnan(answer).tolist() == [True, False, False, False]
    np.testing.assert_array_equal(
        lb.local_mean(Q[1:], X, Y, lb.gaussian().masked(mask[1:])), lb.local_mean(Q[1:], X, Y, mask=mask[1:])
    )


def test_policy_and_sample_weight():
    # the nearest is the nearest whatever its multiplicity, fractions included; absent samples do not count
    for scale in (1.0, 0.1, 1e-9, 1e9):
        weight = scale * np.array([1.0, 1.0, 1.0, 3.0])
        answer = lb.local_mean(Q, X, Y, lb.uniform(1.0), empty="nearest", sample_weight=weight)
        np.testing.assert_allclose(answer[EMPTY], [(4 + 3 * 10) / 4, 1.0], rtol=1e-14)
        answer = lb.local_mean(Q, X, Y, lb.uniform(1.0), empty="mean", sample_weight=weight)
        np.testing.assert_allclose(answer[EMPTY], [37 / 6, 37 / 6], rtol=1e-14)
    answer = lb.local_mean(Q, X, Y, lb.uniform(1.0), empty="nearest", sample_weight=[0, 1, 1, 0])
    np.testing.assert_array_equal(answer, [2.0, 4.0, 2.0, 4.0])


@pytest.mark.parametrize("kernel", [lb.uniform(1.0), lb.gaussian(0.5)])
def test_hollow(kernel):
    # sample 3 is alone under the uniform kernel; under the Gaussian it has the limit
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = lb.leave_one_out(X, Y, kernel)
    if kernel.full_support:
        assert answer[3] == pytest.approx(4.0)
        assert not caught
    else:
        assert np.isnan(answer).tolist() == [False, False, False, True]
        assert "1 of 4 queries" in str(caught[0].message)
        assert "first: row 3" in str(caught[0].message)
    assert lb.leave_one_out(X, Y, kernel, empty="nearest")[3] == pytest.approx(4.0)


def test_hollow_of_a_single_sample_has_no_answer_to_give():
    for kernel in ("gaussian", lb.uniform(1.0)):
        for policy in ("nan", "nearest", "mean"):
            for method in ("hollow", "shortcut"):
                with pytest.warns(EmptyNeighborhoodWarning, match="1 of 1"):
                    answer = lb.leave_one_out([[0.0]], [1.0], kernel, empty=policy, method=method)
                assert np.isnan(answer).all()
        with pytest.raises(ValueError, match="1 of 1"):
            lb.leave_one_out([[0.0]], [1.0], kernel, empty="raise")


def test_one_warning_counts_all_samples_in_both_methods():
    for method in ("hollow", "shortcut"):
        with pytest.warns(EmptyNeighborhoodWarning, match=r"2 of 4 queries.*row 2\)") as caught:
            answer = lb.leave_one_out(
                [[0.0], [1.0], [100.0], [200.0]],
                Y,
                lb.uniform(2.0),
                method=method,
                sample_weight=[1, 1, 0, 1],
            )
        assert len(caught) == 1
        np.testing.assert_array_equal(answer, [2.0, 1.0, np.nan, np.nan])


def test_full_support_takes_the_limit_and_then_the_policy():
    far = np.array([[1e6], [-1e6]])
    for policy in ("nan", "mean", "nearest", "raise"):
        for kernel in (
            lb.gaussian(1e-3),
            lb.gaussian(1e-150),
            lb.laplace(1e-3),
            lb.gaussian() * lb.gaussian(),
        ):
            np.testing.assert_array_equal(lb.local_mean(far, X, Y, kernel, empty=policy), [10.0, 1.0])
    # no common column: no distance, no limit; then the policy that was asked for
    x = np.array([[0.0, np.nan], [1.0, 2.0], [np.nan, 3.0]])
    q = np.array([[np.nan, np.nan], [0.0, 0.0]])
    kernel = lb.gaussian(metric="nan_euclidean")
    with pytest.warns(EmptyNeighborhoodWarning, match=r"1 of 2 .*'nan'"):
        assert np.isnan(lb.local_mean(q, x, [1.0, 2.0, 3.0], kernel)[0])
    assert lb.local_mean(q, x, [1.0, 2.0, 3.0], kernel, empty="mean")[0] == 2.0
    with pytest.raises(ValueError, match="1 of 2"):
        lb.local_mean(q, x, [1.0, 2.0, 3.0], kernel, empty="raise")


def test_distances_that_no_float_holds_are_refused():
    for kernel in ("gaussian", "cauchy", "laplace"):
        with pytest.raises(ValueError, match="1e\\+150"):
            lb.local_mean([[1e160]], X, Y, kernel)
    np.testing.assert_allclose(lb.local_mean([[1e150]], X, Y, "cauchy"), Y.mean())


def test_nearest_needs_a_distance():
    kernel = lb.discrete([[0.0, 1.0], [1.0, 0.0]])
    assert lb.local_mean([[0]], [[1]], [3.0], kernel).tolist() == [3.0]
    with pytest.raises(ValueError, match="empty='nearest'"):
        lb.local_mean([[0]], [[0]], [3.0], kernel, empty="nearest")
    assert lb.local_mean([[0]], [[0]], [3.0], kernel, empty="mean").tolist() == [3.0]


def test_kernels_made_for_all_queries_follow_the_few_that_are_empty():
    widths = lb.per_query([1.0, 0.1, 0.2, 1.0])
    answer = lb.local_mean(Q, X, Y, lb.uniform(widths), empty="nearest")
    np.testing.assert_array_equal(answer, [1.5, 7.0, 1.0, 10.0])
    mask = np.ones((4, 4), dtype=bool)
    mask[1, 3] = False
    answer = lb.local_mean(Q, X, Y, lb.uniform(1.0).masked(mask), empty="nearest")
    np.testing.assert_array_equal(answer, [1.5, 4.0, 1.0, 10.0])
    with pytest.raises(ValueError, match="4 entries, but there are 3 queries"):
        lb.local_mean(Q[:3], X, Y, lb.uniform(widths))
    with pytest.raises(ValueError, match="mask"):
        lb.local_mean(Q[:3], X, Y, lb.uniform(1.0).masked(mask))


# -- what the mask hides -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [lb.gaussian(), lb.uniform(3.0), lb.knn(2), lb.gaussian(lb.knn_bandwidth(2)), lb.softmax(), lb.laplace() + 0.1,
     lb.gaussian(metric="cosine"), lb.von_mises()],
    ids=repr,
)  # fmt: skip
def test_hidden_nan_leaks_nowhere(kernel):
    rng = np.random.default_rng(0)
    q, x, y = rng.normal(size=(6, 2)), rng.normal(size=(9, 2)), rng.normal(size=(9, 2))
    mask = rng.random((6, 9)) < 0.8
    mask[:, [2, 5]] = False
    clean = lb.local_mean(q, x, y, kernel, mask=mask)
    weights = lb.local_weights(q, x, kernel, mask=mask)
    x[2], y[5], y[2, 1] = np.nan, np.nan, np.nan
    np.testing.assert_array_equal(lb.local_mean(q, x, y, kernel, mask=mask), clean)
    np.testing.assert_array_equal(lb.local_weights(q, x, kernel, mask=mask), weights)
    assert np.isnan(x[2]).all()  # the caller's array is as it was
    for name, broken in (("samples", x), ("values", y)):
        shown = mask.copy()
        shown[3, 2 if name == "samples" else 5] = True
        with pytest.raises(ValueError, match=f"{name} contains NaN in row"):
            lb.local_mean(
                q,
                np.nan_to_num(x) if name == "values" else broken,
                y if name == "values" else np.nan_to_num(y),
                kernel,
                mask=shown,
            )
    with pytest.raises(ValueError, match="queries contains NaN"):
        lb.local_mean(np.full((6, 2), np.nan), x, y, kernel, mask=mask)


def test_missing_coordinates_keep_their_meaning_under_a_mask():
    kernel = lb.gaussian(metric="nan_euclidean")
    x = np.array([[0.0, np.nan], [1.0, 2.0], [np.nan, np.nan]])
    mask = np.array([[True, True, False]])
    answer = lb.local_mean([[0.0, 0.0]], x, [1.0, 2.0, np.nan], kernel, mask=mask)
    np.testing.assert_allclose(answer, (1 + 2 * np.exp(-2.5)) / (1 + np.exp(-2.5)))


# -- explain -----------------------------------------------------------------------------------------------------------


def test_explain_adds_up():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    told = lb.explain([0.1, -0.2], x, y, lb.gaussian(0.5), top=7)
    weights = lb.local_weights([[0.1, -0.2]], x, lb.gaussian(0.5))[0]
    np.testing.assert_array_equal(told.indices, np.argsort(-weights, kind="stable")[:7])
    np.testing.assert_array_equal(told.shares, weights[told.indices])
    np.testing.assert_array_equal(told.values, y[told.indices])
    np.testing.assert_allclose(told.prediction, lb.local_mean([[0.1, -0.2]], x, y, lb.gaussian(0.5))[0])
    assert told.rest == pytest.approx(1 - told.shares.sum())
    assert told.effective_neighbors == pytest.approx(1 / (weights**2).sum())
    assert "effective neighbours" in str(told)
    whole = lb.explain(np.array([[0.1, -0.2]]), x, y, lb.gaussian(0.5), top=100)
    assert len(whole.indices) == 30
    assert whole.rest == pytest.approx(0, abs=1e-15)
    np.testing.assert_allclose(whole.shares @ whole.values, whole.prediction)


def test_explain_counts_only_those_with_a_share():
    told = lb.explain([0.5], X, Y, lb.uniform(1.0))
    assert told.indices.tolist() == [0, 1]
    assert (told.prediction, told.rest, told.effective_neighbors) == (1.5, 0.0, 2.0)
    told = lb.explain([0.5], X, Y, lb.uniform(1.0), sample_weight=[0, 1, 1, 1])
    assert told.indices.tolist() == [1]


def test_explain_of_an_empty_neighbourhood():
    with pytest.warns(EmptyNeighborhoodWarning, match="1 of 1"):
        told = lb.explain([4.0], X, Y, lb.uniform(1.0))
    assert np.isnan(told.prediction)
    assert len(told.indices) == told.rest == told.effective_neighbors == 0
    assert "nan" in str(told)
    assert lb.explain([4.0], X, Y, lb.uniform(1.0), empty="nearest").indices.tolist() == [2, 3]
    assert lb.explain([4.0], X, Y, lb.uniform(1.0), empty="mean").prediction == 4.25
    with pytest.raises(ValueError, match="1 of 1"):
        lb.explain([4.0], X, Y, lb.uniform(1.0), empty="raise")


def test_explain_with_missing_coordinates():
    x = np.array([[0.0, np.nan], [1.0, 2.0], [np.nan, 3.0]])
    told = lb.explain([np.nan, 2.0], x, [1.0, 2.0, 3.0], lb.gaussian(metric="nan_euclidean"))
    assert told.indices.tolist() == [1, 2]
    with pytest.raises(ValueError, match="query contains NaN"):
        lb.explain([np.nan, 2.0], np.nan_to_num(x), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("some", [slice(0, 5), slice(5, 10), slice(0, 20, 2)])
def test_a_hollow_kernel_wants_all_samples_as_queries(some):
    samples = np.random.default_rng(0).normal(size=(20, 2))
    values = samples[:, 0]
    kernel = lb.gaussian(0.5).hollow()
    with pytest.raises(ValueError, match="queries must be the samples"):
        lb.local_mean(samples[some], samples, values, kernel)
    whole = lb.local_mean(samples.copy(), samples, values, kernel)
    np.testing.assert_allclose(whole, lb.leave_one_out(samples, values, lb.gaussian(0.5)), rtol=1e-12)
