r"""Kernel density: the sum of the weights, normalised.

.. math:: \hat p(x^*) = \frac{1}{n}\sum_i c_{K,d}\,h^{-d}\,K(x^*, x_i)

The denominator of every local mean is a density up to this constant (Rosenblatt 1956; Parzen 1962).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .. import engine
from ..kernels import Kernel


def log_density(
    queries: Any,
    samples: Any,
    kernel: Kernel | str = "gaussian",
    *,
    sample_weight: Any = None,
    prune: str | bool = "auto",
    device: str = "auto",
) -> Any:
    r"""Logarithm of the kernel density estimate, safe where the density itself underflows.

    Parameters
    ----------
    queries : array, shape (m, d)
    samples : array, shape (n, d)
    kernel : Kernel or str
        With a normalising constant in dimension d and one fixed bandwidth (number, vector or matrix).
    sample_weight : array, shape (n,), optional
        Multiplicities, >= 0.
    prune : {"auto", True, False}
        Whether to leave out samples that cannot matter; the answer is the same up to rounding. As a cost model decides;
        always where it can, with an error for a kernel that reaches every sample; never. On a card none is left out.
    device : {"auto", "cpu", "cuda"}
        Where to compute, as in :func:`locbook.local_mean`.

    Returns
    -------
    array, shape (m,)
        ``-inf`` where a compact kernel reaches no sample.

    Raises
    ------
    TypeError, ValueError
        For bad input, or a kernel that is no density in dimension d.

    References
    ----------
    Rosenblatt (1956), Parzen (1962), Silverman (1986).

    Examples
    --------
    >>> import locbook as lb
    >>> lb.log_density([[0.0]], [[0.0]], lb.gaussian(1.0)).round(4)  # -log(2 pi) / 2
    array([-0.9189])
    """
    device = engine.choose_device(device, queries=queries, samples=samples)
    here, problem, _ = engine.set_up(device, queries, samples, kernel, sample_weight=sample_weight)
    constant = problem.kernel.log_normalizer(problem.samples.shape[1])
    total = float(len(problem.samples))
    if problem.sample_weight is not None:  # in units of the largest power of two, so that no sum overflows
        weights = engine.of_host(problem.sample_weight)
        weights = weights / 2.0 ** (np.frexp(weights.max())[1] - 1)
        problem, total = replace(problem, sample_weight=weights), weights.sum()
    log_sums = here.log_sum(problem, prune=prune) + (constant - float(np.log(total)))
    return problem.restore(log_sums)


def density(
    queries: Any,
    samples: Any,
    kernel: Kernel | str = "gaussian",
    *,
    sample_weight: Any = None,
    prune: str | bool = "auto",
    device: str = "auto",
) -> Any:
    """Kernel density estimate, the exponential of :func:`log_density`, whose parameters it shares.

    Examples
    --------
    >>> import locbook as lb
    >>> lb.density([[0.0], [5.0]], [[0.0]], lb.uniform(1.0))
    array([0.5, 0. ])
    """
    logarithms = log_density(
        queries, samples, kernel, sample_weight=sample_weight, prune=prune, device=device
    )
    return (
        logarithms.exp()
        if engine.lives_on_card(logarithms) and hasattr(logarithms, "exp")
        else np.exp(logarithms)
    )
