r"""The kernels by name: each constructor takes its ruler first.

``gaussian(0.5)``, ``softmax(temperature)``, ``knn(10)``, ``von_mises(concentration)``. The registry
:data:`KERNELS` holds them all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .._validation import check_positive
from .base import (
    CausalKernel,
    DiscreteKernel,
    Kernel,
    NeighborKernel,
    RadialKernel,
    RelativeBiasKernel,
    SoftmaxKernel,
    VonMisesKernel,
)
from .metrics import Metric
from .profiles import PROFILES

_COMMON = """

    Parameters
    ----------
    bandwidth : float, array of shape (d,) or (d, d), or varying bandwidth
        :math:`h > 0` in the units of the distance, :math:`u = d(x, x')/h`; see :mod:`locbook.kernels.bandwidth`.
    metric : str, Metric or callable
        The distance :math:`d`; see :mod:`locbook.kernels.metrics`.
    on : int or sequence of int, optional
        The columns looked at; all when None.

    Returns
    -------
    Kernel
"""


def _documented(function: Callable) -> Callable:
    """Append the parameters that all kernels of a distance share."""
    function.__doc__ += _COMMON
    return function


def _of_distance(profile: str, summary: str) -> Callable[..., Kernel]:
    """The constructor of a kernel that is a profile of one distance and has no shape parameter."""

    def constructor(
        bandwidth: Any = 1.0, *, metric: str | Metric | Callable = "euclidean", on: Any = None
    ) -> Kernel:
        return RadialKernel(profile, bandwidth, metric=metric, on=on)

    constructor.__name__ = constructor.__qualname__ = profile
    constructor.__doc__ = summary
    return _documented(constructor)


uniform = _of_distance(
    "uniform",
    r"Uniform (neighbour) kernel, :math:`K = 1[u \le 1]`: the samples within the radius, all alike.",
)
triangular = _of_distance("triangular", r"Triangular kernel, :math:`K = (1 - u)_+`.")
epanechnikov = _of_distance(
    "epanechnikov", r"Epanechnikov kernel, :math:`K = (1 - u^2)_+` (Epanechnikov 1969)."
)
biweight = _of_distance("biweight", r"Biweight (quartic) kernel, :math:`K = (1 - u^2)_+^2`.")
triweight = _of_distance("triweight", r"Triweight kernel, :math:`K = (1 - u^2)_+^3`.")
tricube = _of_distance(
    "tricube", r"Tricube kernel, :math:`K = (1 - u^3)_+^3`, the weight of lowess (Cleveland 1979)."
)
cosine = _of_distance(
    "cosine",
    r"""Cosine kernel, :math:`K = \cos(\pi u/2)\,1[u \le 1]`.

    The cosine *distance* is ``metric="cosine"``.""",
)
gaussian = _of_distance(
    "gaussian", r"Gaussian kernel, :math:`K = e^{-u^2/2}`: the bandwidth is a standard deviation."
)
laplace = _of_distance(
    "laplace",
    r"""Laplace kernel, :math:`K = e^{-u}`.

    On a time column with :func:`causal` it is ALiBi (Press et al. 2022) with slope :math:`1/h`.""",
)
cauchy = _of_distance(
    "cauchy", r"Cauchy kernel, :math:`K = (1 + u^2)^{-1}`: heavy tails; a far query gets the global mean."
)


@_documented
def student_t(
    bandwidth: Any = 1.0, *, nu: float = 3.0, metric: str | Metric | Callable = "euclidean", on: Any = None
) -> Kernel:
    r"""Student-t kernel, :math:`K = (1 + u^2/\nu)^{-(\nu+1)/2}`, ``nu > 0``; ``nu = 1`` is the Cauchy kernel."""
    return RadialKernel("student_t", bandwidth, metric=metric, on=on, parameter=check_positive(nu, "nu"))


@_documented
def rational_quadratic(
    bandwidth: Any = 1.0, *, alpha: float = 1.0, metric: str | Metric | Callable = "euclidean", on: Any = None
) -> Kernel:
    r"""Rational quadratic kernel, :math:`K = (1 + u^2/(2\alpha))^{-\alpha}`, ``alpha > 0``."""
    return RadialKernel(
        "rational_quadratic", bandwidth, metric=metric, on=on, parameter=check_positive(alpha, "alpha")
    )


def softmax(temperature: float = 1.0, *, on: Any = None) -> Kernel:
    r"""Softmax (dot-product) kernel, :math:`K(q, k) = e^{\langle q, k\rangle/\tau}`; no distance kernel.

    Among keys of one length it weighs as a Gaussian with :math:`h^2 = \tau`. Attention with scale
    :math:`1/\sqrt{d}` is ``softmax(sqrt(d))``.

    Parameters
    ----------
    temperature : float
        :math:`\tau > 0`.
    on : int or sequence of int, optional
        The columns looked at; all when None.
    """
    return SoftmaxKernel(temperature, on=on)


def von_mises(concentration: float = 1.0, *, on: Any = None) -> Kernel:
    r"""Von Mises kernel on angles, :math:`K = \prod_c e^{\kappa\cos(\theta_c-\theta'_c)}`; period :math:`2\pi`.

    Parameters
    ----------
    concentration : float
        :math:`\kappa > 0`; about one over the squared bandwidth, in radians.
    on : int or sequence of int, optional
        The columns looked at, in radians; all when None.
    """
    return VonMisesKernel(concentration, on=on)


def knn(
    n_neighbors: int, *, ties: str = "index", metric: str | Metric | Callable = "euclidean", on: Any = None
) -> Kernel:
    r"""The k-nearest-neighbour kernel, :math:`K = 1[x_i \in N_k(x^*)]`: asymmetric and adaptive.

    Parameters
    ----------
    n_neighbors : int
        k, between 1 and n. With ``sample_weight`` neighbours are counted with multiplicity.
    ties : {"index", "include"}
        Samples at the distance of the k-th: the first by row index make up k, or all of them take part.
    metric : str, Metric or callable
    on : int or sequence of int, optional
    """
    return NeighborKernel(n_neighbors, ties=ties, metric=metric, on=on)


def discrete(matrix: np.ndarray, *, on: int | None = None) -> Kernel:
    r"""A kernel on a finite set, :math:`K(a, b) = A_{ab} \ge 0`, for integer codes in one column.

    Parameters
    ----------
    matrix : array, shape (a, b)
        Row: code of the query; column: code of the sample. Need not be square or symmetric.
    on : int, optional
        The column that holds the codes; the first when None.
    """
    return DiscreteKernel(matrix, on=on)


def causal(*, on: int | None = None) -> Kernel:
    r"""The causal kernel, :math:`K(t, s) = 1[s \le t]`: only the past and the present take part.

    Parameters
    ----------
    on : int, optional
        The time column; the first when None.
    """
    return CausalKernel(on=on)


def window(width: float, *, on: int | None = None) -> Kernel:
    r"""The window kernel, :math:`K(t, s) = 1[\lvert t - s\rvert \le w]`: a uniform kernel on the time column.

    Parameters
    ----------
    width : float
        :math:`w > 0`, in units of time.
    on : int, optional
        The time column; the first when None.
    """
    return RadialKernel("uniform", check_positive(width, "width"), on=0 if on is None else on)


def relative_bias(bias: np.ndarray, *, on: int | None = None, first: int = 0) -> Kernel:
    r"""A learned bias for each offset in time, :math:`K(t, s) = e^{b_{t - s}}`; a factor for attention.

    In the logarithm, where attention adds up its scores, it is an additive bias as in T5 (Raffel et al. 2020), which
    simplifies the relative positions of Shaw et al. (2018); T5 lets ranges of offsets share an entry, here each offset
    has its own. :func:`locbook.local_mean_vjp` gives the derivative by the entries. The offset is the query's time
    minus the sample's, so the past lies at positive offsets; what lies beyond the table gets its first or last entry.

    Parameters
    ----------
    bias : array, shape (k,)
        Finite; ``bias[o - first]`` is the log-weight at offset o.
    on : int, optional
        The time column, whole numbers; the first when None.
    first : int
        The offset of the first entry.

    Raises
    ------
    TypeError, ValueError
        For a bias that is no finite vector; when it is used, for times that are not whole.

    Examples
    --------
    >>> import numpy as np
    >>> import locbook as lb
    >>> time = np.arange(4)[:, None]
    >>> lb.relative_bias(np.log([1.0, 0.5, 0.25]))(time[2:3], time)
    array([[0.25, 0.5 , 1.  , 1.  ]])
    """
    return RelativeBiasKernel(bias, on=on, first=first)


#: Registry: name of a kernel -> its constructor.
KERNELS: dict[str, Callable[..., Kernel]] = {
    function.__name__: function
    for function in (
        uniform, triangular, epanechnikov, biweight, triweight, tricube, cosine, gaussian, laplace, cauchy,
        student_t, rational_quadratic, softmax, von_mises, knn, discrete, causal, window, relative_bias,
    )
}  # fmt: skip


def get_kernel(name: str) -> Callable[..., Kernel]:
    """The constructor of that name.

    Raises
    ------
    ValueError
        If there is none; the message lists the names.
    """
    if not isinstance(name, str) or name not in KERNELS:
        raise ValueError(f"kernel must be a Kernel or one of {', '.join(KERNELS)}, got {name!r}")
    return KERNELS[name]


def make_kernel(kernel: str | Kernel, bandwidth: Any = None, metric: Any = None, **options: Any) -> Kernel:
    """The kernel that an estimator's parameters describe.

    Parameters
    ----------
    kernel : str or Kernel
        With a Kernel, all else must be None.
    bandwidth, metric : optional
        None for the constructor's own.
    **options
        ``n_neighbors``, ``ties``, ``temperature``, ``concentration``, ``on``, and ``shape``, which stands for ``nu``
        or ``alpha``, whichever the kernel has; those that are None are left out.

    Raises
    ------
    ValueError
        If a parameter is given that the kernel does not take.

    Examples
    --------
    >>> make_kernel("student_t", bandwidth=0.5, shape=4)
    student_t(0.5, nu=4.0)
    """
    given = {"bandwidth": bandwidth, "metric": metric, **options}
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(kernel, Kernel):
        if given:
            raise ValueError(f"{', '.join(given)} must be None when kernel is a Kernel: it has its own")
        return kernel
    constructor = get_kernel(kernel)
    if "shape" in given and kernel in PROFILES and PROFILES[kernel].parameter:
        given[PROFILES[kernel].parameter] = given.pop("shape")
    allowed = inspect.signature(constructor).parameters
    for name in given:
        if name not in allowed:
            raise ValueError(f"{name} is no parameter of kernel {kernel!r}; it takes {', '.join(allowed)}")
    missing = [n for n, p in allowed.items() if p.default is p.empty and n not in given]
    if missing:
        raise ValueError(f"kernel {kernel!r} needs {', '.join(missing)}")
    return constructor(**given)
