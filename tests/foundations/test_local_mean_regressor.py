"""The estimator: scikit-learn's own checks, parameters, containers, copies."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import locbook as lb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = X[:, 0] - X[:, 1] ** 2


def bump(s):
    return (1.0 - s) ** 4 if s < 1.0 else 0.0


@parametrize_with_checks(
    [
        lb.LocalMeanRegressor(),
        lb.LocalMeanRegressor("epanechnikov", bandwidth=2.0, empty="nearest"),
        lb.LocalMeanRegressor("knn", n_neighbors=1),
        lb.LocalMeanRegressor("softmax"),
        lb.LocalMeanRegressor("student_t", shape=2.0, metric="manhattan"),
        lb.LocalMeanRegressor(lb.laplace(lb.knn_bandwidth(1)) + 1e-3),
        lb.LocalMeanRegressor(lb.gaussian(metric="nan_euclidean")),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("parameters", "kernel"),
    [
        ({}, lb.gaussian(1.0)),
        ({"kernel": "tricube", "bandwidth": 0.5, "on": [1]}, lb.tricube(0.5, on=[1])),
        ({"kernel": "knn", "n_neighbors": 3, "ties": "include"}, lb.knn(3, ties="include")),
        ({"kernel": "softmax", "temperature": 2.0}, lb.softmax(2.0)),
        ({"kernel": "von_mises", "concentration": 2.0}, lb.von_mises(2.0)),
        ({"kernel": "student_t", "shape": 4.0, "bandwidth": [1.0, 2.0]}, lb.student_t([1.0, 2.0], nu=4.0)),
        ({"kernel": "rational_quadratic", "shape": 4.0}, lb.rational_quadratic(alpha=4.0)),
        ({"kernel": "gaussian", "metric": lb.minkowski(3.0)}, lb.gaussian(metric=lb.minkowski(3.0))),
        ({"kernel": lb.knn(4) * lb.gaussian()}, lb.knn(4) * lb.gaussian()),
        ({"kernel": lb.Kernel(bump, 3.0)}, lb.Kernel(bump, 3.0)),
    ],
)
def test_parameters_make_the_kernel(parameters, kernel):
    model = lb.LocalMeanRegressor(**parameters, empty="nearest").fit(X, Y)
    assert model.kernel_ == kernel
    np.testing.assert_array_equal(
        model.predict(X[:5] + 0.1), lb.local_mean(X[:5] + 0.1, X, Y, kernel, empty="nearest")
    )
    for copy in (
        clone(model).fit(X, Y),
        pickle.loads(pickle.dumps(model)),
        pickle.loads(pickle.dumps(clone(model))).fit(X, Y),
    ):
        assert copy.get_params() == model.get_params() or "bandwidth" in parameters
        np.testing.assert_array_equal(copy.predict(X[:5]), model.predict(X[:5]))


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"bandwidth": -1.0}, "bandwidth"), ({"bandwidth": 0}, "bandwidth"),
        ({"bandwidth": "silverman"}, "bandwidth"),
        ({"bandwidth": np.nan}, "bandwidth"), ({"bandwidth": [1.0, 2.0, 3.0]}, "bandwidth"),
        ({"kernel": "knn"}, "n_neighbors"),
        ({"kernel": "knn", "n_neighbors": 3.0}, "n_neighbors"),
        ({"kernel": "knn", "n_neighbors": 61}, "n_neighbors"),
        ({"kernel": "knn", "n_neighbors": True}, "n_neighbors"),
        ({"kernel": "knn", "n_neighbors": 3, "bandwidth": 1.0}, "bandwidth"),
        ({"kernel": "knn", "n_neighbors": 3, "bandwidth": "loo"}, "kernel"), ({"kernel": "gaussain"}, "kernel"),
        ({"kernel": lb.gaussian(), "bandwidth": 2.0}, "bandwidth"),
        ({"kernel": lb.gaussian(), "bandwidth": "loo"}, "bandwidth"),
        ({"kernel": 3}, "kernel"), ({"metric": "euclid"}, "metric"), ({"empty": "zero"}, "empty"),
        ({"on": 2}, "on"),
        ({"kernel": "softmax", "temperature": 0.0}, "temperature"), ({"shape": 2.0}, "shape"),
        ({"ties": "index"}, "ties"),
        ({"kernel": lb.gaussian(lb.per_sample(np.ones(59)))}, "bandwidth"),
    ],
)  # fmt: skip
def test_bad_parameters_fail_at_fit(parameters, name):
    with pytest.raises((ValueError, TypeError), match=name):
        lb.LocalMeanRegressor(**parameters).fit(X, Y)


def test_fit_needs_no_neighbour_of_the_first_sample():
    # A zero diagonal: the sample is none of its own neighbours, which is no reason to refuse it
    kernel = lb.discrete([[0.0, 1.0], [1.0, 0.0]])
    model = lb.LocalMeanRegressor(kernel).fit([[0], [0]], [1.0, 2.0])
    assert model.predict([[1]]).tolist() == [1.5]


def test_pandas():
    frame = pd.DataFrame(X, columns=["a", "b"], index=[f"row {i}" for i in range(60)])
    target = pd.Series(Y, index=frame.index, name="height")
    model = lb.LocalMeanRegressor(bandwidth=0.5).fit(frame, target)
    answer = model.predict(frame.iloc[5:9])
    assert isinstance(answer, pd.Series)
    assert answer.name == "height"
    assert answer.index.tolist() == [f"row {i}" for i in range(5, 9)]
    both = lb.LocalMeanRegressor(bandwidth=0.5).fit(frame, pd.DataFrame({"u": Y, "v": -Y}, index=frame.index))
    answer = both.predict(frame.iloc[[7, 3]])
    assert answer.columns.tolist() == ["u", "v"]
    assert answer.index.tolist() == ["row 7", "row 3"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a"]])
    series = lb.local_mean(frame.iloc[:4], frame, target, lb.gaussian(0.5))
    assert series.index.tolist() == frame.index[:4].tolist()
    assert series.name == "height"
    np.testing.assert_array_equal(series, lb.local_mean(X[:4], X, Y, lb.gaussian(0.5)))
    assert lb.leave_one_out(frame, target, lb.gaussian(0.5)).index.equals(frame.index)
    assert lb.log_density(frame, frame, lb.gaussian(0.5)).index.equals(frame.index)
    assert isinstance(lb.local_weights(frame, frame, lb.gaussian(0.5)), np.ndarray)


def test_sample_weight_explain_and_pipeline():
    weight = RNG.integers(0, 3, 60)
    model = lb.LocalMeanRegressor(bandwidth=0.5).fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(
        model.predict(X[:5]), lb.local_mean(X[:5], X, Y, lb.gaussian(0.5), sample_weight=weight)
    )
    told = model.explain(X[0], top=3)
    assert told.prediction == pytest.approx(model.predict(X[:1])[0])
    np.testing.assert_array_equal(
        told.indices, lb.explain(X[0], X, Y, lb.gaussian(0.5), sample_weight=weight).indices[:3]
    )
    piped = make_pipeline(StandardScaler(), lb.LocalMeanRegressor(bandwidth="gcv")).fit(X, Y)
    assert piped.score(X, Y) > 0.5


def test_cross_validation_is_leave_one_out():
    for kernel in (lb.gaussian(0.5), lb.knn(4), lb.tricube(lb.knn_bandwidth(5))):
        refit = cross_val_predict(lb.LocalMeanRegressor(kernel), X, Y, cv=LeaveOneOut())
        np.testing.assert_allclose(lb.leave_one_out(X, Y, kernel), refit, atol=1e-12)


def test_unfitted_and_joblib(tmp_path):
    from sklearn.exceptions import NotFittedError

    for call in (lambda m: m.predict(X), lambda m: m.explain(X[0])):
        with pytest.raises(NotFittedError):
            call(lb.LocalMeanRegressor())
    model = lb.LocalMeanRegressor("knn", n_neighbors=3).fit(X, Y)
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_grid_search_in_one_process():
    search = GridSearchCV(lb.LocalMeanRegressor(), {"bandwidth": [0.01, 0.3, 100.0]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"bandwidth": 0.3}
