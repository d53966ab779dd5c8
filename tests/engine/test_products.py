"""Products, arrows of time, windows, masks and hollow kernels on the fused path: their twins, tile by tile."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import types

import locbook as lb
from locbook import engine
from locbook.engine import reference, terms, vectors
from locbook.engine.leaf import as_leaf, as_product, rows_of, rule_of
from locbook.engine.panels import PANEL
from locbook.engine.parts import address, part
from locbook.engine.records import Record, run
from locbook.engine.scores import LOG_WEIGHT, WEIGHT
from locbook.engine.stream import stream
from locbook.engine.vectors import ROWS
from locbook.kernels.base import ConstantKernel

pytestmark = pytest.mark.skipif(not vectors.ENABLED, reason="without vectors there is no fused path")

POINTS = [1, 2, 3]
#: Terms, limits and masks of the kernel, and the kernel of column 0, the time, and 1 to 3.
KERNELS = {
    "causal attention": (0, 1, 0, lb.softmax(2.0, on=POINTS) * lb.causal(on=0)),
    "gaussian, causal, window": (0, 2, 0, lb.gaussian(1.5, on=POINTS) * lb.causal(on=0) * lb.window(40.0, on=0)),
    "laplace, per column": (0, 1, 0, lb.laplace([1.0, 2.0, 3.0], on=POINTS) * lb.causal(on=0)),
    "gaussian by laplace": (2, 0, 0, lb.gaussian(1.5, on=POINTS) * lb.laplace(30.0, on=0)),
    "gaussian, laplace, causal": (2, 1, 0, lb.gaussian(1.5, on=POINTS) * lb.laplace(30.0, on=0) * lb.causal(on=0)),
    "softmax by gaussian": (2, 0, 0, 3.0 * (lb.softmax(2.0, on=POINTS) * (0.5 * lb.gaussian(2.0, on=POINTS)))),
    "tricube by window": (1, 1, 0, lb.tricube(3.0, on=POINTS) * lb.window(40.0, on=0)),
    "cauchy by cauchy": (2, 0, 0, lb.cauchy(3.0, on=POINTS) * lb.cauchy(40.0, on=0)),
    "gaussian by tricube": (2, 0, 0, lb.gaussian(3.0, on=POINTS) * lb.tricube(60.0, on=0)),
    "student, causal": (1, 1, 0, lb.student_t(2.0, on=POINTS) * lb.causal(on=0)),
    "hollow": (0, 1, 0, lb.gaussian(2.0, on=POINTS).hollow()),
    "per sample": (1, 0, 0, lb.gaussian(lb.per_sample(np.linspace(1, 3, 700)), on=POINTS)),
    "per query": (1, 1, 0, lb.cauchy(lb.per_query(np.linspace(1, 3, 700)), on=POINTS) * lb.causal(on=0)),
    "one term and a tiny factor": (1, 0, 0, 1e-150 * lb.cauchy(3.0, on=POINTS)),
    "a constant by cauchy": (1, 0, 0, ConstantKernel(0.5) * lb.cauchy(3.0, on=POINTS)),
    "own by causal": (1, 1, 0, lb.Kernel(lambda s: 1 / (1 + s), 2.0, on=POINTS) * lb.causal(on=0)),
    "own log by gaussian": (2, 0, 0, lb.Kernel(log_profile=lambda s: -s, on=POINTS) * lb.gaussian(90.0, on=0)),
    "masked": (0, 0, 1, lb.softmax(2.0, on=POINTS).masked(np.random.default_rng(3).random((700, 700)) < 0.2)),
}  # fmt: skip


def data(dtype, *, shuffled=False, p=3, n=700):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 4))
    x[:, 0] = rng.permutation(n) if shuffled else np.arange(n)
    return x.astype(dtype), rng.normal(size=(n, p)).astype(dtype)


def through_fused_path(problem, values):
    """Means and log-sums, by the fused path alone."""
    scale, total, sums = stream(problem, as_product(problem), values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return sums / total[:, None], scale + np.log(total)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_fused_path_is_the_twin(name, dtype):
    n_terms, limits, masks, kernel = KERNELS[name]
    for shuffled, p, weighted in ((False, 1, False), (True, 3, True), (False, 20, True), (True, 0, False)):
        x, values = data(dtype, shuffled=shuffled, p=p)
        weight = np.random.default_rng(1).choice([0.0, 1.0, 2.5], len(x)) if weighted else None
        problem = engine.Problem.check(x, x, kernel, sample_weight=weight)
        leaf = as_product(problem)
        assert (len(leaf.terms), len(leaf.limits), len(leaf.masks)) == (n_terms, limits, masks)
        assert (leaf.kind in (LOG_WEIGHT, WEIGHT)) == (n_terms > 0)
        assert as_leaf(problem) is None
        w = reference.weights(kernel, x.astype(float), x.astype(float)) * (1.0 if weight is None else weight)
        some = w.sum(1) > 0
        assert some.mean() > 0.9
        means, log_sums = through_fused_path(problem, values)
        wide = 2e-6 if dtype == "float32" else 1e-13
        np.testing.assert_allclose(log_sums[some], np.log(w[some].sum(1)), rtol=wide, atol=10 * wide)
        expected = w[some] @ values / w[some].sum(1)[:, None]
        np.testing.assert_allclose(means[some], expected, rtol=0, atol=10 * wide)
        assert np.isneginf(log_sums[~some]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", ["causal", "random", "one each", "blocks", "nobody for some"])
def test_masks_of_any_shape(shape, dtype):
    x, values = data(dtype, p=5)
    n, rng = len(x), np.random.default_rng(2)
    mask = {
        "causal": np.tri(n, dtype=bool),
        "random": rng.random((n, n)) < 0.5,
        "one each": np.eye(n, dtype=bool)[rng.permutation(n)],
        "blocks": np.kron(np.eye(7, dtype=bool), np.ones((100, 100), bool)),
        "nobody for some": np.tri(n, k=-200, dtype=bool),
    }[shape]
    problem = engine.Problem.check(x, x, lb.gaussian(1.0, on=POINTS), mask=mask)
    means, _ = through_fused_path(problem, values)
    w = np.where(mask, reference.weights(problem.kernel, x.astype(float), x.astype(float)), 0.0)
    some = w.sum(1) > 0
    expected = w[some] @ values / w[some].sum(1)[:, None]
    np.testing.assert_allclose(means[some], expected, rtol=0, atol=2e-5 if dtype == "float32" else 1e-12)
    assert np.isnan(means[~some]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name in KERNELS if name not in ("hollow", "masked", "per query")])
def test_a_query_has_the_same_bits_whoever_stands_beside_it(name, dtype, threads):
    x, values = data(dtype, p=2)
    kernel = KERNELS[name][-1]
    whole = lb.local_mean(x, x, values, kernel, prune=False)
    order = np.random.default_rng(5).permutation(len(x))
    for rows in (slice(0, 1), slice(1, 700), slice(333, 336), order):
        np.testing.assert_array_equal(lb.local_mean(x[rows], x, values, kernel, prune=False), whole[rows])
    for count in (1, 2):
        threads(count)
        np.testing.assert_array_equal(lb.local_mean(x, x, values, kernel, prune=False), whole)


class Tile(NamedTuple):
    limits: terms.Limits
    rows: terms.Rows
    start: int
    first: int
    takes_part: np.ndarray


TILE = Record(
    types.NamedTuple(
        (
            terms.LIMITS_TYPE.kind,
            terms.ROWS_TYPE.kind,
            types.intp,
            types.intp,
            types.Array(types.bool_, 2, "C"),
        ),
        Tile,
    )
)


@part
def who_sees(tile):
    return terms._who(tile.limits, tile.rows, tile.start, tile.first, 1, tile.takes_part)


GAUSSIAN, TIMES = lb.gaussian(on=POINTS), np.arange(700)
BAND = np.abs(TIMES[:, None] - TIMES - 20) < 70


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(
    ("kernel", "mask", "least"),
    [
        (GAUSSIAN * lb.causal(on=0), None, 0.4),
        (GAUSSIAN * lb.window(30.0, on=0), None, 0.75),
        (GAUSSIAN * (lb.window(30.0, on=0) * lb.causal(on=0)), None, 0.8),
        (GAUSSIAN.hollow(), None, 0.0),
        (GAUSSIAN, BAND, 0.6),
        (GAUSSIAN * lb.causal(on=0), BAND, 0.7),
    ],
    ids=["causal", "window", "both", "hollow", "mask", "causal, mask"],
)
def test_it_is_known_who_of_a_tile_takes_part(kernel, mask, least, shuffled):
    x, _ = data("float64", shuffled=shuffled)
    assert len(x) == len(TIMES)
    problem = engine.Problem.check(x, x, kernel, mask=mask)
    leaf, whole = as_product(problem), slice(0, len(x))
    rule, rows = rule_of(leaf, whole, np.dtype(float)), rows_of(leaf, whole, whole)
    allowed = kernel(x, x) > 0 if mask is None else (kernel(x, x) > 0) & mask
    takes_part, found = np.zeros((ROWS, PANEL), bool), []
    place = address(who_sees, TILE)
    for start in range(0, len(x), ROWS):
        for first in range(len(x) // PANEL + 1):
            seen = allowed[start : start + ROWS, first * PANEL : (first + 1) * PANEL]
            who = run(place, TILE, Tile(rule.limits, rows, start, first, takes_part))
            assert {terms.NOBODY: not seen.any(), terms.ALL: seen.all(), terms.SOME: True}[who]
            if who == terms.SOME:
                np.testing.assert_array_equal(takes_part[:, : seen.shape[1]], seen)
            if not shuffled:
                assert who == (terms.ALL if seen.all() else terms.SOME if seen.any() else terms.NOBODY)
            found.append(who)
    if not shuffled:
        assert np.mean(np.array(found) == terms.NOBODY) >= least


def test_a_batch_of_causal_heads_is_each_head_alone():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(2, 3, 150, 4)).astype(np.float32)
    x[..., 0] = np.arange(150)
    values = rng.normal(size=(2, 3, 150, 4)).astype(np.float32)
    kernel = KERNELS["causal attention"][-1]
    whole = lb.local_mean(x, x, values, kernel)
    for k in np.ndindex(2, 3):
        alone = lb.local_mean(x[k], x[k], values[k], kernel)
        np.testing.assert_allclose(whole[k], alone, atol=2e-6)


@pytest.mark.parametrize(
    "kernel",
    [
        lb.gaussian(1.0) + lb.gaussian(2.0),
        lb.gaussian(1.0) * lb.knn(5),
        lb.gaussian(1.0, on=POINTS) * lb.laplace(1.0, metric="manhattan", on=0),
        lb.gaussian(lb.knn_bandwidth(5)),
        lb.causal(on=0) * lb.window(3.0, on=0),
        lb.von_mises(1.0, on=1) * lb.gaussian(),
    ],
    ids=repr,
)
def test_what_is_no_such_product(kernel):
    x, _ = data("float64")
    assert as_product(engine.Problem.check(x, x, kernel)) is None


def test_what_does_not_fit_is_named():
    x, values = data("float64")
    with pytest.raises(ValueError, match="mask of the kernel has shape"):
        lb.local_mean(x[:5], x, values, lb.gaussian().masked(np.ones((4, 700), bool)))
    with pytest.raises(ValueError, match="queries must be the samples"):
        lb.local_mean(x[:5], x, values, lb.gaussian().hollow())
    with pytest.raises(ValueError, match="bandwidth has 3 entries, but there are 5 queries"):
        lb.local_mean(x[:5], x, values, lb.gaussian(lb.per_query([1.0, 2.0, 3.0])) * lb.causal(on=0))
