r"""A profile of one's own beside the named ones, and a Mahalanobis distance beside SciPy's.

The bandwidth is that of :mod:`benchmarks.gaussian`. The own profiles are plain Python functions of
:math:`s = (d / h)^2`; the peer is locbook's kernel of that name, so 1 says that there is no difference. A formula that
is an exponential of a line is recognised; behind a branch it is not, and that row says what this is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import locbook as lb

from .attention import arrays
from .case import Case, Data, Peer, by_block
from .gaussian import bandwidth, cost, reference
from .gaussian import ours as by_name

#: "The same speed" up to a tenth.
TARGET, CDIST_TARGET = 0.9, 4.0
#: Bandwidths of a compact kernel, in those of the Gaussian: nobody is without neighbours.
WIDE = 2.5


def log_gaussian(s: float) -> float:
    return -0.5 * s


def gaussian(s: float) -> float:
    return math.exp(-0.5 * s)


def gaussian_in_branches(s: float) -> float:
    return math.exp(-0.5 * s) if s < 1e6 else 0.0


def cauchy(s: float) -> float:
    return 1 / (1 + s)


def tricube(s: float) -> float:
    return (1 - s * math.sqrt(s)) ** 3 if s < 1 else 0.0


def under(wide: float = 1.0, **kernel: Callable) -> Callable[[Data], np.ndarray]:
    def run(data: Data) -> np.ndarray:
        own = lb.Kernel(**kernel, bandwidth=wide * bandwidth(data.q.shape[1]))
        return lb.local_mean(data.q, data.x, data.v, own)

    return run


def named(name: str, wide: float = 1.0) -> Callable[[Data], np.ndarray]:
    def run(data: Data) -> np.ndarray:
        kernel = lb.KERNELS[name](wide * bandwidth(data.q.shape[1]))
        return lb.local_mean(data.q, data.x, data.v, kernel)

    return run


def reference_of(
    profile: Callable[[np.ndarray], np.ndarray], wide: float = 1.0
) -> Callable[[Data], np.ndarray]:
    def run(data: Data) -> np.ndarray:
        from scipy.spatial.distance import cdist

        x, v = data.x.astype(np.float64), data.v.astype(np.float64)

        def block(q: np.ndarray) -> np.ndarray:
            weights = profile(cdist(q, x, "sqeuclidean") / (wide * bandwidth(x.shape[1])) ** 2)
            return weights @ v / weights.sum(axis=1, keepdims=True)

        return by_block(block, data.q)

    return run


def covariance(d: int) -> np.ndarray:
    """Of neighbouring columns that go together."""
    return 0.6 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))


def mahalanobis(data: Data) -> np.ndarray:
    d = data.q.shape[1]
    kernel = lb.gaussian(bandwidth(d), metric=lb.mahalanobis(covariance(d)))
    return lb.local_mean(data.q, data.x, data.v, kernel)


def scipy_mahalanobis(data: Data) -> np.ndarray:
    from scipy.spatial.distance import cdist

    d = data.q.shape[1]
    weights = cdist(data.q, data.x, "mahalanobis", VI=np.linalg.inv(covariance(d)))
    np.square(weights, out=weights)
    weights *= -0.5 / bandwidth(d) ** 2
    np.exp(weights, out=weights)
    return weights @ data.v / weights.sum(axis=1, keepdims=True)


def mahalanobis_reference(data: Data) -> np.ndarray:
    root = np.linalg.cholesky(covariance(data.q.shape[1]))
    q, x = (np.linalg.solve(root, a.astype(np.float64).T).T for a in (data.q, data.x))
    return reference(Data(q=q, x=x, v=data.v))


def cases() -> list[Case]:
    by_gaussian = Peer("locbook.gaussian", by_name, TARGET)
    cauchy_reference = reference_of(lambda s: 1 / (1 + s))
    tricube_reference = reference_of(lambda s: np.clip(1 - s**1.5, 0, None) ** 3, WIDE)
    works = {
        "a Gaussian of one's own, log K": (under(log_profile=log_gaussian), reference, by_gaussian),
        "a Gaussian of one's own, K": (under(profile=gaussian), reference, by_gaussian),
        "a Gaussian of one's own behind a branch": (
            under(profile=gaussian_in_branches),
            reference,
            Peer("locbook.gaussian", by_name, None),
        ),
        "Cauchy's profile of one's own": (
            under(profile=cauchy),
            cauchy_reference,
            Peer("locbook.cauchy", named("cauchy"), TARGET),
        ),
        "a tricube of one's own": (
            under(WIDE, profile=tricube),
            tricube_reference,
            Peer("locbook.tricube", named("tricube", WIDE), TARGET),
        ),
        "Mahalanobis distance": (
            mahalanobis,
            mahalanobis_reference,
            Peer("scipy.spatial.distance.cdist", scipy_mahalanobis, CDIST_TARGET, "and numpy.exp"),
        ),
    }
    return [
        Case(
            "profiles",
            work,
            10_000,
            10_000,
            d,
            p,
            dtype,
            arrays(d, p),
            run,
            check,
            (peer,),
            cost(d, p, dtype),
        )
        for work, (run, check, peer) in works.items()
        for dtype in ("float32", "float64")
        for d, p in ((2, 1), (8, 8))
    ]
