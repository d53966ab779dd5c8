"""Pruning leaves out nothing that matters: plain NumPy walks the panels and is held against all samples."""

import math

import numpy as np
import pytest
from numba import njit
from scipy.spatial.distance import cdist

from locbook.engine import pruning
from locbook.engine.pruning import COMPACT, GAUSSIAN, LAPLACE
from locbook.kernels.metrics import CHEBYSHEV, EUCLIDEAN, MANHATTAN

LEAF, GROUP, BLOCK = 16, 2, 8
METRICS = {"euclidean": EUCLIDEAN, "manhattan": MANHATTAN, "chebyshev": CHEBYSHEV}


# --- what only compiled code calls ---


@njit
def box_distances(query_low, query_high, block, low, high, scale, metric):
    nearest, farthest = np.empty(low.shape[1]), np.empty(low.shape[1])
    pruning.box_distances(query_low, query_high, block, low, high, scale, metric, nearest, farthest)
    return nearest, farthest


@njit
def box_distance(query_low, query_high, block, low, high, panel, scale, metric):
    return pruning.box_distance(query_low, query_high, block, low, high, panel, scale, metric)


@njit
def with_slack(squared, slack):
    return pruning.with_slack(squared, slack)


@njit
def active_panels(query_low, query_high, block, low, high, scale, metric, profile, reach, slack):
    panels = np.empty(low.shape[1] + 1, np.int64)
    nearest, farthest = box_distances(query_low, query_high, block, low, high, scale, metric)
    size, limit = pruning.choose_panels(nearest, farthest, profile, reach, slack, panels, 0)
    return panels[:size], limit


@njit
def order_panels(query_low, query_high, block, low, high, scale, metric):
    panels = np.empty(low.shape[1], np.int64)
    nearest, _ = box_distances(query_low, query_high, block, low, high, scale, metric)
    size = pruning.order_panels(nearest, panels)
    return panels[:size], nearest[:size]


@njit
def drop_nearest(panels, distances, size):
    return pruning.drop_nearest(panels, distances, size)


@njit
def select(values, rank, counts):
    return pruning._select(values, values.size, rank, counts)


# --- data: queries and samples ---


def _normal(rng, d):
    return rng.normal(size=(41, d)), rng.normal(size=(1013, d))


def _clusters(rng, d):
    centres = rng.normal(scale=30, size=(7, d))
    at = rng.integers(7, size=1000)
    points = centres[at] + rng.normal(scale=0.3, size=(1000, d))
    return points[:40], points[40:]


def _grid(rng, d):
    return rng.integers(-4, 5, size=(35, d)).astype(float), rng.integers(-4, 5, size=(800, d)).astype(float)


def _flat(rng, d):
    q, x = _normal(rng, d)
    x[:, 1:], q[:, 1:] = 3.0, 3.0
    return q, x


def _offset(rng, d):
    q, x = _normal(rng, d)
    return q + 1e8, x + 1e8


def _far(rng, d):
    q, x = _normal(rng, d)
    return q + 1e4, x


def _one(rng, d):
    return rng.normal(size=(9, d)), rng.normal(size=(1, d))


def _less_than_a_leaf(rng, d):
    return rng.normal(size=(3, d)), rng.normal(size=(LEAF - 1, d))


def _last_alone(rng, d):
    """A last panel of one sample."""
    return rng.normal(size=(30, d)), rng.normal(size=(20 * LEAF + 1, d))


def _equal(rng, d):
    return np.zeros((10, d)), np.full((200, d), 0.25)


DATA = {
    function.__name__[1:]: function
    for function in (
        _normal,
        _clusters,
        _grid,
        _flat,
        _offset,
        _far,
        _one,
        _less_than_a_leaf,
        _last_alone,
        _equal,
    )
}


def given(name, d):
    return DATA[name](np.random.default_rng(d), d)


def scale_of(d, h=1.0):
    return np.linspace(1.0, 0.5, d) / h


# --- twins ---


def squared(metric, q, x, scale):
    difference = np.abs(q[:, None, :] - x[None, :, :]) * scale
    if metric == EUCLIDEAN:
        return (difference**2).sum(axis=2)
    return (difference.sum(axis=2) if metric == MANHATTAN else difference.max(axis=2)) ** 2


def kd_order_twin(points, scale, leaf, rows=None):
    rows = np.arange(len(points)) if rows is None else rows
    if len(rows) <= leaf:
        return rows
    with np.errstate(over="ignore"):
        width = np.ptp(points[rows], axis=0) * scale
    leaves = -(-len(rows) // leaf)
    middle = leaf * (leaves // 2 if leaves <= 4 else max(4, leaves // 2 // 4 * 4))
    by_column = rows[np.argsort(points[rows, np.argmax(width)], kind="stable")]
    halves = np.sort(by_column[:middle]), np.sort(by_column[middle:])
    return np.concatenate([kd_order_twin(points, scale, leaf, half) for half in halves])


class Ordered:
    """Queries and samples in k-d order and their boxes; a block is four groups, the leaves of the queries."""

    def __init__(self, q, x, scale, leaf=LEAF, group=GROUP):
        self.leaf, self.scale, self.n, self.group, block = leaf, scale, len(x), group, 4 * group
        self.query_order = pruning.kd_order(q, scale, group)
        self.order = pruning.kd_order(x, scale, leaf)
        self.boxes = pruning.boxes(x[self.order], leaf)
        self.blocks = pruning.boxes(q[self.query_order], block)
        self.groups = pruning.boxes(q[self.query_order], group)
        self.queries = [self.query_order[i : i + block] for i in range(0, len(q), block)]
        self.panels = self.boxes[0].shape[1]
        self.slack = pruning.slack_of(q.shape[1], float)

    def rows(self, panel):
        return self.order[panel * self.leaf : (panel + 1) * self.leaf]

    def active(self, b, metric, profile, reach):
        panels, limit = active_panels(
            *self.blocks, b, *self.boxes, self.scale, metric, profile, reach, self.slack
        )
        assert len(set(panels)) == len(panels)
        listed, _ = pruning.active_lists(
            *self.blocks, b, 1, *self.boxes, self.scale, metric, profile, reach, self.slack
        )
        np.testing.assert_array_equal(listed, panels)
        return panels, limit

    def group_distances(self, b, panel, metric):
        """Of the panel to each query of the block, by its group."""
        last = self.groups[0].shape[1]
        near = [
            box_distance(*self.groups, g, *self.boxes, panel, self.scale, metric)
            for g in range(4 * b, min(4 * b + 4, last))
        ]
        return np.repeat(near, self.group)[: len(self.queries[b])]

    def seen(self, b, metric, profile, reach):
        """Which samples each query of the block sees, shape (block, n)."""
        seen = np.zeros((len(self.queries[b]), self.n), bool)
        panels, limit = self.active(b, metric, profile, reach)
        for panel in panels:
            seen[np.ix_(self.group_distances(b, panel, metric) <= limit, self.rows(panel))] = True
        return seen


# --- order and boxes ---


@pytest.mark.parametrize("d", [1, 2, 3, 8])
@pytest.mark.parametrize("name", DATA)
def test_order_is_the_twins(name, d):
    _, x = given(name, d)
    for leaf in (1, LEAF, 64):
        np.testing.assert_array_equal(
            pruning.kd_order(x, scale_of(d), leaf), kd_order_twin(x, scale_of(d), leaf)
        )


def _tournament(n):
    """Each bucket of a histogram holds all values but a few, again and again."""
    return np.concatenate([2.0 ** -np.arange(0, 1000, 8.0), np.full(n - 125, 2.0**-1010)])


HARD = {
    "equal": np.ones,
    "sorted": lambda n: np.arange(float(n)),
    "reversed": lambda n: -np.arange(float(n)),
    "two values": lambda n: (np.arange(n) % 2).astype(float),
    "organ pipe": lambda n: np.minimum(np.arange(n), n - np.arange(n)).astype(float),
    "binades": lambda n: np.ldexp(1.0, np.arange(n) % 2000 - 1000),
    "shrinking": _tournament,
    "beyond the floats": lambda n: np.where(np.arange(n) % 3 == 0, -1.7e308, 1.7e308 - np.arange(n)),
    "denormal": lambda n: (np.arange(n) * 7919 % n) * 5e-324,
    "one far": lambda n: np.append(np.arange(n - 1.0), 1e300),
}


@pytest.mark.parametrize("name", HARD)
def test_order_of_hard_values(name):
    n = 20_000
    points = np.column_stack([HARD[name](n), np.zeros(n)])
    np.testing.assert_array_equal(
        pruning.kd_order(points, np.ones(2), 64), kd_order_twin(points, np.ones(2), 64)
    )


@pytest.mark.parametrize("name", HARD)
def test_selection_is_a_sort(name):
    values = HARD[name](3001)
    ordered, counts = np.sort(values), np.empty(256, np.int64)
    for rank in (0, 1, 1500, 2999, 3000):
        moved = values.copy()
        place = select(moved, rank, counts)
        assert moved[place] == ordered[rank]
        equal = min(place, rank - np.searchsorted(ordered, ordered[rank]))
        assert (moved[place - equal : place] == ordered[rank]).all()
        assert (moved[: place - equal] < ordered[rank]).all()


def test_integers_and_float32_are_ordered_alike():
    x = np.random.default_rng(0).integers(0, 50, size=(700, 3))
    wanted = pruning.kd_order(x.astype(float), np.ones(3), LEAF)
    np.testing.assert_array_equal(pruning.kd_order(x.astype(np.float32), np.ones(3), LEAF), wanted)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", DATA)
def test_boxes_and_their_distances(name, metric):
    q, x = given(name, 3)
    code, all_ = METRICS[metric], Ordered(q, x, scale_of(3))
    for b, queries in enumerate(all_.queries):
        nearest, farthest = box_distances(*all_.blocks, b, *all_.boxes, all_.scale, code)
        for panel in range(all_.panels):
            rows = all_.rows(panel)
            np.testing.assert_array_equal(all_.boxes[0][:, panel], x[rows].min(axis=0))
            np.testing.assert_array_equal(all_.boxes[1][:, panel], x[rows].max(axis=0))
            s = squared(code, q[queries], x[rows], all_.scale)
            assert nearest[panel] <= s.min() * (1 + all_.slack)
            assert farthest[panel] >= s.max() * (1 - all_.slack)
            one = box_distance(*all_.blocks, b, *all_.boxes, panel, all_.scale, code)
            assert one == nearest[panel]
            assert (all_.group_distances(b, panel, code) <= s.min(axis=1) * (1 + all_.slack)).all()


def test_four_leaves_fill_a_small_box():
    x = np.random.default_rng(0).uniform(size=(10_000, 2))
    ordered = x[pruning.kd_order(x, np.ones(2), 4)]
    low, high = pruning.boxes(ordered, 16)
    area = np.prod(high - low, axis=0)
    assert np.median(area) < 1.5 * 16 / len(x)
    assert area.max() < 6 * 16 / len(x)


def test_distances_of_two_boxes_by_hand():
    low, high = np.array([[4.0, 0.0], [5.0, 0.5]]), np.array([[6.0, 1.0], [5.0, 0.5]])
    wanted = {  # the block is [0, 1] x [0, 1]: gaps 3 and 4 to the first panel, spans 6 and 5; 0, 0; 1, 0.5
        "euclidean": ([25.0, 0.0], [61.0, 1.25]),
        "manhattan": ([49.0, 0.0], [121.0, 2.25]),
        "chebyshev": ([16.0, 0.0], [36.0, 1.0]),
    }
    for name, (near, far) in wanted.items():
        block = np.zeros((2, 1)), np.ones((2, 1))
        nearest, farthest = box_distances(*block, 0, low, high, np.ones(2), METRICS[name])
        np.testing.assert_array_equal(nearest, near)
        np.testing.assert_array_equal(farthest, far)


# --- bounded support ---


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 2, 8])
@pytest.mark.parametrize("name", DATA)
def test_support_lies_in_the_active_panels(name, d, metric):
    q, x = given(name, d)
    code = METRICS[metric]
    for h in (0.3, 2.0):
        all_ = Ordered(q, x, scale_of(d, h))
        for b, queries in enumerate(all_.queries):
            s = squared(code, q[queries], x, all_.scale)
            assert (s[~all_.seen(b, code, COMPACT, 1.0)] > 1.0).all()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("h", [1.0, 3.0, 7.0, math.sqrt(2.0)])
def test_samples_at_the_very_radius_are_kept(metric, h):
    """Integers on a line, one to a panel and to a group: distances are h and more, and only more is left out."""
    x = np.column_stack([np.arange(40.0), np.arange(40.0) if h == math.sqrt(2.0) else np.zeros(40)])
    all_ = Ordered(x, x, np.full(2, 1.0 / h), leaf=1, group=1)
    for b, queries in enumerate(all_.queries):
        distance = np.sqrt(squared(METRICS[metric], x[queries], x, np.ones(2)))
        seen = all_.seen(b, METRICS[metric], COMPACT, 1.0)
        np.testing.assert_array_equal(seen, distance <= h * (1 + 1e-12))


def test_float32_distances_need_their_slack():
    """Where float32 rounds a distance down to the radius, the panel stays."""
    rng = np.random.default_rng(0)
    q = rng.uniform(size=(400, 3)).astype(np.float32)
    x = (q + rng.normal(size=(400, 3)) * 0.1).astype(np.float32)
    difference = q - x
    s = (difference[:, 0] ** 2 + difference[:, 1] ** 2) + difference[:, 2] ** 2
    assert s.dtype == np.float32
    missed = 0
    for i in range(len(q)):
        a, b = q[i].astype(float)[:, None], x[i].astype(float)[:, None]
        for slack in (0.0, pruning.slack_of(3, np.float32)):
            found = active_panels(a, a, 0, b, b, np.ones(3), EUCLIDEAN, COMPACT, float(s[i]), slack)[0]
            missed += found.size == 0 and slack == 0.0
            assert found.size == 1 or slack == 0.0
    assert missed > 50


def test_squares_that_end_in_float32_are_kept():
    """Squared, 1e-23 is 0 in float32: a sample as far is as near as one at 0."""
    at, other = np.zeros((1, 1)), np.full((1, 1), 1e-23)
    assert np.float32(1e-23) ** 2 == 0
    slack = pruning.slack_of(1, np.float32)
    panels, _ = active_panels(at, at, 0, other, other, np.ones(1), EUCLIDEAN, COMPACT, 0.0, slack)
    assert panels.tolist() == [0]


def test_order_of_active_panels_does_not_depend_on_the_block():
    q, x = given("normal", 2)
    all_ = Ordered(q, x, np.full(2, 2.0))
    for b in range(len(all_.queries)):
        panels, limit = all_.active(b, EUCLIDEAN, COMPACT, 1.0)
        assert (np.diff(panels) > 0).all()
        assert limit == with_slack(1.0, all_.slack)
    away = np.full((2, 1), 50.0)
    panels, _ = active_panels(away, away, 0, *all_.boxes, np.ones(2), EUCLIDEAN, COMPACT, 1.0, 0.0)
    assert panels.shape == (0,)


# --- exponential type ---


def log_weights(profile, s):
    return -0.5 * s if profile == GAUSSIAN else -np.sqrt(s)


def shares_left_out(log_weight, seen):
    """Of the weights of each query."""
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    return np.where(seen, 0.0, weight).sum(axis=1) / weight.sum(axis=1)


@pytest.mark.parametrize("profile", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("name", DATA)
def test_what_is_left_out_weighs_nothing(name, d, metric, profile):
    q, x = given(name, d)
    code = METRICS[metric]
    for h in (0.05, 1.0):
        all_ = Ordered(q, x, scale_of(d, h))
        for b, queries in enumerate(all_.queries):
            log_weight = log_weights(profile, squared(code, q[queries], x, all_.scale))
            for dtype, allowed in ((np.float64, 1e-16), (np.float32, 1e-8)):
                seen = all_.seen(b, code, profile, pruning.log_reach(len(x), dtype))
                assert (shares_left_out(log_weight, seen) <= allowed).all()


@pytest.mark.parametrize(("profile", "factor"), [(GAUSSIAN, 500.0), (LAPLACE, 1500.0)])
def test_little_is_seen_and_the_near_comes_first(profile, factor):
    rng = np.random.default_rng(0)
    q, x = rng.uniform(size=(800, 2)), rng.uniform(size=(20_000, 2))
    all_ = Ordered(q, x, np.full(2, factor))
    centres = 0.5 * (all_.boxes[0] + all_.boxes[1]).T
    for b, queries in enumerate(all_.queries):
        panels, _ = all_.active(b, EUCLIDEAN, profile, pruning.log_reach(len(x), np.float64))
        assert len(panels) < 0.3 * all_.panels
        assert (np.diff(panels[1:]) > 0).all()
        s = squared(EUCLIDEAN, q[queries].mean(axis=0, keepdims=True), centres, all_.scale)[0]
        assert (s < s[panels[0]]).sum() < 10


def test_multiplicities_widen_the_reach():
    """Far samples outweigh near ones where their multiplicity is 1e60 times as large."""
    rng = np.random.default_rng(0)
    q, near = rng.normal(scale=0.1, size=(9, 2)), rng.normal(scale=0.1, size=(4 * LEAF, 2))
    x = np.concatenate([near, near + 9, near + 50])
    weights = np.repeat([1e-30, 1e30, 1e30], 4 * LEAF)
    all_ = Ordered(q, x, np.ones(2))
    for b, queries in enumerate(all_.queries):
        log_weight = log_weights(GAUSSIAN, squared(EUCLIDEAN, q[queries], x, all_.scale)) + np.log(weights)
        shares = {}
        for ratio in (1.0, 1e60):
            seen = all_.seen(b, EUCLIDEAN, GAUSSIAN, pruning.log_reach(len(x), float, ratio))
            assert not seen[:, 8 * LEAF :].any()
            shares[ratio] = shares_left_out(log_weight, seen)
        assert (shares[1e60] <= 1e-16).all()
        assert (shares[1.0] > 0.5).all()


@pytest.mark.parametrize("profile", [GAUSSIAN, LAPLACE])
def test_leave_one_out_may_lose_a_lone_sample(profile):
    """The last panel is one far sample; without itself its own query is answered by the nearest of all others."""
    x = np.append(np.random.default_rng(0).normal(size=4 * LEAF), 1e3)[:, None]
    all_ = Ordered(x, x, np.ones(1), group=1)
    b = next(b for b, queries in enumerate(all_.queries) if len(x) - 1 in queries)
    queries = all_.queries[b]
    log_weight = log_weights(profile, squared(EUCLIDEAN, x[queries], x, all_.scale))
    log_weight[np.arange(len(queries)), queries] = -np.inf
    seen = all_.seen(b, EUCLIDEAN, profile, pruning.log_reach(len(x), float))
    assert (shares_left_out(log_weight, seen) <= 1e-16).all()


# --- the k nearest ---


def walk(all_, q, x, b, metric, k, *, itself=True):
    """Rows of the k nearest of a block, ties by row, by panels from near to far; and which panels were visited."""
    queries = all_.queries[b]
    panels, distances = order_panels(*all_.blocks, b, *all_.boxes, all_.scale, metric)
    listed = sorted(zip(distances, panels, strict=True))
    best = [[(math.inf, len(x))] * k for _ in queries]
    visited, size = [], len(panels)
    while size > 0:
        worst = np.array([line[-1][0] for line in best])
        if distances[0] > with_slack(worst.max(), all_.slack):
            break
        panel = panels[0]
        assert (distances[0], panel) == listed[len(visited)]
        visited.append(panel)
        size = drop_nearest(panels, distances, size)
        rows = all_.rows(panel)
        s = squared(metric, q[queries], x[rows], all_.scale)
        near = all_.group_distances(b, panel, metric) <= with_slack(worst, all_.slack)
        for i in np.flatnonzero(near):
            found = [(s[i, j], row) for j, row in enumerate(rows) if itself or row != queries[i]]
            best[i] = sorted(best[i] + found)[:k]
    return [[row for _, row in line] for line in best], visited


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 2, 8])
@pytest.mark.parametrize("name", DATA)
def test_nearest_are_those_of_all_samples(name, d, metric):
    q, x = given(name, d)
    all_ = Ordered(q, x, scale_of(d))
    for k in {1, min(5, len(x)), min(LEAF + 3, len(x))}:
        for b, queries in enumerate(all_.queries):
            s = squared(METRICS[metric], q[queries], x, all_.scale)
            found, _ = walk(all_, q, x, b, METRICS[metric], k)
            np.testing.assert_array_equal(found, np.argsort(s, axis=1, kind="stable")[:, :k])


@pytest.mark.parametrize("name", ["grid", "last_alone"])
def test_nearest_but_itself(name):
    _, x = given(name, 2)
    all_ = Ordered(x, x, np.ones(2))
    for b, queries in enumerate(all_.queries):
        s = squared(EUCLIDEAN, x[queries], x, all_.scale)
        s[np.arange(len(queries)), queries] = np.inf
        found, _ = walk(all_, x, x, b, EUCLIDEAN, LEAF, itself=False)
        np.testing.assert_array_equal(found, np.argsort(s, axis=1, kind="stable")[:, :LEAF])


def test_a_last_panel_of_one_does_not_hold_k():
    x = np.append(np.random.default_rng(0).normal(size=4 * LEAF), 1e3)[:, None]
    q = np.array([[1e3]])
    all_ = Ordered(q, x, np.ones(1))
    found, _ = walk(all_, q, x, 0, EUCLIDEAN, 2)
    assert found == [[len(x) - 1, np.argmax(x[:-1])]]


def test_a_lower_row_in_a_later_panel_wins_the_tie():
    """Panels at distance 1 on either side; row 0 lies in the one that is visited last."""
    x = np.array([[1.0], [-1.0], [-2.0], [2.0]])
    q = np.zeros((1, 1))
    all_ = Ordered(q, x, np.ones(1), leaf=2)
    assert all_.rows(0).tolist() == [1, 2]
    assert walk(all_, q, x, 0, EUCLIDEAN, 1) == ([[0]], [0, 1])


def test_few_panels_are_visited_where_it_pays():
    rng = np.random.default_rng(0)
    q, x = rng.normal(size=(4000, 3)), rng.normal(size=(8000, 3))
    all_ = Ordered(q, x, np.ones(3))
    visits = [len(walk(all_, q, x, b, EUCLIDEAN, 10)[1]) for b in range(0, len(all_.queries), 25)]
    assert np.median(visits) < 0.1 * all_.panels


# --- whether it pays ---


def test_probes_are_spread_over_all_blocks():
    assert pruning.probes(1).tolist() == [0]
    assert pruning.probes(3).tolist() == [0, 1, 2]
    assert pruning.probes(160).tolist() == list(range(10, 160, 20))


def test_shares_are_those_of_the_blocks():
    """Where samples are 10,000 times as dense here as there, so that one block does not speak for all."""
    rng = np.random.default_rng(0)
    q, x = rng.uniform(size=(600, 1)), rng.uniform(size=(6000, 1)) ** 4
    all_ = Ordered(q, x, np.full(1, 10.0))
    args = (*all_.boxes, all_.scale, EUCLIDEAN)
    blocks = range(len(all_.queries))
    visits = np.mean([len(all_.active(b, EUCLIDEAN, COMPACT, 1.0)[0]) for b in blocks])
    share = pruning.active_share(*all_.blocks, *args, COMPACT, 1.0, 0.0)
    assert share == pytest.approx(visits / all_.panels, rel=0.3)

    def nearest_share(k):
        return pruning.nearest_share(
            q[all_.query_order], *all_.blocks, x[all_.order], *args, k, all_.slack, LEAF
        )

    for k in (100, 500):
        visits = np.mean([len(walk(all_, q, x, b, EUCLIDEAN, k)[1]) for b in blocks])
        assert nearest_share(k) == pytest.approx(visits / all_.panels, rel=0.3)
    assert nearest_share(len(x)) == 1.0


def test_automatic_choice():
    def auto(n, m, d, h):
        assert pruning.worth_pruning(n, m, d, 64, 16)
        rng = np.random.default_rng(0)
        all_ = Ordered(rng.uniform(size=(m, d)), rng.uniform(size=(n, d)), np.full(d, 1 / h), 64, 4)
        share = pruning.active_share(*all_.blocks, *all_.boxes, all_.scale, EUCLIDEAN, COMPACT, 1.0, 0.0)
        return pruning.worth_pruning(n, m, d, 64, 16, share)

    assert auto(20_000, 4000, 2, 0.05)
    assert auto(20_000, 4000, 3, 0.1)
    assert not auto(20_000, 4000, 2, 0.9)
    assert not auto(20_000, 4000, 8, 0.6)
    assert not pruning.worth_pruning(300, 100_000, 2, 64, 16)
    assert not pruning.worth_pruning(100_000, 100, 2, 64, 16)


@pytest.mark.parametrize("metric", [EUCLIDEAN, MANHATTAN, CHEBYSHEV])
@pytest.mark.parametrize("profile", [COMPACT, GAUSSIAN, LAPLACE])
def test_pairs_in_reach_are_no_more_than_panels_visited(profile, metric):
    rng = np.random.default_rng(0)
    x, q, scale = rng.normal(size=(5000, 3)), rng.normal(size=(2000, 3)), np.array([1.0, 0.5, 2.0])
    name = {EUCLIDEAN: "euclidean", MANHATTAN: "cityblock", CHEBYSHEV: "chebyshev"}[metric]
    everything = cdist(q * scale, x * scale, name)
    x_order, q_order = pruning.kd_order(x, scale, 64), pruning.kd_order(q, scale, 4)
    boxes = *pruning.boxes(q[q_order], 16), *pruning.boxes(x[x_order], 64)
    for distance in (0.0, 0.5, 2.0, 9.0, 1e100):
        reach = {GAUSSIAN: distance**2 / 2, LAPLACE: distance}.get(profile, distance**2)
        seen = pruning.seen_share(q, x, scale, metric, profile, reach)
        assert seen == pytest.approx((everything <= distance).mean(), abs=0.1)
        assert seen <= pruning.active_share(*boxes, scale, metric, profile, reach, 0.0) + 0.1
