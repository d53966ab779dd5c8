r"""The local mean as a linear smoother, :math:`\hat y = S y`.

Row i of the smoother matrix :math:`S` holds the weights at :math:`x_i`. Its trace counts the degrees of freedom that
the fit spends; its diagonal is all that leave-one-out needs, as long as no weight between two other samples changes
when one is left out:

.. math:: y_i - \hat y_{-i} = \frac{y_i - \hat y_i}{1 - S_{ii}}.

Sources: Buja, Hastie & Tibshirani (1989); Hastie, Tibshirani & Friedman (2009), sections 5.4 and 7.10.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import engine
from .._validation import check_option
from ..engine import Problem
from ..kernels import Kernel
from .local_mean import local_weights

#: A sample that holds more than this share of its own neighbourhood is left to the hollow kernel: 1 - S_ii cancels.
_LARGEST_SHARE = 0.999


def smoother_matrix(
    samples: Any, kernel: Kernel | str = "gaussian", *, sample_weight: Any = None, empty: str = "nan"
) -> np.ndarray:
    """The matrix ``S`` with fitted values ``S @ y``, shape (n, n): the weights of the samples at the samples.

    Parameters and errors are those of :func:`local_weights`.

    Examples
    --------
    >>> import locbook as lb
    >>> lb.smoother_matrix([[0.0], [1.0], [3.0]], lb.uniform(1.0))
    array([[0.5, 0.5, 0. ],
           [0.5, 0.5, 0. ],
           [0. , 0. , 1. ]])
    """
    return local_weights(samples, samples, kernel, sample_weight=sample_weight, empty=empty)


def degrees_of_freedom(
    samples: Any, kernel: Kernel | str = "gaussian", *, sample_weight: Any = None
) -> float:
    r"""Degrees of freedom that the local mean spends, :math:`\mathrm{tr}\,S`, without the matrix.

    1 for one global mean, n for a fit that repeats every sample.

    Parameters and errors are those of :func:`local_weights`.

    Examples
    --------
    >>> import locbook as lb
    >>> round(lb.degrees_of_freedom([[0.0], [1.0], [3.0]], lb.uniform(1.0)), 6)
    2.0
    """
    problem = Problem.check(samples, samples, kernel, sample_weight=sample_weight)
    return float(np.nansum(engine.self_weights(problem)))


def leave_one_out(
    samples: Any,
    values: Any,
    kernel: Kernel | str = "gaussian",
    *,
    method: str = "hollow",
    sample_weight: Any = None,
    empty: str = "nan",
) -> Any:
    r"""What the local mean predicts at each sample from the others.

    Parameters
    ----------
    samples : array, shape (n, d)
    values : array, shape (n,) or (n, p)
    kernel : Kernel or str
    method : {"hollow", "shortcut"}
        ``"hollow"``: the local mean with :math:`K(x_i, x_i) = 0`, for every kernel (neighbours are chosen among the
        others; bandwidths that belong to the samples stay as they are). ``"shortcut"``: from the fit and the
        diagonal of the smoother, :math:`\hat y_{-i} = (\hat y_i - S_{ii} y_i) / (1 - S_{ii})`. Samples that hold more
        than 0.999 of their own neighbourhood, where that is 0/0 or close to it, are left to the hollow kernel.
    sample_weight : array, shape (n,), optional
        A sample is left out with all its multiplicity.
    empty : {"nan", "nearest", "mean", "raise"}
        Answer for a sample with no other in its neighbourhood; see :func:`local_mean`.

    Returns
    -------
    array, shape (n,) or (n, p)

    Raises
    ------
    ValueError
        ``method="shortcut"`` with an adaptive kernel (kNN, kNN bandwidths): leaving one out changes the others'
        weights, and the identity does not hold.

    Examples
    --------
    >>> import locbook as lb
    >>> lb.leave_one_out([[0.0], [1.0], [2.0]], [0.0, 3.0, 6.0], lb.uniform(1.0))
    array([3., 3., 3.])
    """
    check_option(method, "method", ("hollow", "shortcut"))
    check_option(empty, "empty", engine.EMPTY)
    problem = Problem.check(samples, samples, kernel, sample_weight=sample_weight)
    checked = problem.values(values)
    flat = checked.reshape(len(checked), -1)
    hollow = problem.with_kernel(problem.kernel.hollow())
    if method == "hollow":
        answer = engine.mean(hollow, flat, empty)
    else:
        if problem.kernel.adaptive:
            raise ValueError(
                f"method='shortcut' does not hold for {problem.kernel!r}: its neighbours change when one sample is "
                "left out; use method='hollow'"
            )
        own = engine.self_weights(problem)
        with np.errstate(invalid="ignore", divide="ignore"):
            fitted = engine.mean(problem, flat, "nan", warn=False)
            answer = (fitted - own[:, None] * flat) / (1.0 - own)[:, None]
        alone = np.flatnonzero(~(own <= _LARGEST_SHARE))
        if len(alone):
            answer[alone] = engine.mean(hollow.rows(alone, hollow.kernel), flat, empty)
    dtype = np.float32 if problem.dtype == checked.dtype == np.float32 else np.float64
    return problem.restore(answer[:, 0] if checked.ndim == 1 else answer, values, dtype)
