"""The checker says what is true, and points at the rows that prove it."""

import math

import numpy as np
import pytest

import locbook as lb

X = np.random.default_rng(5).normal(size=(40, 2)) * 2
ANGLES = np.linspace(-3, 3, 25)[:, None]
TIMES = np.arange(12.0)[:, None]

#: label -> (kernel, sample, decaying, symmetric, positive definite).
VERDICTS = {
    "gaussian": (lb.gaussian(), X, True, True, True),
    "laplace": (lb.laplace(0.3), X, True, True, True),
    "cauchy": (lb.cauchy(), X, True, True, True),
    "student": (lb.student_t(nu=1.5), X, True, True, True),
    "uniform": (lb.uniform(1.5), X, True, True, False),
    "epanechnikov": (lb.epanechnikov(3.0), X, True, True, False),
    "knn": (lb.knn(5), X, True, False, False),
    "knn bandwidth": (lb.gaussian(lb.knn_bandwidth(5)), X, True, False, None),
    "per sample": (lb.gaussian(lb.per_sample(np.linspace(0.2, 3, 40))), X, False, False, None),
    "softmax": (lb.softmax(), X, False, True, True),
    "softmax of one length": (lb.softmax(), X / np.linalg.norm(X, axis=1, keepdims=True), True, True, True),
    "hollow": (lb.gaussian().hollow(), X, False, True, False),
    "causal": (lb.laplace(on=0) * lb.causal(), X, False, False, None),
    "relative bias": (lb.relative_bias([-3, -1, 0, -1, -3], first=-2), TIMES, True, True, None),
    "a bias of the past": (lb.relative_bias([0, -1, -2]), TIMES, False, False, None),
    "von mises": (lb.von_mises(2.0), ANGLES, True, True, True),
    "von mises of two angles": (lb.von_mises(2.0), X, True, True, True),
    "a bandwidth a column": (lb.gaussian([0.5, 10.0]), X, True, True, True),
    "a bandwidth matrix": (lb.gaussian([[1.0, 0.9], [0.0, 3.0]]), X, True, True, True),
    "mahalanobis": (lb.cauchy(metric=lb.mahalanobis([[1.0, 0.9], [0.9, 1.0]])), X, True, True, True),
    "a product of columns": (lb.gaussian(on=0) * lb.tricube(4.0, on=1), X, True, True, None),
    "a sum of columns": (lb.gaussian(on=0) + lb.cauchy(on=1), X, True, True, True),
    "epsilon": (lb.gaussian() + 0.1, X, True, True, True),
    "manhattan": (lb.laplace(metric="manhattan"), X, True, True, True),
    "periodic": (lb.gaussian(0.5, metric=lb.periodic(2 * math.pi)), ANGLES, True, True, None),
    "a rising profile": (lb.Kernel(profile=lambda s: s), X, False, True, False),
    "a ring": (lb.Kernel(profile=lambda s: s * math.exp(-s)), X, False, True, False),
    "a step": (lb.Kernel(profile=lambda s: 1.0 if s < 4.0 else 0.5), X, True, True, None),
}


@pytest.mark.parametrize("label", VERDICTS)
def test_verdicts(label):
    kernel, x, decaying, symmetric, definite = VERDICTS[label]
    report = lb.check_kernel(kernel, x)
    assert report.non_negative.holds
    assert report.decaying.holds == report.is_localization_kernel == decaying
    assert report.symmetric.holds == symmetric
    if definite is not None:
        assert report.positive_definite.holds == definite
    # the evidence is what the weights say
    w = kernel(x)
    top = w.max()
    smallest = report.non_negative
    assert smallest.evidence == w.min() == w[smallest.where]
    i, j = report.symmetric.where
    assert report.symmetric.evidence == pytest.approx(abs(w[i, j] - w[j, i]) / top, abs=1e-15)
    assert report.symmetric.evidence == pytest.approx(np.abs(w - w.T).max() / top, abs=1e-15)
    spectrum = np.linalg.eigvalsh((w + w.T) / 2)
    assert report.positive_definite.evidence == pytest.approx(spectrum[0] / np.abs(spectrum).max(), abs=1e-12)
    if not decaying:
        query, near, far = report.decaying.where
        assert report.decaying.evidence == pytest.approx(
            (w[query, far] - w[query, near]) / w[query].max(), rel=1e-12
        )
        assert np.linalg.norm(x[near] - x[query]) < np.linalg.norm(x[far] - x[query]) or label == "causal"
    else:
        assert report.decaying.evidence <= 1e-10


def test_the_rows_that_prove_a_rise():
    x = np.array([[0.0], [1.0], [2.0], [5.0]])
    report = lb.check_kernel(lb.Kernel(profile=lambda s: 3.0 if s > 20.0 else 1.0 / (1.0 + s)), x)
    assert report.decaying.where == (3, 1, 0)  # seen from 5: 1/17 at distance 4, then 3 at distance 5
    assert report.decaying.evidence == pytest.approx((3 - 1 / 17) / 3)
    assert not report.is_localization_kernel


def test_a_hollow_kernel_rises_from_the_sample_itself():
    query, near, _ = lb.check_kernel(lb.gaussian().hollow(), X).decaying.where
    assert query == near


def test_equal_distances_and_rounding_are_no_rise():
    x = np.arange(12.0)[:, None] * 0.1 + 1e8
    for kernel in (lb.gaussian(0.3), lb.uniform(0.3), lb.knn(3), lb.triangular(0.5)):
        assert lb.check_kernel(kernel, x).decaying.holds
    assert lb.check_kernel(lb.gaussian(), np.ones((5, 2))).is_localization_kernel
    assert lb.check_kernel(lb.gaussian(), [[1.0]]).is_localization_kernel


def test_rows_are_those_of_the_whole_sample():
    x = np.vstack([np.zeros((30, 1)), [[1.0]], np.zeros((29, 1)), [[3.0]]])
    report = lb.check_kernel(lb.Kernel(profile=lambda s: s), x, max_samples=3)
    assert report.decaying.where == (0, 0, 60)
    assert report.decaying.where[2] == len(x) - 1
    assert lb.check_kernel(lb.gaussian(), np.zeros((900, 1))).positive_definite.holds


def test_missing_values_where_they_mean_something():
    x = np.array([[0.0, np.nan], [np.nan, 1.0], [1.0, 1.0], [2.0, 2.0], [0.0, 0.0]])
    report = lb.check_kernel(lb.gaussian(metric="nan_euclidean"), x)
    assert report.decaying.holds
    assert report.symmetric.holds
    with pytest.raises(ValueError, match="samples contains NaN"):
        lb.check_kernel(lb.gaussian(), x)


def test_a_report_prints_as_a_table():
    lines = str(lb.check_kernel(lb.knn(2), X[:5])).splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "non negative",
        "decaying",
        "symmetric",
        "positive definite",
    ]
    assert " no " in lines[2]
    assert "at rows" in lines[2]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"kernel": "gaussian"}, TypeError, "kernel must be a Kernel, got str"),
        ({"kernel": None}, TypeError, "kernel must be a Kernel, got NoneType"),
        ({"samples": [1.0, 2.0]}, ValueError, "samples must be 2-D"),
        ({"samples": [[math.nan]]}, ValueError, "samples contains NaN"),
        ({"samples": [["a"]]}, TypeError, "samples must be numeric"),
        ({"samples": np.empty((0, 2))}, ValueError, "samples must not be empty"),
        ({"max_samples": 1}, ValueError, "max_samples must be at least 2, got 1"),
        ({"max_samples": 10.0}, TypeError, "max_samples must be an integer, got 10.0"),
        ({"kernel": lb.Kernel(profile=lambda s: 1.0 - s)}, ValueError, "user's function .*negative"),
    ],
)
def test_bad_input_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        lb.check_kernel(**{"kernel": lb.gaussian(), "samples": X, **arguments})


def test_decay_is_judged_for_each_query_by_its_own_largest_weight():
    # the weights of one query dwarf all others by far more than a float holds, yet each query's shares rise
    samples = np.linspace(300.0, 5000.0, 40)[:, None]
    report = lb.check_kernel(lb.softmax(1e5), samples)
    assert not report.decaying.holds
    assert report.decaying.evidence > 0.9
