"""Answers to the exercises of chapter 3, *The local mean*."""

import numpy as np

from locbook.exercises._kinds import Function, Number


def _by_hand():
    from locbook import epanechnikov, local_mean

    return float(local_mean([[1.0]], [[0.0], [1.0], [3.0]], [2.0, 4.0, 9.0], epanechnikov(2.0))[0])


def _leave_one_out(samples, values, bandwidth):
    """What the Gaussian local mean predicts at each sample from the others, by refitting n times."""
    predictions = np.empty(len(samples))
    for i in range(len(samples)):
        others = np.arange(len(samples)) != i
        weights = np.exp(-0.5 * ((samples[i] - samples[others]) / bandwidth) ** 2)
        predictions[i] = weights @ values[others] / weights.sum()
    return predictions


def _draw(rng):
    n = int(rng.integers(3, 9))
    return rng.uniform(size=n), rng.normal(size=n), float(rng.uniform(0.1, 1.0))


def _logarithms():
    import statsmodels.api as sm

    from locbook import local_mean, select_bandwidth

    households = sm.datasets.engel.load_pandas().data
    u, v = np.log(households[["income"]].to_numpy()), np.log(households["foodexp"].to_numpy())
    kernel = select_bandwidth(u, v, "gaussian", method="loo").kernel
    return float(np.exp(local_mean(np.log([[1000.0]]), u, v, kernel))[0])


EXERCISES = {
    "by_hand": Number(
        _by_hand,
        tolerance=0.006,
        hint="Find u for each sample, then 1 - u squared (or 0), and divide by the sum of these weights.",
    ),
    "leave_one_out": Function(
        _leave_one_out,
        _draw,
        hint="Each sample's own weight must be 0 before you divide by the sum of the weights.",
    ),
    "logarithms": Number(
        _logarithms,
        tolerance=0.6,
        hint='Logarithms of incomes, of food and of the query; method="loo"; then back by exp.',
    ),
}
