"""Answers to the exercises of chapter 1, *The localization idea*."""

import numpy as np

from locbook.exercises._kinds import Choice, Function, Number


def _weighted_vote():
    kinds, kernel = np.array([0, 1, 1, 2, 2]), np.array([4.0, 3.0, 2.0, 2.0, 1.0])
    return float(np.bincount(kinds, weights=kernel).max() / kernel.sum())


def _gaussian_shares(query, samples, labels, n_kinds, bandwidth):
    from locbook import gaussian, local_mean

    return local_mean(query[None, :], samples, np.eye(n_kinds)[labels], gaussian(bandwidth))[0]


def _draw(rng):
    n, n_kinds = int(rng.integers(3, 9)), int(rng.integers(2, 5))
    labels = rng.integers(0, n_kinds, size=n)
    return rng.uniform(size=2), rng.uniform(size=(n, 2)), labels, n_kinds, float(rng.uniform(0.2, 1.0))


def _kinds():
    from locbook.datasets import load_fashion_mnist

    return list(zip("abcdefghij", load_fashion_mnist(split="test").names, strict=True))


def _confusion():
    from locbook import knn, local_mean
    from locbook.datasets import load_fashion_mnist

    known, new = load_fashion_mnist(split="train"), load_fashion_mnist(split="test")
    samples, queries = known.images.reshape(2000, 784) / 255, new.images.reshape(500, 784) / 255
    named = local_mean(queries, samples, np.eye(10)[known.labels], knn(10)).argmax(axis=1)
    return "abcdefghij"[int(np.bincount(new.labels[named != new.labels], minlength=10).argmax())]


EXERCISES = {
    "weighted_vote": Number(
        _weighted_vote,
        tolerance=0.006,
        hint="Add up the kernel of each kind, take the largest, and divide by the sum of all five.",
    ),
    "gaussian_shares": Function(
        _gaussian_shares, _draw, hint="Add up the kernel of each label, then divide by the sum of all."
    ),
    "confusion": Choice(
        _kinds(), _confusion, hint="Count new.labels where the name given is wrong; np.bincount helps."
    ),
}
