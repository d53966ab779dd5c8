r"""Metric learning for kernel regression: a linear map that makes what predicts alike near.

The distance is :math:`\lVert A(x - x')\rVert`, and A minimises the leave-one-out loss of the local mean,

.. math::
    L(A) = \frac1n \sum_i \lVert y_i - \hat y_{-i}\rVert^2, \qquad
    \nabla L(A) = \sum_i g_i\, x_i^\top,

where :math:`g_i` is the derivative of the loss by the mapped sample :math:`A x_i`, as a query and as a sample
(:func:`locbook.local_mean_vjp`): Weinberger & Tesauro (2007), who write it for the Gaussian kernel. A map to fewer
dimensions also reduces the dimension.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._validation import as_real, check_array, check_integer
from ..engine import Problem
from ..foundations.bandwidth_selection import leave_one_out_loss, select_bandwidth, size_of
from ..kernels import Kernel, gaussian
from ..kernels.base import RadialKernel, SoftmaxKernel, VonMisesKernel
from ..kernels.constructors import make_kernel


class LearnedMetric(NamedTuple):
    """Result of :func:`learn_metric`.

    Attributes
    ----------
    transform : array, shape (r, d)
        The map A.
    kernel : Kernel
        The kernel, for mapped queries and samples.
    score, initial_score : float
        Leave-one-out loss after and before.
    n_iterations : int
    converged : bool
        Whether a minimum was reached before ``max_iterations``.
    """

    transform: np.ndarray
    kernel: Kernel
    score: float
    initial_score: float
    n_iterations: int
    converged: bool

    def apply(self, points: Any) -> np.ndarray:
        """Mapped points, shape (m, r)."""
        points = as_real(points, "points")
        if points.shape[1] != self.transform.shape[1]:
            raise ValueError(
                f"points must have {self.transform.shape[1]} columns, got an array of shape {points.shape}"
            )
        return points @ self.transform.T


def learn_metric(
    samples: Any,
    values: Any,
    kernel: Kernel | str = "gaussian",
    *,
    n_components: int | None = None,
    initial: Any = None,
    sample_weight: Any = None,
    max_iterations: int = 200,
) -> LearnedMetric:
    """Learn a linear map of the samples for the local mean, by the gradient of its leave-one-out loss.

    Parameters
    ----------
    samples : array, shape (n, d)
    values : array, shape (n,) or (n, p)
        The squared errors of several outputs are added up.
    kernel : Kernel or str
        Of the mapped points; its bandwidth stays as it is, the map has the scale. Its profile and distance must have a
        derivative. One with a bandwidth for each column needs ``initial`` where r < d.
    n_components : int, optional
        Dimension r of the mapped points, 1 to d; by default the rows of ``initial``, else d.
    initial : array, shape (r, d), optional
        Where to start: a minimum is found near it. By default the columns in units of their standard deviations, times
        the best common factor (of a Gaussian kernel, where the kernel has no one bandwidth). For r < d a map to d
        dimensions is learned first, and the search goes on from its first principal axes.
    sample_weight : array, shape (n,), optional
        Multiplicities. A sample is left out with all its multiplicity.
    max_iterations : int
        Steps of L-BFGS from each start; stopping early is a guard against learning the noise.

    Returns
    -------
    LearnedMetric
        A named tuple.

    Raises
    ------
    TypeError, ValueError
        If an argument is not fit, a sample has no neighbour under the initial map, or the kernel has no derivative.

    Notes
    -----
    An iteration takes one or two passes over all pairs of samples, and memory of O(n). The loss is not convex.

    References
    ----------
    Weinberger & Tesauro (2007).

    Examples
    --------
    >>> import numpy as np
    >>> import locbook as lb
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 3))
    >>> y = np.sin(2 * (x[:, 0] + x[:, 1])) + 0.1 * rng.normal(size=200)  # the third column says nothing
    >>> learned = lb.learn_metric(x, y, n_components=1)
    >>> bool(learned.score < 0.2 * lb.select_bandwidth(x, y).score)
    True
    >>> (learned.transform / learned.transform[0, 0]).round(1)
    array([[ 1.,  1., -0.]])
    >>> mean = lb.local_mean(learned.apply([[0.2, 0.1, 5.0]]), learned.apply(x), y, learned.kernel)
    """
    from scipy.optimize import minimize  # a slow import

    max_iterations = check_integer(max_iterations, "max_iterations")
    kernel = make_kernel(kernel)
    problem = Problem.check(samples, samples, kernel, sample_weight=sample_weight)
    moving = [
        leaf for leaf in kernel.leaves() if isinstance(leaf, (RadialKernel, SoftmaxKernel, VonMisesKernel))
    ]
    if all(getattr(leaf, "profile", None) == "uniform" for leaf in moving):
        raise ValueError(f"kernel {kernel!r} has the derivative 0: nothing can be learned by it")
    flat = problem.values(values)
    flat = flat.reshape(len(flat), -1).astype(np.float64, copy=False)
    x, weights = problem.samples.astype(np.float64), problem.sample_weight
    if weights is not None and not weights.all():  # a multiplicity of 0 is no sample
        x, flat, weights = x[weights > 0], flat[weights > 0], weights[weights > 0]
    size = size_of(flat)
    flat = flat / size
    d = x.shape[1]
    r = d if n_components is None else check_integer(n_components, "n_components", maximum=d)
    unit = np.where(np.ptp(x, axis=0) > 0, x.std(axis=0), 1.0)
    x = (x - x.mean(axis=0)) / unit  # of one size, whatever the units: so one step fits all entries
    if initial is None:
        own = kernel.bandwidth if isinstance(kernel.bandwidth, float) else None
        searched = select_bandwidth(x, flat, gaussian() if own is None else kernel, sample_weight=weights)
        start = np.eye(d) * (1.0 if own is None else own) / searched.bandwidth
    else:
        start = check_array(initial, "initial", (2,), d)
        if n_components is not None and len(start) != r:
            raise ValueError(f"initial must have n_components={r} rows, got {len(start)}")
        start *= unit

    def loss_of(transform: np.ndarray) -> tuple[float, np.ndarray | None]:
        mapped = x @ transform.T
        # a sample beyond all floats is a step too far
        if not np.isfinite(mapped).all():
            return math.inf, None
        own = Problem.check(mapped, mapped, kernel, sample_weight=weights)
        loss, gradient = leave_one_out_loss(own, flat, ("queries", "samples"))
        return loss, None if gradient is None else (gradient.queries + gradient.samples).T @ x

    first, slope = loss_of(start)
    if slope is None:
        raise ValueError("initial: under this map some sample has no neighbour; make it smaller")
    if first > 0 and not slope.any():
        raise ValueError("initial: the loss has the derivative 0 there; start from another map")
    scale = first or 1.0  # the loss in units of itself: the tolerances do not know those of the values

    def descend(start: np.ndarray) -> tuple[np.ndarray, float, Any]:
        """The best map that was met, its loss, and what the search says."""
        best = [start, math.inf]

        def objective(entries: np.ndarray) -> tuple[float, np.ndarray]:
            transform = entries.reshape(start.shape)
            loss, gradient = loss_of(transform)
            if loss < best[1]:
                best[:] = transform.copy(), loss
            if gradient is None:  # a step too far: some sample is alone
                return 1e3, np.zeros(start.size)
            return loss / scale, gradient.ravel() / scale

        options = {"maxiter": max_iterations, "ftol": 1e-10, "gtol": 1e-7}
        found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
        return *best, found

    transform, score, found = descend(start)
    n_iterations = found.nit
    if len(transform) > r:
        axes = np.linalg.svd(x @ transform.T, full_matrices=False)[2][:r]
        transform, score, found = descend(axes @ transform)
        n_iterations += found.nit
    with np.errstate(over="ignore", under="ignore"):
        score, first = (float(np.float64(loss) * size * size) for loss in (score, first))
    return LearnedMetric(transform / unit, kernel, score, first, int(n_iterations), bool(found.success))
