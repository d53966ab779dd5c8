"""Every reduction says what its NumPy twin says: every kernel, with and without multiplicities and masks."""

import numpy as np
import pytest

import locbook as lb
from locbook import engine
from locbook.engine import reference
from locbook.kernels.metrics import as_metric
from tests.engine.problems import KERNELS, arrays, close, problem, twin_weights

NAMES = list(KERNELS)
OPTIONS = ("plain", "weighted", "masked", "both")


def made(name, option):
    """Problem, twin weights and the arrays; the masks keep every query a neighbour."""
    q, x, values, labels, multiplicity, mask = arrays()
    options = {}
    if option in ("weighted", "both"):
        options["sample_weight"] = multiplicity
    if option in ("masked", "both"):
        options["mask"] = mask
    w = twin_weights(KERNELS[name], q, x, **options)
    return problem(KERNELS[name], q, x, **options), w, (q, x, values, labels)


@pytest.mark.filterwarnings("ignore::locbook.EmptyNeighborhoodWarning")
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_reductions(name, option):
    given, w, (q, x, values, labels) = made(name, option)
    some = w.sum(1) > 0
    assert some.sum() > len(w) // 2  # the kernels reach most queries, so the test is about something
    with np.errstate(divide="ignore", invalid="ignore"):
        close(np.exp(engine.log_sum(given)), w.sum(1))
        close(engine.mean(given, values), reference.mean(w, values))
        close(engine.classes(given, labels, 4), reference.classes(w, labels, 4))
        shares = np.where(some[:, None], w / w.sum(1, keepdims=True), 0.0)
    close(engine.normalized_weights(given), shares)
    if option == "plain":
        close(engine.dense_weights(KERNELS[name], q, x, log=False), reference.weights(KERNELS[name], q, x))
    levels = np.array([0.0, 0.3, 0.77, 1.0])
    expected = np.array([reference.quantile(w, values[:, 0], level) for level in levels]).T
    ours = engine.quantile(given, values[:, :1], levels)[:, 0]
    reached = np.cumsum(shares[:, np.argsort(values[:, 0])], 1)[..., None]
    sure = some & (np.abs(reached - levels[1:3]) > 1e-9).all((1, 2))  # else rounding may fall on either side
    assert sure.any()
    np.testing.assert_array_equal(ours[sure, :3], expected[sure, :3])
    below = np.where(values[:, 0] <= ours[:, 3:], shares, 0.0).sum(1)
    assert (below[some] > 1 - 1e-12).all()
    assert np.isin(ours[some, 3], values[:, 0]).all()
    assert np.isnan(ours[~some]).all()


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_moments(name, degree):
    given, w, (q, x, values, _) = made(name, "both" if degree == 1 else "plain")
    table = engine.monomials(3, degree)
    second, first = reference.moments(w, q, x, values, table)
    ours = engine.moments(given, values, degree)
    scale = np.exp(ours.log_scale)[:, None, None]
    scale = np.where(np.isfinite(scale), scale, 0.0)
    size = w.sum(1).max()
    close(ours.second * scale / size, second / size)
    close(ours.first * scale / size, first / size)
    np.testing.assert_array_equal(ours.second, ours.second.transpose(0, 2, 1))


def test_monomials_are_all_products_once():
    parents, dimensions = engine.monomials(3, 3)
    powers = np.zeros((len(parents), 3), dtype=int)
    for k in range(1, len(parents)):
        powers[k] = powers[parents[k]]
        powers[k, dimensions[k]] += 1
    assert len({tuple(p) for p in powers}) == len(powers) == 20  # (3 + 3 over 3)
    assert powers.sum(1).max() == 3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "per query"])
def test_self_weights_and_hollow(name, weighted):
    _, x, values, _, multiplicity, _ = arrays()
    weight = multiplicity if weighted else None
    kernel = KERNELS[name]
    x = x.copy()
    w = twin_weights(kernel, x, x, sample_weight=weight)
    with np.errstate(invalid="ignore"):
        close(engine.self_weights(problem(kernel, x, x, sample_weight=weight)), np.diag(w) / w.sum(1))
    if not weighted:
        hollow = reference.weights(kernel.hollow(), x, x)
        given = problem(kernel.hollow(), x, x)
        with np.errstate(invalid="ignore"):
            close(engine.mean(given, values, warn=False), reference.mean(hollow, values))
        assert (np.diag(engine.normalized_weights(given, warn=False)) == 0).all()


METRICS = ["euclidean", "manhattan", "chebyshev", "hamming", "cosine"]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [1, 7, 41])
def test_nearest(metric, k):
    q, x, *_, mask = arrays()
    d = reference.distances(q, x, as_metric(metric))
    d = np.round(d, 12)  # ties that rounding parted
    found = engine.nearest(problem("gaussian", q, x), k, metric)
    close(found.distances, np.sort(d, axis=1)[:, :k])
    if metric == "hamming":  # many ties: the row decides
        np.testing.assert_array_equal(found.indices, reference.nearest(d, k))
    masked = engine.nearest(problem("gaussian", q, x, mask=mask), k, metric)
    far = np.sort(np.where(mask, d, np.inf), axis=1)[:, :k]
    np.testing.assert_array_equal(np.isinf(masked.distances), np.isinf(far))
    np.testing.assert_array_equal(masked.indices == -1, np.isinf(far))
    close(np.where(np.isinf(far), 0, masked.distances), np.where(np.isinf(far), 0, far))


@pytest.mark.parametrize("k", [1, 2, 5, 33, 150, 400])
def test_nearest_among_many_ties(k):
    rng = np.random.default_rng(k)
    q, x = rng.integers(0, 6, size=(50, 2)), rng.integers(0, 6, size=(400, 2))
    d = reference.distances(q, x, as_metric("euclidean"))
    for sizes in ({}, {"tile": 7, "chunk": 50}):
        found = engine.nearest(problem("gaussian", q, x), k, **sizes)
        np.testing.assert_array_equal(found.indices, reference.nearest(d, k))
        np.testing.assert_allclose(found.distances, np.sort(d, axis=1)[:, :k], rtol=1e-15)


def test_nearest_leaves_out_the_sample_itself_and_samples_of_weight_zero():
    x = np.array([[0.0], [0.0], [1.0], [3.0]])
    given = problem("gaussian", x, x)
    np.testing.assert_array_equal(engine.nearest(given, 1, exclude_self=True).indices[:, 0], [1, 0, 0, 2])
    absent = problem("gaussian", x, x, sample_weight=[1, 0, 1, 1])
    np.testing.assert_array_equal(
        engine.nearest(absent, 2, exclude_self=True).indices, [[2, 3], [0, 2], [0, 3], [2, 0]]
    )
    with pytest.raises(ValueError, match="n_neighbors"):
        engine.nearest(given, 4, exclude_self=True)


def test_labels_are_checked_before_they_are_used_as_addresses():
    q, x, *_ = arrays()
    given = problem("gaussian", q, x)
    for labels in ([3] * len(x), [-1] * len(x), [0] * (len(x) - 1)):
        with pytest.raises(ValueError, match="labels"):
            engine.classes(given, np.array(labels), 3)
    short = engine.classes(given, np.zeros(len(x), dtype=np.uint8), 3)
    np.testing.assert_array_equal(short, np.eye(3)[np.zeros(len(q), dtype=int)])


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("d", [1, 2, 5, 8, 17, 50])
def test_the_kth_neighbour_is_the_same_to_the_search_and_to_the_kernel(d, prune):
    # both compute its distance, each in a kernel of its own: one bit of difference would lose it
    rng = np.random.default_rng(d)
    x, q = rng.normal(size=(700, d)), rng.normal(size=(90, d))
    for k in (1, 6):
        weights = lb.knn(k)(q, x)
        np.testing.assert_array_equal(weights.sum(1), k)
        found = engine.nearest(problem("gaussian", q, x), k, prune=prune)
        np.testing.assert_array_equal(np.take_along_axis(weights, found.indices, 1), 1.0)
    np.testing.assert_array_equal(lb.knn(1)(x, x).argmax(1), np.arange(700))
