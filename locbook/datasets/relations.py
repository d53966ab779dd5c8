"""Relations between items, made from a known embedding: asymmetric dissimilarities and triplets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locbook._validation import (
    RandomState,
    check_array,
    check_integer,
    check_option,
    check_random_state,
    check_real,
)


class AsymmetricData(NamedTuple):
    """``dissimilarity`` (n, n), and the two points of each item: ``rows`` (n, 2), ``columns`` (n, 2)."""

    dissimilarity: NDArray[np.float64]
    rows: NDArray[np.float64]
    columns: NDArray[np.float64]


def make_asymmetric(
    n_items: int = 20, kind: str = "slide", *, noise: float = 0.0, random_state: RandomState = None
) -> AsymmetricData:
    """Asymmetric dissimilarities ``d_ab = |r_a - c_b| exp(noise e_ab)`` from known points, e standard normal.

    Parameters
    ----------
    n_items : int, >= 2
    kind : {"slide", "unfolding"}
        "slide": ``c_b = r_b - z`` with one vector z = (0.6, 0.3) for all, so that it is farther one way than
        back (the slide-vector model; ``d_aa = |z|``). "unfolding": rows and columns are drawn apart, as
        queries and keys. Points are standard normal in the plane.
    noise : float, >= 0
        0.1 is about 10 per cent.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    AsymmetricData
        Named tuple ``(dissimilarity, rows, columns)``: float64 (n, n), >= 0, from item a to item b; (n, 2)
        twice. A kernel is, for example, ``exp(-dissimilarity**2 / 2)``.

    Raises
    ------
    ValueError, TypeError
        If the kind is unknown or a number is out of range.

    References
    ----------
    Zielman, Heiser (1993), Psychometrika 58(1), 101-114 (the slide vector).

    Examples
    --------
    >>> from locbook.datasets import make_asymmetric
    >>> dissimilarity, rows, columns = make_asymmetric(5, random_state=0)
    >>> (rows - columns)[0].round(12), bool((dissimilarity != dissimilarity.T).any())
    (array([0.6, 0.3]), True)
    """
    n = check_integer(n_items, "n_items", minimum=2)
    check_option(kind, "kind", ("slide", "unfolding"))
    noise = check_real(noise, "noise", 0)
    rng = check_random_state(random_state)
    rows = rng.standard_normal((n, 2))
    columns = rows - [0.6, 0.3] if kind == "slide" else rng.standard_normal((n, 2))
    exact = np.linalg.norm(rows[:, None] - columns[None], axis=2)
    return AsymmetricData(exact * np.exp(noise * rng.standard_normal((n, n))), rows, columns)


def make_triplets(
    embedding: ArrayLike, n_triplets: int = 1000, *, flip: float = 0.0, random_state: RandomState = None
) -> NDArray[np.int64]:
    """Triplets (i, j, k), "i is nearer to j than to k", from known points (Euclidean distance).

    Parameters
    ----------
    embedding : array, shape (n, d), n >= 3
    n_triplets : int, >= 1
        Three different items each, drawn uniformly, with repetition.
    flip : float in [0, 1]
        Probability that an answer is wrong (j and k exchanged).
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    array, shape (n_triplets, 3), int64
        Where both are equally near, either order.

    Raises
    ------
    ValueError, TypeError
        If there are fewer than three points, or a value is not finite or out of range.

    Examples
    --------
    >>> from locbook.datasets import make_triplets
    >>> i, j, k = make_triplets([[0.0], [1.0], [5.0]], 50, random_state=0).T
    >>> sorted(set(zip(i.tolist(), j.tolist(), k.tolist())))
    [(0, 1, 2), (1, 0, 2), (2, 1, 0)]
    """
    points = check_array(embedding, "embedding", (2,))
    n = len(points)
    if n < 3:
        raise ValueError(f"embedding must have at least 3 rows, got shape {points.shape}")
    m = check_integer(n_triplets, "n_triplets")
    flip = check_real(flip, "flip", 0, 1)
    rng = check_random_state(random_state)
    i = rng.integers(0, n, m)
    j = (i + rng.integers(1, n, m)) % n
    k = rng.integers(0, n - 2, m)  # of those that are left: step over the smaller, then the larger of i and j
    k += k >= np.minimum(i, j)
    k += k >= np.maximum(i, j)
    to_j, to_k = (((points[i] - points[other]) ** 2).sum(axis=1) for other in (j, k))
    swap = (to_j > to_k) ^ (rng.random(m) < flip)
    return np.stack([i, np.where(swap, k, j), np.where(swap, j, k)], axis=1)
