"""Threads, blocks, chunks and tiles decide how the work is cut, not what comes out."""

import math

import numpy as np
import pytest

import locbook as lb
from locbook import engine
from locbook.engine import pool, reference
from tests.engine.problems import KERNELS, arrays, problem

#: |a - b| <= this, relative to the largest answer, between any two tile or chunk sizes.
TILE_BOUND = 2e-14

REDUCTIONS = {
    "log_sum": lambda given, values, labels, **s: engine.log_sum(given, **s),
    "mean": lambda given, values, labels, **s: engine.mean(given, values, warn=False, **s),
    "classes": lambda given, values, labels, **s: engine.classes(given, labels, 3, **s),
    "quantile": lambda given, values, labels, **s: engine.quantile(given, values, np.array([0.25, 0.5]), **s),
    "second moments": lambda given, values, labels, **s: engine.moments(given, values, 2, **s).second,
    "first moments": lambda given, values, labels, **s: engine.moments(given, values, 2, **s).first,
    "log scale": lambda given, values, labels, **s: engine.moments(given, values, 2, **s).log_scale,
    "distances": lambda given, values, labels, **s: engine.nearest(given, 9, **s).distances,
    "rows": lambda given, values, labels, **s: engine.nearest(given, 9, **s).indices,
}
SOME = [
    "gaussian",
    "epanechnikov",
    "cauchy",
    "knn",
    "knn bandwidth",
    "per sample",
    "attention",
    "user profile",
    "sum",
    "hollow",
]


def _given(name, m=97, n=331):
    q, x, values, labels, multiplicity, mask = arrays(m, n, seed=3)
    if name == "hollow":
        return problem((lb.knn(3) + lb.gaussian()).hollow(), x, x, sample_weight=multiplicity), values, labels
    kernel = KERNELS[name]
    if name == "per sample":
        kernel = lb.gaussian(lb.per_sample(np.linspace(0.5, 2, n)))
    return problem(kernel, q, x, sample_weight=multiplicity, mask=mask), values, labels


@pytest.mark.filterwarnings("ignore::locbook.EmptyNeighborhoodWarning")
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", SOME)
def test_same_bits_for_any_threads_and_blocks(name, reduction, threads):
    given = _given(name)
    threads(1)
    whole = REDUCTIONS[reduction](*given, chunk=100)
    for count, block in ((1, 1), (1, 7), (2, 256), (2, 1), (3, 13), (7, 64)):
        threads(count)
        np.testing.assert_array_equal(REDUCTIONS[reduction](*given, chunk=100, block=block), whole)


@pytest.mark.filterwarnings("ignore::locbook.EmptyNeighborhoodWarning")
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", SOME)
def test_tiles_and_chunks_within_the_bound(name, reduction):
    given = _given(name)
    whole = REDUCTIONS[reduction](*given)
    size = max(1.0, np.nanmax(np.abs(whole)))
    for tile, chunk in ((1, 1), (3, 10), (32, 4096), (100, 64), (1000, 331), (7, 330)):
        other = REDUCTIONS[reduction](*given, tile=tile, chunk=chunk)
        np.testing.assert_array_equal(np.isfinite(other), np.isfinite(whole))
        if reduction in ("rows", "log scale"):  # a choice and a maximum know no order
            np.testing.assert_array_equal(other, whole)
        elif reduction == "quantile":  # a share within rounding of the level may go to the next value
            assert (other != whole).mean() < 0.01
        else:
            finite = np.isfinite(whole)
            assert np.abs(other[finite] - whole[finite]).max() <= TILE_BOUND * size


MANY = {
    "gaussian": lb.gaussian(0.5),
    "compact": lb.epanechnikov(0.5),
    "causal": lb.softmax(1.0) * lb.causal(on=1),
    "user": lb.Kernel(lambda s: 1.0 / (1.0 + s)),
    "sum": lb.laplace(0.3) + lb.gaussian(2.0),
}


@pytest.mark.filterwarnings("ignore::locbook.EmptyNeighborhoodWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MANY)
def test_blocks_and_tiles_that_are_not_full(name, dtype, threads):
    """Tasks of several blocks, the last one short, and each visits several tiles."""
    rng, n = np.random.default_rng(6), 3001
    threads(1)
    x, y = rng.normal(size=(n, 2)).astype(dtype), rng.normal(size=(n, 40)).astype(dtype)
    for m in (199, 397):
        q = rng.normal(size=(m, 2)).astype(dtype)
        for mask in (None, rng.random((m, n)) < 0.7):
            given = problem(MANY[name], q, x, mask=mask)
            wide = (a.astype(np.float64) for a in (q, x))
            weights = reference.weights(MANY[name], *wide, mask) * (1.0 if mask is None else mask)
            with np.errstate(invalid="ignore"):  # no neighbour
                right = reference.mean(weights, y.astype(np.float64))
            for p in (1, 3, 8, 9, 40):
                for prune in (False, "auto" if name in ("causal", "user", "sum") else True):
                    found = engine.mean(given, y[:, :p], prune=prune)
                    np.testing.assert_array_equal(np.isnan(found), np.isnan(right[:, :p]))
                    wrong = np.nan_to_num(np.abs(found - right[:, :p])).max()
                    assert wrong <= (1e-12 if dtype == np.float64 else 1e-5) * np.ptp(y)


def test_the_running_maximum_may_come_in_any_order():
    x = np.linspace(0, 60, 301)[:, None]  # log-weights from 0 to -1800 about each query
    y = np.sin(x[:, 0])
    for order in (slice(None), slice(None, None, -1), np.random.default_rng(0).permutation(301)):
        given = problem("gaussian", np.array([[0.0], [60.0], [31.0]]), x[order])
        answer = engine.mean(given, y[order, None], tile=16, chunk=50)[:, 0]
        whole = engine.mean(problem("gaussian", np.array([[0.0], [60.0], [31.0]]), x), y[:, None])[:, 0]
        assert np.abs(answer - whole).max() < 1e-14


def test_many_columns_do_not_make_large_tiles():
    # the tile holds no more samples than the chunk: 200,000 columns would else take 32 x 200,000 numbers
    x = np.ones((3, 200_000))
    x[1:] += 1.0
    answer = lb.local_mean(x[:1], x, [1.0, 2.0, 3.0], lb.gaussian(100.0))
    np.testing.assert_allclose(answer, (1 + 5 * np.exp(-10)) / (1 + 2 * np.exp(-10)), rtol=1e-12)


def test_a_hollow_kernel_knows_the_sample_in_every_tile():
    x, y = arrays(2, 700, seed=1)[1:3]
    for kernel in (lb.gaussian(0.5), lb.knn(2), lb.discrete(np.ones((4, 4)), on=2)):
        w = engine.normalized_weights(problem(kernel.hollow(), x, x))
        assert (w.diagonal() == 0).all()
        assert (w > 0).sum(1).min() >= 2
        np.testing.assert_allclose(lb.leave_one_out(x, y, kernel), w @ y, atol=1e-12)
    assert ((lb.knn(2).hollow()(x) > 0).sum(1) == 2).all()


@pytest.mark.parametrize("count", [1, 5, 96, 97, 1000, 10_000, 123_457])
@pytest.mark.parametrize("most", [1, 480, 4096])
@pytest.mark.parametrize("unit", [1, 16, 96])
def test_each_thread_has_as_much_to_do(count, most, unit):
    try:
        for threads in (1, 2, 3):
            lb.set_num_threads(threads)
            for work in (math.inf, 0.0, 5.5 * pool.WORTH, 1e4 * pool.WORTH):
                tasks = pool.split(count, most, unit, work)
                assert [row for task in tasks for row in range(count)[task]] == list(range(count))
                longest = most if math.isinf(work) else 16 * most * 4 / 3  # rounded to the threads
                assert all(task.start % unit == 0 for task in tasks)
                sizes = [-(-(task.stop - task.start) // unit) for task in tasks]
                assert (max(sizes) - 1) * unit <= longest
                assert max(sizes) - min(sizes) <= 1
                assert len(tasks) % threads == 0 or max(sizes) == 1 or len(tasks) < threads
                assert len(tasks) <= max(1, work / pool.WORTH, -(-count // (16 * most)))
    finally:
        lb.set_num_threads(None)
    assert pool.split(0, most, unit) == []


def test_a_small_problem_is_one_task_and_wakes_no_thread(monkeypatch):
    """Two threads were slower than one for up to a thousand queries and samples."""
    dealt = []

    def submit(executor, task, items):
        dealt.append(len(items))
        return map(task, items)

    monkeypatch.setattr(pool.ThreadPoolExecutor, "map", submit)
    lb.set_num_threads(2)
    try:
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(3000, 2)), rng.normal(size=3000)
        kernels = lb.gaussian(0.5), lb.gaussian(0.5, metric="manhattan"), lb.tricube(0.5), lb.knn(5)
        kernels += lb.cauchy(0.5) * lb.causal(on=0), lb.gaussian(np.eye(2))
        for kernel in kernels:
            lb.local_mean(x[:200], x[:200], y[:200], kernel)
            lb.local_mean_vjp(y[:200], x[:200], x[:200], y[:200], kernel)
        assert dealt == []
        for kernel in kernels:
            lb.local_mean(x, x, y, kernel)
            assert dealt
            assert dealt.pop() >= 2
            dealt.clear()
    finally:
        lb.set_num_threads(None)
