"""Answers to the exercises of chapter 2, *Localization kernels*."""

import numpy as np

from locbook.exercises._kinds import Function, Number


def _far_share():
    from locbook import laplace, local_weights

    return float(local_weights([[1000.0]], [[0.0], [3.0]], laplace(2.0))[0, 0])


def _mutual(samples, n_neighbors):
    """Share of the nearest-neighbour relations that are mutual, by comparing lists."""
    named = []
    for i, x in enumerate(samples):
        distance = np.sqrt(((samples - x) ** 2).sum(axis=1))
        distance[i] = np.inf
        named.append(set(np.argsort(distance)[:n_neighbors].tolist()))
    mutual = sum(i in named[j] for i, names in enumerate(named) for j in names)
    return mutual / (len(samples) * n_neighbors)


def _draw(rng):
    n, d = int(rng.integers(6, 14)), int(rng.integers(1, 4))
    return rng.normal(size=(n, d)), int(rng.integers(1, 5))


def _stretching():
    import statsmodels.api as sm

    from locbook import epanechnikov, knn_bandwidth, leave_one_out

    households = sm.datasets.engel.load_pandas().data
    income, food = households[["income"]].to_numpy(), households["foodexp"].to_numpy()
    errors = [
        ((leave_one_out(income, food, epanechnikov(knn_bandwidth(k))) - food) ** 2).mean()
        for k in (5, 10, 15, 20, 30)
    ]
    return float(np.sqrt(min(errors)))


EXERCISES = {
    "far_share": Number(
        _far_share,
        tolerance=0.006,
        hint=(
            "Write down both kernel values and divide them by the larger: only the difference of the two "
            "distances, in bandwidths, is left. Then divide by the sum."
        ),
    ),
    "mutual": Function(
        _mutual,
        _draw,
        hint="Nobody names himself; count a relation from i to j if j also names i; divide by all relations.",
    ),
    "stretching": Number(
        _stretching,
        tolerance=0.06,
        hint=(
            "For each k: the differences between predictions and values, squared, their mean over all 235, "
            "the root; then the smallest of the five."
        ),
    ),
}
