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
    return_log_sum: bool = False,
    prune: str | bool = "auto",
    device: str = "auto",
) -> Any:
    r"""Kernel-weighted mean of ``values`` around each query (Nadaraya-Watson).

    .. math:: \hat y(x^*) = \sum_i K(x^*, x_i)\, y_i \Big/ \sum_i K(x^*, x_i)

    Parameters
    ----------
    queries : array, shape (m, d) or (..., m, d)
        float32, float64 or integers; the columns in the kernel's units. More axes than two are a batch of problems,
        the heads of attention for example: leading axes agree or have length 1.
    samples : array, shape (n, d) or (..., n, d)
    values : array, shape (n,) or (n, p), in a batch (..., n, p)
    kernel : Kernel or str
        A name means that kernel with bandwidth 1.
    sample_weight : array, shape (n,), in a batch (..., n), optional
        Multiplicity of each sample, >= 0; weight 2 equals the row twice. Weight 0 leaves padding out.
    mask : array of bool, shape (m, n), in a batch (..., m, n), optional
        True where a sample takes part. NaN is allowed in samples and values that take part nowhere.
    empty : {"nan", "nearest", "mean", "raise"}
        Answer where every weight is zero (kernels with compact support, masks): NaN with one warning that counts
        them; the mean of the nearest samples (all that tie; measured by the kernel's first distance); the mean of
        all that take part; a ValueError. Without a mask, kernels that are positive everywhere never come to
        this: where the weights of a distance underflow, the limit is taken.
    return_weights : bool
        Also return the normalised weights; not of a batch.
    return_log_sum : bool
        Also return the logarithm of the sum of the weights: with the means it saves :func:`local_mean_vjp` a pass.
    prune : {"auto", True, False}
        Whether to leave out samples that cannot matter; the answer is the same up to rounding. As a cost model decides;
        always where it can, with an error for a kernel that reaches every sample; never. A card takes all samples, and
        so does a batch of problems that are computed together.
    device : {"auto", "cpu", "cuda"}
        Where to compute. ``"auto"`` is where the arrays are: those of CuPy or PyTorch on an NVIDIA card stay there, and
        the answer is of their kind. ``"cuda"`` copies NumPy arrays to the card and the answer back.
        ``"cpu"`` takes no arrays that live on a card: a ValueError.

    Returns
    -------
    array, shape (m,) or (m, p), of a batch (..., m, p)
        float32 if queries, samples and values are float32, else float64. With pandas queries a Series or DataFrame
        with their index.
    weights : array, shape (m, n)
        Only if ``return_weights``; see :func:`local_weights`.
    log_sum : array of float64, shape (m,), of a batch (..., m)
        Only if ``return_log_sum``; ``-inf`` where all weights are 0.

    Raises
    ------
    TypeError, ValueError
        For shapes that do not fit, NaN or infinities, negative weights, unknown names; the message names the
        parameter. ``empty="raise"``: where a query has no neighbour.
    DeviceError
        If there is no card to compute on; it says what to install.

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

    Attention with 8 heads, 100 queries beside 120 keys in each of 4 sentences:

    >>> rng = np.random.default_rng(0)
    >>> q, k, v = (rng.normal(size=(4, 8, length, 16)) for length in (100, 120, 120))
    >>> lb.local_mean(q, k, v, lb.softmax(temperature=4.0)).shape
    (4, 8, 100, 16)
    """
    device = engine.choose_device(device, queries=queries, samples=samples, values=values)
    if engine.is_batch(queries, samples):
        if return_weights:
            raise ValueError("return_weights must be False for a batch")
        here = engine.reductions_of(device)
        batch = here.Batch.check(queries, samples, values, kernel, sample_weight=sample_weight, mask=mask)
        means, log_sums = here.batch_mean(batch, empty, prune=prune)
        means = engine.as_type(means, batch.dtype)
        return (means, log_sums) if return_log_sum else means
    options = {"sample_weight": sample_weight, "mask": mask}
    here, problem, columns = engine.set_up(device, queries, samples, kernel, values, **options)
    means = here.mean(problem, columns, empty, prune=prune, with_log_sum=return_log_sum)
    log_sums = None
    if return_log_sum:
        means, log_sums = means
    means = means[:, 0] if np.ndim(values) == 1 else means
    dtype = np.float32 if problem.dtype == columns.dtype == np.float32 else np.float64
    found = [problem.restore(means, values, dtype)]
    if return_weights:
        weights = here.normalized_weights(problem, empty, warn=False)
        found.append(engine.as_type(weights, problem.dtype))
    if return_log_sum:
        found.append(log_sums)
    return found[0] if len(found) == 1 else tuple(found)


def local_weights(
    queries: Any,
    samples: Any,
    kernel: Kernel | str = "gaussian",
    *,
    sample_weight: Any = None,
    mask: Any = None,
    empty: str = "nan",
    device: str = "auto",
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
    device = engine.choose_device(device, queries=queries, samples=samples)
    here, problem, _ = engine.set_up(device, queries, samples, kernel, sample_weight=sample_weight, mask=mask)
    return engine.as_type(here.normalized_weights(problem, empty), problem.dtype)


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
