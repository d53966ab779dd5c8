"""Local linear regression: statsmodels' ``KernelReg``, at a fixed bandwidth."""

from __future__ import annotations

import warnings

import numpy as np

import locbook as lb
from locbook import engine

from .case import Case, Cost, Data, Peer

N = M = 5_000
D = 2
H = 0.1


def make(rng: np.random.Generator, n: int, m: int) -> Data:
    x = rng.uniform(size=(n, D))
    y = np.sin(5 * x[:, 0]) + x[:, 1] ** 2 + 0.1 * rng.normal(size=n)
    return Data(x=x, y=y, q=rng.uniform(size=(m, D)))


def ours(data: Data) -> np.ndarray:
    problem = engine.Problem.check(data.q, data.x, lb.gaussian(H))
    found = engine.moments(problem, data.y[:, None])
    return np.linalg.solve(found.second, found.first)[:, 0, 0]


def reference(data: Data) -> np.ndarray:
    """Weighted least squares, query by query, by QR."""
    answer = np.empty(len(data.q))
    for k, q in enumerate(data.q):
        z = data.x - q
        root = np.exp(-0.25 * (z * z).sum(axis=1) / H**2)
        design = root[:, None] * np.column_stack([np.ones(len(z)), z])
        orthogonal, triangle = np.linalg.qr(design)
        answer[k] = np.linalg.solve(triangle, orthogonal.T @ (root * data.y))[0]
    return answer


def statsmodels_fit(data: Data) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # statsmodels about its own random generator
        from statsmodels.nonparametric.kernel_regression import KernelReg

        return KernelReg(data.y, data.x, "c" * D, reg_type="ll", bw=[H] * D).fit(data.q)[0]


def cost(n: int, m: int) -> Cost:
    """A pair: 3 D for the distance, a scale, the exponential, and the moments of z = (1, x - q), f = D + 1 long.

    These are D products w z, then f (f + 1) / 2 + f multiply-adds. Solving an f x f system a query adds nothing to
    speak of.
    """
    f = D + 1
    return Cost(
        flops=n * m * (3 * D + 1 + D + f * (f + 1) + 2 * f),
        exponentials=n * m,
        bytes=8 * (m * D + n * (D + 1) + m),
    )


def cases() -> list[Case]:
    peers = (Peer("statsmodels.nonparametric.kernel_regression.KernelReg", statsmodels_fit, 40.0, "ll"),)
    return [
        Case("regression", "local linear fit", N, M, D, 1, "float64", make, ours, reference, peers, cost),
    ]
