r"""The local mean: look at the neighbours, weigh them by a kernel, take the mean.

.. math:: \hat y(x^*) = \frac{\sum_i K(x^*, x_i)\,y_i}{\sum_i K(x^*, x_i)}

Known since 1964 as the Nadaraya-Watson estimator (Nadaraya 1964; Watson 1964), it is the local decision for squared
loss and a constant model. Everything else in the library is built over it or beside it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import engine
from .._validation import as_real, check_integer
from ..engine import Problem
from ..kernels import Kernel


def local_mean(
    queries: Any,
    samples: Any,
    values: Any,
    kernel: Kernel | str = "gaussian",
    *,
    sample_weight: Any = None,
    mask: Any = None,
    empty: str = "nan",
    return_weights: bool = False,
    prune: str | bool = "auto",
) -> Any:
    r"""Kernel-weighted mean of ``values`` around each query (Nadaraya-Watson).

    .. math:: \hat y(x^*) = \sum_i K(x^*, x_i)\, y_i \Big/ \sum_i K(x^*, x_i)

    Parameters
    ----------
    queries : array, shape (m, d)
        float32, float64 or integers; the columns in the kernel's units.
    samples : array, shape (n, d)
    values : array, shape (n,) or (n, p)
    kernel : Kernel or str
        A name means that kernel with bandwidth 1.
    sample_weight : array, shape (n,), optional
        Multiplicity of each sample, >= 0; weight 2 equals the row twice.
    mask : array of bool, shape (m, n), optional
        True where a sample takes part. NaN is allowed in samples and values that take part nowhere.
    empty : {"nan", "nearest", "mean", "raise"}
        Answer where every weight is zero (kernels with compact support, masks): NaN with one warning that counts
        them; the mean of the nearest samples (all that tie; measured by the kernel's first distance); the mean of
        all that take part; a ValueError. Kernels that are positive everywhere never come to this: where their
        weights underflow, the limit is taken.
    return_weights : bool
        Also return the normalised weights.
    prune : {"auto", True, False}
        Whether to leave out samples that cannot matter; the answer is the same up to rounding. As a cost model decides;
        always where it can, with an error for a kernel that reaches every sample; never.

    Returns
    -------
    array, shape (m,) or (m, p)
        float32 if queries, samples and values are float32, else float64. With pandas queries a Series or DataFrame
        with their index.
    weights : array, shape (m, n)
        Only if ``return_weights``; see :func:`local_weights`.

    Raises
    ------
    TypeError, ValueError
        For shapes that do not fit, NaN or infinities, negative weights, unknown names; the message names the
        parameter. ``empty="raise"``: where a query has no neighbour.

    References
    ----------
    Nadaraya (1964), Watson (1964).

    Examples
    --------
    >>> import numpy as np
    >>> import locbook as lb
    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> y = np.array([0.0, 1.0, 4.0])
    >>> lb.local_mean([[1.0]], x, y, lb.uniform(1.0))
    array([1.66666667])
    >>> lb.local_mean([[1000.0]], x, y, lb.gaussian(1.0))  # far away: the nearest sample
    array([4.])
    """
    problem = Problem.check(queries, samples, kernel, sample_weight=sample_weight, mask=mask)
    checked = problem.values(values)
    answer = engine.mean(problem, checked.reshape(len(checked), -1), empty, prune=prune)
    answer = answer[:, 0] if checked.ndim == 1 else answer
    dtype = np.float32 if problem.dtype == checked.dtype == np.float32 else np.float64
    answer = problem.restore(answer, values, dtype)
    if not return_weights:
        return answer
    return answer, engine.normalized_weights(problem, empty, warn=False).astype(problem.dtype, copy=False)


def local_weights(
    queries: Any,
    samples: Any,
    kernel: Kernel | str = "gaussian",
    *,
    sample_weight: Any = None,
    mask: Any = None,
    empty: str = "nan",
) -> np.ndarray:
    r"""The weights of the local mean, :math:`w_i(x^*) = K(x^*, x_i) / \sum_j K(x^*, x_j)`.

    Parameters are those of :func:`local_mean`.

    Returns
    -------
    array, shape (m, n)
        Non-negative; each row sums to 1. A query without a neighbour has a row of zeros under ``empty="nan"`` (with
        a warning), else the weights that the policy gives.

    Raises
    ------
    TypeError, ValueError
        As :func:`local_mean`.

    Examples
    --------
    >>> import locbook as lb
    >>> lb.local_weights([[0.0]], [[0.0], [1.0], [3.0]], lb.triangular(2.0)).round(4)
    array([[0.6667, 0.3333, 0.    ]])
    """
    problem = Problem.check(queries, samples, kernel, sample_weight=sample_weight, mask=mask)
    return engine.normalized_weights(problem, empty).astype(problem.dtype, copy=False)


class Explanation(NamedTuple):
    r"""What made one prediction.

    Attributes
    ----------
    prediction : float or array, shape (p,)
    indices : array of int64, shape (top,)
        Rows of the samples with the largest shares, largest first.
    shares : array, shape (top,)
        Their normalised weights.
    values : array, shape (top,) or (top, p)
        Their values: ``prediction`` is the sum of ``shares * values`` plus what the others add.
    rest : float
        Share of all samples that are not listed.
    effective_neighbors : float
        :math:`1 / \\sum_i w_i^2`: how many equal weights would be as concentrated (1 to n).
    """

    prediction: Any
    indices: np.ndarray
    shares: np.ndarray
    values: np.ndarray
    rest: float
    effective_neighbors: float

    def __str__(self) -> str:
        lines = ["  sample   share  value"]
        for row, share, value in zip(self.indices, self.shares, self.values, strict=True):
            lines.append(
                f"{row:8d}  {share:6.1%}  {np.array2string(np.asarray(value), precision=4, threshold=6)}"
            )
        lines.append(f"  others  {self.rest:6.1%}")
        lines.append(
            f"prediction {np.array2string(np.asarray(self.prediction), precision=4, threshold=6)}, "
            f"{self.effective_neighbors:.1f} effective neighbours"
        )
        return "\n".join(lines)


def explain(
    query: Any,
    samples: Any,
    values: Any,
    kernel: Kernel | str = "gaussian",
    *,
    top: int = 10,
    sample_weight: Any = None,
    empty: str = "nan",
) -> Explanation:
    """The samples that made a prediction, their shares, and how many neighbours it really had.

    Parameters
    ----------
    query : array, shape (d,) or (1, d)
        One query.
    samples, values, kernel, sample_weight, empty
        As in :func:`local_mean`.
    top : int
        How many samples to list at most (those with a positive share).

    Returns
    -------
    Explanation
        A named tuple; ``print`` shows it as a table.

    Raises
    ------
    TypeError, ValueError
        As :func:`local_mean`.

    Examples
    --------
    >>> import locbook as lb
    >>> print(lb.explain([0.0], [[0.0], [1.0], [3.0]], [1.0, 4.0, 9.0], lb.triangular(2.0)))
      sample   share  value
           0   66.7%  1.
           1   33.3%  4.
      others    0.0%
    prediction 2., 1.8 effective neighbours
    """
    point = as_real(query, "query", ndim=(1, 2), allow_nan=getattr(kernel, "allows_nan", False))
    if point.ndim == 2 and len(point) != 1:
        raise ValueError(f"query must be one point, got shape {point.shape}")
    problem = Problem.check(point.reshape(1, -1), samples, kernel, sample_weight=sample_weight)
    checked = problem.values(values)
    top = check_integer(top, "top")
    shares = engine.normalized_weights(problem, empty)[0]
    order = np.argsort(-shares, kind="stable")[:top]
    order = order[shares[order] > 0]
    found = len(order) > 0
    return Explanation(
        shares @ checked if found else np.full(checked.shape[1:], np.nan)[()],
        order,
        shares[order],
        checked[order],
        max(0.0, 1.0 - float(shares[order].sum())) if found else 0.0,
        float(1.0 / (shares**2).sum()) if found else 0.0,
    )
