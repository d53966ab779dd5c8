"""Gaussian mixtures, in which density, score, modes and best denoiser are known.

``p(x) = sum_k w_k N(x; m_k, C_k)``. Gaussian noise keeps it a mixture, so everything that a kernel density,
MeanShift, a denoiser or a diffusion model estimates has its truth here. Modes: Carreira-Perpinan (2000),
*Mode-finding for mixtures of Gaussian distributions*; claw: Marron & Wand (1992), *Exact mean integrated
squared error*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from locbook._validation import (
    RandomState,
    check_array,
    check_integer,
    check_option,
    check_random_state,
    check_real,
)


class KnownMixture:
    """A mixture of Gaussians, ``p(x) = sum_k w_k N(x; m_k, C_k)``.

    Parameters
    ----------
    weights : array, shape (k,)
        >= 0; divided by their sum.
    means : array, shape (k, d)
    covariances : array, shape (k, d, d), (k,) or scalar
        Symmetric positive definite matrices; numbers are variances: ``c`` means ``c * I``.

    Raises
    ------
    ValueError, TypeError
        If shapes do not fit, a weight is negative, or a covariance is not symmetric positive definite.

    Examples
    --------
    >>> from locbook.datasets import KnownMixture
    >>> mixture = KnownMixture([1, 1], [[-2.0], [2.0]], 0.25)
    >>> mixture.score([[-2.0], [0.0]]).round(6)
    array([[0.],
           [0.]])
    >>> mixture.modes().round(6)
    array([[-2.],
           [ 2.]])
    """

    def __init__(self, weights: ArrayLike, means: ArrayLike, covariances: ArrayLike) -> None:
        means = check_array(means, "means", (2,))
        k, d = means.shape
        weights = check_array(weights, "weights", (1,))
        if weights.shape != (k,) or (weights < 0).any() or weights.sum() == 0:
            raise ValueError(f"weights must be {k} numbers >= 0, not all 0, one for each mean; got {weights}")
        covariances = check_array(covariances, "covariances", (0, 1, 3))
        if covariances.shape in ((), (1,), (k,)):
            covariances = np.broadcast_to(covariances, (k,))[:, None, None] * np.eye(d)
        if covariances.shape != (k, d, d):
            raise ValueError(f"covariances must be a number, or have shape ({k},) or ({k}, {d}, {d})")
        try:
            factors = np.linalg.cholesky(covariances)
        except np.linalg.LinAlgError:
            raise ValueError("covariances must be positive definite") from None
        if not np.allclose(covariances, covariances.transpose(0, 2, 1), rtol=1e-10, atol=0):
            raise ValueError("covariances must be symmetric")
        self.weights, self.means, self.covariances = weights / weights.sum(), means, covariances
        self._factors = factors

    def _whiten(self, x: ArrayLike) -> tuple[NDArray, NDArray]:
        """``log w_k N(x; m_k, C_k)`` (m, k) and ``g_k = -C_k^-1 (x - m_k)`` (k, m, d)."""
        k, d = self.means.shape
        x = check_array(x, "x", (2,), columns=d)
        logs, gradients = np.empty((len(x), k)), np.empty((k, len(x), d))
        with np.errstate(divide="ignore"):  # a component of weight 0
            log_weights = np.log(self.weights)
        for c in range(k):
            factor = self._factors[c]
            z = solve_triangular(factor, (x - self.means[c]).T, lower=True)
            constant = log_weights[c] - d / 2 * np.log(2 * np.pi) - np.log(np.diag(factor)).sum()
            logs[:, c] = constant - (z**2).sum(axis=0) / 2
            gradients[c] = -solve_triangular(factor, z, lower=True, trans="T").T
        return logs, gradients

    def log_density(self, x: ArrayLike) -> NDArray[np.float64]:
        """``log p(x)``: (m, d) -> (m,)."""
        return logsumexp(self._whiten(x)[0], axis=1)

    def density(self, x: ArrayLike) -> NDArray[np.float64]:
        """``p(x)``: (m, d) -> (m,)."""
        return np.exp(self.log_density(x))

    def responsibilities(self, x: ArrayLike) -> NDArray[np.float64]:
        """``P(component k | x)``: (m, d) -> (m, k)."""
        logs = self._whiten(x)[0]
        return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))

    def score(self, x: ArrayLike) -> NDArray[np.float64]:
        """``grad log p(x)``: (m, d) -> (m, d)."""
        logs, gradients = self._whiten(x)
        shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        return np.einsum("mk,kmd->md", shares, gradients)

    def hessian(self, x: ArrayLike) -> NDArray[np.float64]:
        """Second derivatives of ``log p(x)``: (m, d) -> (m, d, d)."""
        logs, gradients = self._whiten(x)
        shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        score = np.einsum("mk,kmd->md", shares, gradients)
        outer = np.einsum("mk,kmd,kme->mde", shares, gradients, gradients)
        precision = np.einsum("mk,kde->mde", shares, np.linalg.inv(self.covariances))
        return outer - precision - score[:, :, None] * score[:, None, :]

    def noised(self, sigma: float, alpha: float = 1.0) -> KnownMixture:
        """Give the law of ``alpha x + sigma e``, e normal: ``alpha m_k``, ``alpha**2 C_k + sigma**2 I``."""
        sigma, alpha = check_real(sigma, "sigma", 0), check_real(alpha, "alpha", 0)
        covariances = alpha**2 * self.covariances + sigma**2 * np.eye(self.means.shape[1])
        return KnownMixture(self.weights, alpha * self.means, covariances)

    def denoise(self, x: ArrayLike, sigma: float) -> NDArray[np.float64]:
        """Denoise in the best way, (m, d) -> (m, d): ``E[clean | clean + sigma e = x]``.

        It is ``x + sigma**2 s(x)`` with s the score of ``noised(sigma)`` (Tweedie).
        """
        sigma = check_real(sigma, "sigma", 0)
        return check_array(x, "x", (2,)) + sigma**2 * self.noised(sigma).score(x)

    def modes(self, max_iter: int = 10_000, tol: float = 1e-12) -> NDArray[np.float64]:
        """Find the maxima of the density that the means lead to: -> (number of modes, d), highest first.

        From each mean, ``x <- (sum_k r_k C_k^-1)^-1 sum_k r_k C_k^-1 m_k`` until it moves by less than
        ``tol`` times the spread of the means. In two and more dimensions a mixture can have further modes,
        which this does not find.
        """
        max_iter, tol = check_integer(max_iter, "max_iter"), check_real(tol, "tol", 0)
        precisions = np.linalg.inv(self.covariances)
        pulled = np.einsum("kde,ke->kd", precisions, self.means)
        scale = np.sqrt(self.covariances.diagonal(axis1=1, axis2=2).max()) + np.ptp(self.means, axis=0).max()
        x = self.means
        for _ in range(max_iter):
            shares = self.responsibilities(x)
            matrix = np.einsum("mk,kde->mde", shares, precisions)
            moved = np.linalg.solve(matrix, (shares @ pulled)[:, :, None])[:, :, 0]
            step, x = np.abs(moved - x).max(), moved
            if step <= tol * scale:
                break
        x = x[np.linalg.eigvalsh(self.hessian(x)).max(axis=1) < 0]
        kept: list[NDArray] = []
        for candidate in x[np.argsort(-self.density(x), kind="stable")]:
            if all(np.abs(candidate - other).max() > 1e-6 * scale for other in kept):
                kept.append(candidate)
        return np.array(kept).reshape(-1, self.means.shape[1])

    def sample(self, n_samples: int, random_state: RandomState = None) -> tuple[NDArray, NDArray]:
        """Draw ``(x (n, d), component (n,) int64)``."""
        n = check_integer(n_samples, "n_samples")
        rng = check_random_state(random_state)
        component = rng.choice(len(self.weights), size=n, p=self.weights)
        z = rng.standard_normal((n, self.means.shape[1]))
        return self.means[component] + np.einsum("nde,ne->nd", self._factors[component], z), component


MIXTURES = {
    "bimodal": ([0.6, 0.4], [[-1.5], [1.5]], [0.49, 0.25]),
    "claw": ([0.5] + [0.1] * 5, [[0.0], [-1.0], [-0.5], [0.0], [0.5], [1.0]], [1.0] + [0.01] * 5),
    "three": ([0.4, 0.35, 0.25], [[0.0, 0.0], [4.0, 0.5], [1.5, 3.5]], [0.5, 0.5, 0.5]),
    "ellipses": (
        [0.5, 0.3, 0.2],
        [[0.0, 0.0], [3.0, 2.0], [-1.0, 4.0]],
        [[[1.2, 0.9], [0.9, 1.0]], [[0.3, 0.0], [0.0, 1.2]], [[0.9, -0.3], [-0.3, 0.2]]],
    ),
}


class MixtureSample(NamedTuple):
    """``x`` (n, d), ``labels`` (n,) int64 (the component), ``truth`` (a :class:`KnownMixture`)."""

    x: NDArray[np.float64]
    labels: NDArray[np.int64]
    truth: KnownMixture


def make_mixture(
    n_samples: int = 300, name: str = "three", *, random_state: RandomState = None
) -> MixtureSample:
    """Draw samples of a Gaussian mixture whose density, score and modes are known.

    Parameters
    ----------
    n_samples : int, >= 1
    name : {"three", "ellipses", "bimodal", "claw"}
        In the plane: three round clusters of equal variance; three of unequal weight and shape. On the line:
        two; Marron and Wand's claw, five narrow peaks on a wide one. For your own:
        ``KnownMixture(...).sample(n)``.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    MixtureSample
        Named tuple ``(x, labels, truth)``: float64 (n, d), int64 (n,), and the :class:`KnownMixture`, with
        ``density``, ``log_density``, ``score``, ``hessian``, ``responsibilities``, ``modes``, ``noised``,
        ``denoise``.

    Raises
    ------
    ValueError, TypeError
        If the name is unknown or a number is out of range.

    References
    ----------
    Marron, Wand (1992), Annals of Statistics 20(2), 712-736.

    Examples
    --------
    >>> from locbook.datasets import make_mixture
    >>> x, labels, truth = make_mixture(200, "claw", random_state=0)
    >>> x.shape, len(truth.modes())
    ((200, 1), 5)
    """
    check_option(name, "name", tuple(MIXTURES))
    truth = KnownMixture(*MIXTURES[name])
    return MixtureSample(*truth.sample(n_samples, random_state), truth)
