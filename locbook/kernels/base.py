r"""Localization kernels as values: small immutable expressions that say what a neighbour is.

A localization kernel is any :math:`K(x, x') \ge 0` whose weight falls with the distance; symmetry is optional and
positive definiteness is not asked for. Leaves (a profile of a distance, a dot product, the k nearest, a table, the
past) are joined by ``+``, ``*``, a positive factor, :meth:`Kernel.hollow` and :meth:`Kernel.masked`. A kernel holds
no data and computes nothing by itself: the engine turns it into a compiled program.
"""

from __future__ import annotations

import math
import numbers
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .._validation import as_real, check_integer, check_option, check_positive, check_vector, read_only
from .bandwidth import VaryingBandwidth, as_bandwidth, bandwidth_key, per_query, per_sample, shape_parameter
from .lines import Line, function_of, line_of
from .metrics import Metric, as_metric
from .profiles import Profile, get_profile


class Kernel:
    """A localization kernel; called with a profile, it makes a kernel of the user's own.

    Parameters
    ----------
    profile : callable or str
        The weight ``K >= 0`` as a scalar function of the squared scaled distance ``s = (d(x, x') / h)**2``, plain
        Python that Numba can compile or an ``@njit`` function; or the name of a built-in profile.
    bandwidth : float, array or varying bandwidth
        See :mod:`locbook.kernels.bandwidth`.
    metric : str, Metric or callable
        See :mod:`locbook.kernels.metrics`.
    on : int or sequence of int, optional
        The columns that the kernel looks at; all when None.
    log_profile : callable, optional
        Instead of ``profile``: ``log K`` of ``s``. It is reduced in the log domain, so that far queries keep the
        right limit where ``K`` itself would underflow.

    Notes
    -----
    A plain function that is an exponential of a line in s or in its root, such as ``lambda s: math.exp(-s / 2)``, is
    recognised by its formula and treated as its logarithm: it is as fast, and as good far away, as the Gaussian or
    Laplace kernel that it is.

    Sums and means of any other profile of one's own over a Euclidean distance are computed in the precision of the
    data: a function with an edge, like the one below, may put a sample at its very edge on either side if these are
    float32.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter.

    Examples
    --------
    >>> import numpy as np
    >>> def epanechnikov_squared(s):
    ...     return (1.0 - s) ** 2 if s < 1.0 else 0.0
    >>> k = Kernel(profile=epanechnikov_squared, bandwidth=2.0)
    >>> k(np.array([[0.0]]), np.array([[0.0], [1.0], [3.0]]))
    array([[1.    , 0.5625, 0.    ]])
    """

    _fields: tuple[str, ...] = ()
    __array_ufunc__ = None  # numpy numbers leave ``2 * kernel`` to the kernel, numpy arrays give a TypeError

    def __new__(cls, *args: Any, **kwargs: Any) -> Kernel:
        return super().__new__(RadialKernel if cls is Kernel else cls)

    # -- what a kernel is ------------------------------------------------------------------------------------------

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that this one is made of; empty for a leaf."""
        return ()

    def leaves(self) -> Iterator[Kernel]:
        """All leaves, left to right."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    @property
    def logarithmic(self) -> bool:
        """Whether the weights are reduced in the log domain; one leaf of exponential type is enough."""
        return any(part.logarithmic for part in self.parts)

    @property
    def full_support(self) -> bool:
        """Whether the weight is positive everywhere (it may still underflow as a float)."""
        return all(part.full_support for part in self.parts)

    @property
    def adaptive(self) -> bool:
        """Whether a weight depends on other samples than the pair, as with nearest neighbours and kNN bandwidths."""
        return any(part.adaptive for part in self.parts)

    @property
    def allows_nan(self) -> bool:
        """Whether missing coordinates have a meaning."""
        return bool(self.parts) and all(part.allows_nan for part in self.parts)

    @property
    def bandwidth(self) -> Any:
        """Bandwidth of the one leaf that has one; None if there is none or more than one."""
        found = [leaf for leaf in self.leaves() if isinstance(leaf, RadialKernel)]
        return found[0].bandwidth if len(found) == 1 else None

    def with_bandwidth(self, bandwidth: Any) -> Kernel:
        """The same kernel with another bandwidth in its one leaf that has one.

        Raises
        ------
        ValueError
            If no leaf has a bandwidth, or more than one has.
        """
        count = sum(isinstance(leaf, RadialKernel) for leaf in self.leaves())
        if count != 1:
            raise ValueError(f"kernel {self!r} has {count} bandwidths; exactly one is needed to change it")
        return self._with_bandwidth(bandwidth)

    def _with_bandwidth(self, bandwidth: Any) -> Kernel:
        changed = [part._with_bandwidth(bandwidth) for part in self.parts]
        return self._rebuild(changed) if changed else self

    def _rebuild(self, parts: list[Kernel]) -> Kernel:
        return type(self)(*parts)

    @property
    def parameters(self) -> tuple:
        """What can be learned: one entry for each of :meth:`leaves`.

        Bandwidth, temperature, concentration, matrix or bias. A bandwidth for each query or sample is the array
        of them; None stands for a leaf without a parameter.
        """
        return tuple(leaf._parameter() for leaf in self.leaves())

    def with_parameters(self, parameters: Sequence) -> Kernel:
        """The same kernel with other :attr:`parameters`; None keeps a leaf as it is.

        Raises
        ------
        TypeError, ValueError
            If there is not one entry a leaf, or an entry does not fit its leaf.

        Examples
        --------
        >>> import locbook as lb
        >>> (lb.softmax() * lb.laplace(2.0, on=1) * lb.causal(on=1)).with_parameters([0.5, None, None])
        softmax(0.5) * laplace(2.0, on=[1]) * causal(on=1)
        """
        leaves = list(self.leaves())
        try:
            parameters = list(parameters)
        except TypeError:
            raise TypeError(f"parameters must be a sequence, got {parameters!r}") from None
        if len(parameters) != len(leaves):
            raise ValueError(
                f"parameters must have one entry for each of the {len(leaves)} leaves, got {len(parameters)}"
            )
        return self.with_leaves(
            [
                leaf if value is None else leaf._with_parameter(value)
                for leaf, value in zip(leaves, parameters, strict=True)
            ]
        )

    def with_leaves(self, leaves: Sequence[Kernel]) -> Kernel:
        """The same expression of other :meth:`leaves`, as many."""
        changed = iter(leaves)

        def rebuild(kernel: Kernel) -> Kernel:
            return (
                kernel._rebuild([rebuild(part) for part in kernel.parts]) if kernel.parts else next(changed)
            )

        return rebuild(self)

    def log_normalizer(self, dimension: int) -> float:
        """Logarithm of the constant that makes the kernel a density on R^d, its bandwidth included.

        Raises
        ------
        ValueError
            If the kernel is no density there.
        """
        raise ValueError(f"kernel {self!r} is not a density: it has no normalising constant")

    # -- the algebra -----------------------------------------------------------------------------------------------

    def __add__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, numbers.Real) and not isinstance(other, bool):
            return SumKernel(self, ConstantKernel(other))
        return SumKernel(self, other) if isinstance(other, Kernel) else NotImplemented

    __radd__ = __add__

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, numbers.Real) and not isinstance(other, bool):
            return ScaledKernel(self, other)
        return ProductKernel(self, other) if isinstance(other, Kernel) else NotImplemented

    def __rmul__(self, other: float) -> Kernel:
        return self.__mul__(other)

    def hollow(self) -> Kernel:
        """The kernel with ``K(x_i, x_i) = 0``: each sample is estimated from the others (leave-one-out)."""
        return HollowKernel(self)

    def masked(self, mask: np.ndarray) -> Kernel:
        """The kernel with weight 0 where the boolean ``mask``, shape ``(m, n)``, is False."""
        return MaskedKernel(self, mask)

    # -- dense weights ---------------------------------------------------------------------------------------------

    def __call__(self, queries: np.ndarray, samples: np.ndarray | None = None) -> np.ndarray:
        """Dense weights ``K(x*_i, x_j)``, not normalised.

        Parameters
        ----------
        queries : array, shape (m, d)
        samples : array, shape (n, d), optional
            The queries themselves when None.

        Returns
        -------
        array, shape (m, n)
            float32 if both inputs are, else float64. Weights of exponential type may underflow to 0 here:
            :meth:`log` keeps them.
        """
        from ..engine import (
            dense_weights,
        )  # the one place where a kernel asks the engine, and only when called

        return dense_weights(self, queries, queries if samples is None else samples, log=False)

    def log(self, queries: np.ndarray, samples: np.ndarray | None = None) -> np.ndarray:
        """Logarithms of the dense weights, shape ``(m, n)``; ``-inf`` where a weight is 0."""
        from ..engine import dense_weights

        return dense_weights(self, queries, queries if samples is None else samples, log=True)

    # -- value semantics -------------------------------------------------------------------------------------------

    def _key(self) -> tuple:
        return (type(self).__name__, *(_hashable(getattr(self, name)) for name in self._fields))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __copy__(self) -> Kernel:
        return self  # immutable: a copy is the thing itself, which makes clone() work for lambdas too

    def __deepcopy__(self, memo: dict) -> Kernel:
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a kernel is immutable; build a new one instead of setting {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a kernel is immutable; {name!r} cannot be deleted")

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, read_only(value))

    def __reduce__(self) -> tuple:
        for name in self._fields:
            _refuse_lambda(getattr(self, name))
        return (_restore, (type(self), {name: getattr(self, name) for name in self._fields}))


def _restore(cls: type, fields: dict[str, Any]) -> Kernel:
    kernel = object.__new__(cls)
    kernel._set(**fields)
    return kernel


def _refuse_lambda(value: Any) -> None:
    function = value.parameter if isinstance(value, Metric) else value
    name = getattr(function, "__qualname__", "")
    if callable(function) and not hasattr(function, "py_func") and ("<lambda>" in name or "<locals>" in name):
        raise pickle.PicklingError(
            f"a kernel made with {name!r} cannot be pickled: a lambda or local function has no importable name. "
            "Define the function at the top of a module, or decorate it with numba.njit"
        )


def _hashable(value: Any) -> Any:
    return bandwidth_key(value) if isinstance(value, np.ndarray) else value


def _columns(on: Any) -> tuple[int, ...] | None:
    if on is None:
        return None
    items = list(on) if np.iterable(on) else [on]
    columns = tuple(check_integer(item, "on", minimum=0) for item in items)
    if not columns or len(set(columns)) != len(columns):
        raise ValueError(f"on must name different columns, at least one, got {on!r}")
    return columns


def _one_column(on: Any) -> tuple[int, ...]:
    columns = _columns(0 if on is None else on)
    if len(columns) != 1:
        raise ValueError(f"on must be one column, got {on!r}")
    return columns


def _ruler(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if value.size <= 16 else f"<bandwidth {value.shape}>"
    return repr(value)


class _Leaf(Kernel):
    # what most leaves are; the others say so
    logarithmic = False
    full_support = False
    adaptive = False
    allows_nan = False
    on: tuple[int, ...] | None = None
    #: The field that can be learned.
    _learned: str | None = None

    def _parameter(self) -> Any:
        return None if self._learned is None else getattr(self, self._learned)

    def _with_parameter(self, value: Any) -> Kernel:
        if self._learned is None:
            raise ValueError(f"parameters: kernel {self!r} has none, got {value!r}")
        fields = {name: getattr(self, name) for name in self._fields}
        return type(self)(**{**fields, self._learned: value})

    def columns(self, n_columns: int) -> np.ndarray:
        """The columns looked at, as an array.

        Raises
        ------
        ValueError
            If the data has fewer columns.
        """
        if self.on is None:
            return np.arange(n_columns)
        if max(self.on) >= n_columns:
            raise ValueError(f"on={self.on} is out of range: the data has {n_columns} columns")
        return np.array(self.on)

    def replaced(self, **fields: Any) -> Kernel:
        """The same leaf with other fields, which are not checked again."""
        return _restore(type(self), {**{name: getattr(self, name) for name in self._fields}, **fields})

    def _on(self) -> str:
        return "" if self.on is None else f", on={list(self.on)}"


#: Logarithms of the named profiles that are such lines.
_LINES = {"gaussian": Line(0.0, -0.5, False), "laplace": Line(0.0, -1.0, True)}


class RadialKernel(_Leaf):
    """A profile of a distance; see :class:`Kernel` for the parameters."""

    _fields = ("profile", "log_profile", "parameter", "ruler", "metric", "on")

    def __init__(
        self,
        profile: str | Callable | None = None,
        bandwidth: Any = 1.0,
        *,
        metric: str | Metric | Callable = "euclidean",
        on: Any = None,
        log_profile: Callable | None = None,
        parameter: float | None = None,
    ):
        if (profile is None) == (log_profile is None):
            raise ValueError("give exactly one of profile and log_profile")
        shape = 0.0
        if isinstance(profile, str):
            shape = shape_parameter(profile, parameter)
        elif parameter is not None:
            raise ValueError(
                f"parameter belongs to a built-in profile; a function has its own, got {parameter!r}"
            )
        elif not callable(profile if profile is not None else log_profile):
            word, also = ("log_profile", "") if profile is None else ("profile", ", or a name")
            raise TypeError(f"{word} must be a function of s = (d / h)**2{also}")
        metric, columns, ruler = as_metric(metric), _columns(on), as_bandwidth(bandwidth)
        if isinstance(ruler, np.ndarray):
            if (ruler.ndim == 1 and not metric.scalable) or (ruler.ndim == 2 and metric.name != "euclidean"):
                raise ValueError(
                    f"bandwidth of shape {ruler.shape} has no meaning for metric {metric!r}: give one number"
                )
            if columns is not None and len(ruler) != len(columns):
                raise ValueError(
                    f"bandwidth has {len(ruler)} entries, but on={columns} names {len(columns)} columns"
                )
        self._set(
            profile=profile, log_profile=log_profile, parameter=shape, ruler=ruler, metric=metric, on=columns
        )

    @property
    def named(self) -> Profile | None:
        """The built-in profile, None for a user's own."""
        return get_profile(self.profile) if isinstance(self.profile, str) else None

    @property
    def line(self) -> Line | None:
        """The line in s, or in its root, whose exponential the profile is; None if it is no such profile."""
        if self.named is not None:
            return _LINES.get(self.profile)
        return line_of(self.function_given, self.profile is None)

    @property
    def function_given(self) -> Callable:
        """The user's function."""
        return self.profile if self.profile is not None else self.log_profile

    @property
    def function(self) -> Callable:
        """What is computed of s for a user's profile: a logarithm where the kernel is ``logarithmic``."""
        line = self.line if self.log_profile is None else None
        return self.function_given if line is None else function_of(line)

    @property
    def bandwidth(self) -> float | np.ndarray | VaryingBandwidth:
        return self.ruler

    @property
    def logarithmic(self) -> bool:
        if self.named is not None:
            return self.named.logarithmic
        return self.log_profile is not None or self.line is not None

    @property
    def full_support(self) -> bool:
        return self.named is not None and math.isinf(self.named.support)

    @property
    def adaptive(self) -> bool:
        return isinstance(self.ruler, VaryingBandwidth) and self.ruler.n_neighbors is not None

    @property
    def allows_nan(self) -> bool:
        return self.metric.allows_nan

    def _with_bandwidth(self, bandwidth: Any) -> Kernel:
        return RadialKernel(
            self.profile,
            bandwidth,
            metric=self.metric,
            on=self.on,
            log_profile=self.log_profile,
            parameter=self.parameter if self.named and self.named.parameter else None,
        )

    def _parameter(self) -> Any:
        return self.ruler.values if isinstance(self.ruler, VaryingBandwidth) else self.ruler

    def _with_parameter(self, value: Any) -> Kernel:
        if isinstance(self.ruler, VaryingBandwidth):
            if self.adaptive:
                raise ValueError(f"parameters: the bandwidth of {self!r} follows from the samples")
            value = (per_query if self.ruler.side == "query" else per_sample)(value)
        return self._with_bandwidth(value)

    def log_normalizer(self, dimension: int) -> float:
        if self.named is None:
            raise ValueError(f"kernel {self!r}: the normalising constant of a user's profile is not known")
        dimension = len(self.on) if self.on is not None else dimension
        ruler = self.ruler
        for array in (ruler, self.metric.parameter):
            if isinstance(array, np.ndarray) and array.shape[0] != dimension:
                raise ValueError(f"kernel {self!r} is made for {array.shape[0]} columns, not for {dimension}")
        if self.metric.name == "mahalanobis":
            jacobian = 0.5 * np.linalg.slogdet(self.metric.parameter)[1]
        elif self.metric.name == "euclidean":
            jacobian = 0.0
        else:
            raise ValueError(f"kernel {self!r}: no normalising constant is known for metric {self.metric!r}")
        if isinstance(ruler, VaryingBandwidth):
            raise ValueError(f"kernel {self!r}: a varying bandwidth has no one normalising constant")
        if np.ndim(ruler) == 2:
            volume = np.linalg.slogdet(ruler)[1]
        elif np.ndim(ruler) == 1:
            volume = np.log(ruler).sum()
        else:
            volume = dimension * math.log(ruler)
        return self.named.log_normalizer(dimension, self.parameter) - float(volume) - float(jacobian)

    def __repr__(self) -> str:
        ruler = _ruler(self.ruler)
        extra = "" if self.metric == Metric("euclidean") else f", metric={self.metric!r}"
        extra += self._on()
        if self.named is not None:
            shape = f", {self.named.parameter}={self.parameter!r}" if self.named.parameter else ""
            return f"{self.profile}({ruler}{shape}{extra})"
        word, function = (
            ("profile", self.profile) if self.profile is not None else ("log_profile", self.log_profile)
        )
        return f"Kernel({word}={getattr(function, '__name__', function)}, bandwidth={ruler}{extra})"


class SoftmaxKernel(_Leaf):
    """``exp(<q, k> / temperature)``; built by :func:`locbook.softmax`."""

    _fields = ("temperature", "on")
    _learned = "temperature"
    logarithmic = True
    full_support = True

    def __init__(self, temperature: float = 1.0, *, on: Any = None):
        self._set(temperature=check_positive(temperature, "temperature"), on=_columns(on))

    def __repr__(self) -> str:
        return f"softmax({self.temperature!r}{self._on()})"


class VonMisesKernel(_Leaf):
    """``exp(kappa * sum(cos(a - b)))``; built by :func:`locbook.von_mises`."""

    _fields = ("concentration", "on")
    _learned = "concentration"
    logarithmic = True
    full_support = True

    def __init__(self, concentration: float = 1.0, *, on: Any = None):
        self._set(concentration=check_positive(concentration, "concentration"), on=_columns(on))

    def __repr__(self) -> str:
        return f"von_mises({self.concentration!r}{self._on()})"

    def log_normalizer(self, dimension: int) -> float:
        from scipy.special import i0e

        dimension = len(self.on) if self.on is not None else dimension
        return -dimension * float(
            math.log(2 * math.pi) + np.log(i0e(self.concentration)) + self.concentration
        )


class NeighborKernel(_Leaf):
    """``1[x_i among the k nearest]``; built by :func:`locbook.knn`."""

    _fields = ("n_neighbors", "ties", "metric", "on")
    adaptive = True

    def __init__(
        self,
        n_neighbors: int,
        *,
        ties: str = "index",
        metric: str | Metric | Callable = "euclidean",
        on: Any = None,
    ):
        self._set(
            n_neighbors=check_integer(n_neighbors, "n_neighbors"),
            ties=check_option(ties, "ties", ("index", "include")),
            metric=as_metric(metric),
            on=_columns(on),
        )

    @property
    def allows_nan(self) -> bool:
        return self.metric.allows_nan

    def __repr__(self) -> str:
        extra = "" if self.ties == "index" else f", ties={self.ties!r}"
        extra += "" if self.metric == Metric("euclidean") else f", metric={self.metric!r}"
        return f"knn({self.n_neighbors}{extra}{self._on()})"


class DiscreteKernel(_Leaf):
    """``A[a, b]`` for integer codes a, b; built by :func:`locbook.discrete`."""

    _fields = ("matrix", "on")
    _learned = "matrix"

    def __init__(self, matrix: np.ndarray, *, on: Any = None):
        table = as_real(matrix, "matrix").astype(np.float64)
        if (table < 0).any():
            raise ValueError(f"matrix must be >= 0, got {table.min()}")
        table.flags.writeable = False
        self._set(matrix=table, on=_one_column(on))

    @property
    def full_support(self) -> bool:
        return bool((self.matrix > 0).all())

    def __repr__(self) -> str:
        shown = self.matrix.tolist() if self.matrix.size <= 16 else f"<matrix {self.matrix.shape}>"
        return f"discrete({shown}{self._on() if self.on != (0,) else ''})"


class CausalKernel(_Leaf):
    """``1[s <= t]`` on a time column; built by :func:`locbook.causal`."""

    _fields = ("on",)

    def __init__(self, *, on: Any = None):
        self._set(on=_one_column(on))

    def __repr__(self) -> str:
        return f"causal(on={self.on[0]})"


class RelativeBiasKernel(_Leaf):
    """``exp(bias[t - s - first])`` on a column of whole times; built by :func:`locbook.relative_bias`."""

    _fields = ("bias", "first", "on")
    _learned = "bias"
    logarithmic = True
    full_support = True

    def __init__(self, bias: np.ndarray, *, on: Any = None, first: int = 0):
        self._set(
            bias=check_vector(bias, "bias"),
            first=check_integer(first, "first", minimum=-(2**53), maximum=2**53),
            on=_one_column(on),
        )

    def __repr__(self) -> str:
        shown = self.bias.tolist() if self.bias.size <= 8 else f"<{self.bias.size} offsets>"
        first = f", first={self.first}" if self.first else ""
        return f"relative_bias({shown}, on={self.on[0]}{first})"


class ConstantKernel(_Leaf):
    """The same weight for every sample: the global mean; built by ``kernel + epsilon``."""

    _fields = ("value",)
    full_support = True
    allows_nan = True

    def __init__(self, value: float):
        self._set(value=check_positive(value, "epsilon"))

    def __repr__(self) -> str:
        return repr(self.value)


class SumKernel(Kernel):
    """``K1 + K2``."""

    _fields = ("left", "right")

    def __init__(self, left: Kernel, right: Kernel):
        self._set(left=left, right=right)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.left, self.right)

    @property
    def full_support(self) -> bool:
        return self.left.full_support or self.right.full_support

    def __repr__(self) -> str:
        right = f"({self.right!r})" if isinstance(self.right, SumKernel) else repr(self.right)
        return f"{self.left!r} + {right}"


class ProductKernel(Kernel):
    """``K1 * K2``."""

    _fields = ("left", "right")

    def __init__(self, left: Kernel, right: Kernel):
        self._set(left=left, right=right)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.left, self.right)

    @property
    def logarithmic(self) -> bool:
        """Also where two heavy tails meet: their product may be too small for a float."""
        return super().logarithmic or (self.left.full_support and self.right.full_support)

    def __repr__(self) -> str:
        return " * ".join(_in_product(part, i) for i, part in enumerate(self.parts))


class _Wrapper(Kernel):
    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.kernel,)


class ScaledKernel(_Wrapper):
    """``c * K``, ``c > 0``: the same weights after normalising, another share in a sum."""

    _fields = ("kernel", "factor")

    def __init__(self, kernel: Kernel, factor: float):
        self._set(kernel=kernel, factor=check_positive(factor, "factor"))

    @property
    def logarithmic(self) -> bool:
        """Also where a weight times the factor may leave the floats."""
        return super().logarithmic or not 1e-100 < self.factor < 1e100

    def _rebuild(self, parts: list[Kernel]) -> Kernel:
        return ScaledKernel(parts[0], self.factor)

    def __repr__(self) -> str:
        return f"{self.factor!r} * {_in_product(self.kernel, 1)}"


class HollowKernel(_Wrapper):
    """K with ``K(x_i, x_i) = 0``. It needs the queries to be the samples; adaptive parts choose among the others."""

    _fields = ("kernel",)

    def __init__(self, kernel: Kernel):
        self._set(kernel=kernel)

    def __repr__(self) -> str:
        return f"{_in_product(self.kernel, 1)}.hollow()"


class MaskedKernel(_Wrapper):
    """K with weight 0 where the mask is False; adaptive parts choose among the samples that it lets through."""

    _fields = ("kernel", "mask")

    def __init__(self, kernel: Kernel, mask: np.ndarray):
        mask = np.array(mask)
        if mask.dtype != np.bool_ or mask.ndim != 2:
            raise TypeError(f"mask must be boolean of shape (m, n), got {mask.dtype} of shape {mask.shape}")
        mask.flags.writeable = False
        self._set(kernel=kernel, mask=mask)

    @property
    def full_support(self) -> bool:
        return False

    def _rebuild(self, parts: list[Kernel]) -> Kernel:
        return MaskedKernel(parts[0], self.mask)

    def __repr__(self) -> str:
        return f"{_in_product(self.kernel, 1)}.masked(<mask {self.mask.shape}>)"


def _in_product(kernel: Kernel, position: int) -> str:
    """Brackets where the algebra needs them: around sums, and around products on the right."""
    compound = isinstance(kernel, SumKernel) or (
        position and isinstance(kernel, (ProductKernel, ScaledKernel))
    )
    return f"({kernel!r})" if compound else repr(kernel)
