"""The k nearest in up to three columns: by a grid, by what is left over of it, and by the sieve; one answer."""

import importlib

import numpy as np
import pytest

from locbook import engine
from locbook.engine import reference, vectors
from locbook.kernels.metrics import as_metric
from tests.engine.problems import problem

nearest = importlib.import_module("locbook.engine.nearest")  # the package has a function of that name

pytestmark = pytest.mark.skipif(not vectors.ENABLED, reason="without vectors there is no sieve, and no grid")

N, M = 700, 120


def _dense(rng, n, d):
    """Half of all samples in one cell."""
    x = rng.normal(size=(n, d))
    x[::2] *= 1e-7
    return x


def _scales(rng, n, d):
    """Clusters of many widths."""
    of = rng.integers(9, size=n)
    return rng.normal(scale=9.0, size=(9, d))[of] + 10.0 ** -of[:, None] * rng.normal(size=(n, d))


def _constant(rng, n, d):
    x = rng.normal(size=(n, d))
    x[:, d // 2] = 0.1
    return x


DATA = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "ties": lambda rng, n, d: rng.integers(-4, 5, size=(n, d)) * 0.5,
    "dense": _dense,
    "scales": _scales,
    "constant": _constant,
    "equal": lambda rng, n, d: np.full((n, d), -0.3),
    "tails": lambda rng, n, d: rng.standard_cauchy(size=(n, d)),
    "offset": lambda rng, n, d: rng.normal(size=(n, d)) + 1e8,
    "tiny": lambda rng, n, d: rng.normal(size=(n, d)) * 1e-150,
}
#: What is set in the module: by the grid, whatever it costs; a few by the rest; all by the rest.
WAYS = {
    "grid": {"MOST": 1 << 16},
    "mixed": {"MOST": 150, "FEW": 0, "PROBE": 10 * M},
    "given up": {"MOST": 1},
}


def arrays(name, d, dtype=np.float64):
    """Queries like the samples, but the last are far off, some further than others."""
    rng = np.random.default_rng([d, len(name)])
    points = DATA[name](rng, N + M, d).astype(dtype)
    q, x = points[N:], points[:N]
    q[-12:] += 10.0 ** np.arange(12)[:, None]
    return q, x


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", DATA)
def test_every_way_finds_the_same(monkeypatch, threads, name, way):
    for key, value in WAYS[way].items():
        monkeypatch.setattr(nearest, key, value)
    for d, dtype in ((1, np.float32), (2, np.float64), (3, np.float64), (3, np.float32)):
        q, x = arrays(name, d, dtype)
        for k in (1, 10, nearest.MOST_NEIGHBORS):
            for points, itself in ((q, False), (x, True)):
                given = problem("gaussian", points, x)
                right = engine.nearest(given, k, prune=False, exclude_self=itself)
                for count in (1, 2):
                    threads(count)
                    found = engine.nearest(given, k, prune=True, exclude_self=itself)
                    np.testing.assert_array_equal(found.indices, right.indices)
                    np.testing.assert_array_equal(found.distances, right.distances)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_ties_go_to_the_lowest_row(d):
    """Against the twin, on numbers whose distances are exact."""
    q, x = arrays("ties", d)
    q = q[:-12]
    right = reference.nearest(reference.distances(q, x, as_metric("euclidean")), 25)
    np.testing.assert_array_equal(engine.nearest(problem("gaussian", q, x), 25).indices, right)


def test_every_number_of_samples():
    q, x = arrays("ties", 3)
    for n in (1, 2, 5, 70):
        for k in {1, n}:
            few = problem("gaussian", q[:9], x[:n])
            found, right = (engine.nearest(few, k, prune=prune) for prune in (True, False))
            np.testing.assert_array_equal(found.indices, right.indices)
            np.testing.assert_array_equal(found.distances, right.distances)


def _left(q, x, k=10):
    best, rows = np.full((len(q), k), -np.inf), np.zeros((len(q), k), np.int64)
    left = nearest.search_cells(problem("gaussian", q, x), np.arange(x.shape[1]), best, rows, hollow=False)
    return left, best


def test_who_is_left_over(monkeypatch):
    """Of even data nobody; else who falls into a crowded cell; where these are many, the grid is given up."""
    rng = np.random.default_rng(0)
    q, x = (rng.normal(size=(count, 3)) for count in (2000, 20_000))
    monkeypatch.setattr(nearest, "FEW", 0)
    left, best = _left(q, x)
    assert left.size == 0
    assert np.isfinite(best).all()
    crowd = x.copy()
    crowd[:9000] = 6.0 + 1e-7 * x[:9000]
    q[:40] = 6.0
    left, best = _left(q, crowd)
    np.testing.assert_array_equal(np.sort(left), np.arange(40))
    assert np.isneginf(best[left]).all()
    monkeypatch.setattr(nearest, "FEW", 40)
    left, best = _left(q, crowd)
    assert left.size == 0
    assert np.isfinite(best).all()
    q[: len(q) // 2] = 6.0
    assert _left(q, crowd)[0] is None


def test_a_grid_is_asked_where_it_pays(monkeypatch):
    asked = []
    monkeypatch.setattr(nearest, "search_cells", lambda *_, **__: asked.append(True))  # that it gives up
    rng = np.random.default_rng(0)

    def asks(m, n, d=3, k=5, **options):
        asked.clear()
        engine.nearest(problem("gaussian", rng.normal(size=(m, d)), rng.normal(size=(n, d))), k, **options)
        return bool(asked)

    assert asks(2000, 3000)
    assert not asks(100, 3000)
    assert not asks(2000, 400)
    assert not asks(2000, 3000, d=4)
    assert not asks(2000, 3000, k=nearest.MOST_NEIGHBORS + 1)
    assert not asks(2000, 3000, prune=False)
    assert asks(3, 4, k=2, prune=True)
