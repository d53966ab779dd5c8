r"""The gradient of the local mean: a layer to learn with.

Let a loss :math:`L` depend on the means :math:`y_i`, with :math:`c_i = \partial L/\partial y_i`. With the shares
:math:`P_{ij}` of the samples in a mean and the kernel :math:`K`,

.. math::
    \frac{\partial L}{\partial v_j} = \sum_i P_{ij}\, c_i, \qquad
    \frac{\partial L}{\partial \theta} = \sum_{ij} P_{ij}\; c_i^\top (v_j - y_i)\,
    \frac{\partial \log K(x^*_i, x_j)}{\partial \theta}

where :math:`\theta` is a coordinate of a query or a sample, or a parameter of the kernel. For the softmax kernel it is
the backward pass of attention.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import engine
from .._validation import as_real, check_option
from ..engine import LocalMeanGradient
from ..engine.gradients import ARGUMENTS
from ..kernels import Kernel


def local_mean_vjp(
    cotangent: Any,
    queries: Any,
    samples: Any,
    values: Any,
    kernel: Kernel | str = "gaussian",
    *,
    sample_weight: Any = None,
    mask: Any = None,
    wrt: tuple[str, ...] = ARGUMENTS,
    forward: tuple[Any, Any] | None = None,
    device: str = "auto",
) -> LocalMeanGradient:
    r"""Vector-Jacobian product of :func:`local_mean`: the chain rule for a loss of the means.

    .. math:: \sum_i c_i^\top\, \frac{\partial \hat y(x^*_i)}{\partial \theta}

    Weights are recomputed and forgotten, as in :func:`local_mean`: memory is O(m + n), and an answer is the same to the
    bit for any number of threads.

    Parameters
    ----------
    cotangent : array, shape (m,) or (m, p), of a batch (..., m, p)
        Derivative of the loss by the means, of their shape. What stands there for a query without a neighbour (its mean
        is NaN) counts for nothing, and may be NaN; so do answers that ``empty`` of :func:`local_mean` filled in.
    queries, samples, values, kernel, sample_weight, mask
        As in :func:`local_mean`.
    wrt : tuple of str
        Which fields of the answer are asked for; all by default, the others are None. Without the coordinates it is
        faster.
    forward : (means, log_sum), optional
        What :func:`local_mean` gave for the same arguments with ``return_log_sum=True``; it is computed otherwise.
        float32 means that are large beside their differences cost digits.
    device : {"auto", "cpu", "cuda"}
        Where to compute, as in :func:`local_mean`. Arrays on a card stay there, ``cotangent``, ``mask`` and ``forward``
        too, and the derivatives are made there, but for those by the kernel's parameters, which are NumPy's.

    Returns
    -------
    LocalMeanGradient
        Named tuple of ``queries`` (m, d), ``samples`` (n, d), ``values`` (as the values), ``sample_weight`` (n,) and
        ``kernel``, a tuple with one entry for each of ``kernel.leaves()``: the derivative by its parameter (see
        :attr:`locbook.Kernel.parameters`), a number or an array of the parameter's shape, None where it has none.
        float32 if queries, samples and values are float32, else float64. If queries and samples are one array, its
        derivative is the sum of both. In a batch each field has the shape of its argument: what several problems
        share, a leading axis of length 1 or a kernel, has the sum over them.

    Raises
    ------
    TypeError, ValueError
        As :func:`local_mean`; for a cotangent of another shape; where queries or samples are asked for and a metric has
        no derivative (``"hamming"``, a function of the user's).

    Notes
    -----
    Who is among the k nearest is held fixed, also by sample weights; the distance that makes a kNN bandwidth is
    followed. At the edge of a compact kernel the derivative is that of its outside, where two points coincide it is
    0. A profile of the user's is differentiated by a central difference in u, off by about 2e-11 of the profile and
    6e-12 of its third derivative.

    References
    ----------
    Nadaraya (1964), Watson (1964); Weinberger & Tesauro (2007) for learning by it.

    Examples
    --------
    A training loop of one's own: the bandwidth by gradient descent on the leave-one-out loss.

    >>> import numpy as np
    >>> import locbook as lb
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.3 * np.random.default_rng(0).normal(size=60)
    >>> bandwidth = 1.0
    >>> for _ in range(50):
    ...     kernel = lb.gaussian(bandwidth).hollow()
    ...     residuals = lb.local_mean(x, x, y, kernel) - y
    ...     gradient = lb.local_mean_vjp(2 * residuals / len(y), x, x, y, kernel, wrt=("kernel",))
    ...     bandwidth *= np.exp(-10.0 * bandwidth * gradient.kernel[0])  # a step of the logarithm
    >>> bool(abs(bandwidth / lb.select_bandwidth(x, y).bandwidth - 1) < 0.001)
    True
    """
    if isinstance(wrt, str) or not np.iterable(wrt):
        raise TypeError(f"wrt must be a tuple of names, got {wrt!r}")
    wrt = tuple(wrt)
    for name in wrt:
        check_option(name, "wrt", ARGUMENTS)
    if forward is not None and (not isinstance(forward, tuple) or len(forward) != 2):
        raise TypeError(
            "forward must be the pair (means, log_sum) that local_mean gives with return_log_sum=True"
        )
    given = {"queries": queries, "samples": samples, "values": values, "cotangent": cotangent}
    given |= {f"forward[{k}]": part for k, part in enumerate(forward or ())}
    device = engine.choose_device(device, **given)
    options = {"sample_weight": sample_weight, "mask": mask}
    if engine.is_batch(queries, samples):
        here = engine.reductions_of(device)
        batch = here.Batch.check(queries, samples, values, kernel, **options)
        shape = (*batch.queries.shape[:-1], batch.values.shape[-1])
        slope, known = _of_shape(cotangent, "cotangent", shape), _forward(forward, shape)
        return _cast(here.batch_vjp(batch, slope, wrt, known), batch.dtype)
    here, problem, columns = engine.set_up(device, queries, samples, kernel, values, **options)
    m, p = len(problem.queries), columns.shape[1]
    shape = (m, *np.shape(values)[1:])
    slope, known = _of_shape(cotangent, "cotangent", shape).reshape(m, p), _forward(forward, shape)
    if known is not None:
        known = known[0].reshape(m, p), known[1]
    found = here.mean_vjp(problem, columns, slope, wrt, known)
    if found.values is not None:
        found = found._replace(values=found.values.reshape(np.shape(values)))
    if not isinstance(columns, np.ndarray):  # of a card, in its precision already
        return found
    return _cast(found, np.float32 if problem.dtype == columns.dtype == np.float32 else np.float64)


def _of_shape(array: Any, name: str, shape: tuple[int, ...]) -> Any:
    """The array, where it is, checked to be of this shape; NaN is allowed."""
    on_card = engine.lives_on_card(array)
    checked = array if on_card else as_real(array, name, ndim=(len(shape),), allow_nan=True)
    if tuple(checked.shape) != shape:
        raise ValueError(f"{name} must have the shape of the means, {shape}, got {tuple(checked.shape)}")
    return engine.reductions_of("cuda").check_numbers(array, name, allow_nan=True) if on_card else checked


def _forward(forward: tuple[Any, Any] | None, shape: tuple[int, ...]) -> tuple[Any, Any] | None:
    """Checked (means, log_sums), where they are, for means of this shape; of the host as float64."""
    if forward is None:
        return None
    means, log_sums = _of_shape(forward[0], "forward[0]", shape), forward[1]
    on_card = engine.lives_on_card(log_sums)
    found = engine.reductions_of("cuda").as_device(log_sums) if on_card else np.asarray(log_sums)
    rows = shape[: max(1, len(shape) - 1)]
    if found.dtype not in (np.float32, np.float64) or tuple(found.shape) != rows:
        raise ValueError(
            f"forward[1] must hold one log-sum for each query, shape {rows}, got {found.dtype} of shape "
            f"{tuple(found.shape)}"
        )
    if on_card:
        engine.reductions_of("cuda").check_numbers(log_sums, "forward[1]", allow_minus_infinity=True)
    elif not (found < np.inf).all():
        raise ValueError("forward[1] must not contain NaN or infinity")
    return engine.as_type(means, np.float64), log_sums if on_card else found.astype(np.float64)


def _cast(found: LocalMeanGradient, dtype: Any) -> LocalMeanGradient:
    with np.errstate(over="ignore"):
        *arrays, leaves = found
        leaves = leaves and tuple(engine.as_type(leaf, dtype) for leaf in leaves)
        return LocalMeanGradient(*(engine.as_type(array, dtype) for array in arrays), leaves)
