r"""Batches: many problems of one shape, ``(..., m, d)`` queries beside ``(..., n, d)`` samples, under one kernel.

The problems are laid end to end, each filled up to whole panels of samples and whole blocks of queries, and a block
visits the panels of its own problem only: for the engine it is one problem in which most tiles are out of reach, and
its compiled loops run through all of them. Attention with several heads is such a batch, ``(batch, heads, length, d)``.

What looks at neighbours or rows by number (``knn``, kNN bandwidths, hollow kernels, masks and bandwidths that are part
of the kernel) means one problem: there the problems are taken one by one.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import as_real, check_option, result_dtype
from ..kernels import base
from ..kernels.bandwidth import VaryingBandwidth
from ..kernels.base import Kernel
from ..kernels.constructors import make_kernel
from .fused_backward import UNIT
from .fused_sweep import BLOCK
from .gradients import ARGUMENTS, LocalMeanGradient, mean_vjp
from .panels import PANEL
from .problem import Groups, Problem
from .reach import check_prune, refuse_far
from .reductions import EMPTY, EmptyNeighborhoodWarning, mean, mean_and_log_sum

#: Pairs beyond which the gradient of each problem is cut into tasks of its own.
LARGE = 1 << 22
#: Kernels that look at coordinates only.
_OF_COORDINATES = (
    base.RadialKernel, base.SoftmaxKernel, base.VonMisesKernel, base.DiscreteKernel, base.CausalKernel,
    base.RelativeBiasKernel, base.ConstantKernel, base.SumKernel, base.ProductKernel, base.ScaledKernel,
)  # fmt: skip


def is_batch(queries: Any, samples: Any) -> bool:
    """Whether one of these has more than two axes; what is no array is left to the checks."""
    try:
        return np.ndim(queries) > 2 or np.ndim(samples) > 2
    except ValueError:
        return False


def of_coordinates(kernel: Kernel) -> bool:
    """Whether a weight depends on the coordinates of its query and its sample alone."""
    if not isinstance(kernel, _OF_COORDINATES) or isinstance(
        getattr(kernel, "bandwidth", None), VaryingBandwidth
    ):
        return False
    return all(of_coordinates(part) for part in kernel.parts)


@dataclass(frozen=True)
class Batch:
    """Checked input.

    Attributes
    ----------
    lead : tuple of int
        Leading axes.
    queries, samples, values : arrays, shapes (*lead, m, d), (*lead, n, d) and (*lead, n, p)
        Views of what the caller gave, stretched over axes of length 1.
    kernel : Kernel
    sample_weight : array of float64, shape (*lead, n), or None
    mask : array of bool, shape (*lead, m, n), or None
    shapes : dict
        Of queries, samples, values and sample_weight, as the caller gave them.
    """

    lead: tuple[int, ...]
    queries: np.ndarray
    samples: np.ndarray
    values: np.ndarray
    kernel: Kernel
    sample_weight: np.ndarray | None
    mask: np.ndarray | None
    shapes: dict[str, tuple[int, ...]]

    @classmethod
    def check(
        cls,
        queries: Any,
        samples: Any,
        values: Any,
        kernel: Any,
        *,
        sample_weight: Any = None,
        mask: Any = None,
    ) -> Batch:
        """Check what a caller gave.

        Raises
        ------
        TypeError, ValueError
            Naming the parameter.
        """
        given = {"queries": queries, "samples": samples, "values": values}
        checked = {
            name: as_real(a, name, ndim=tuple(range(33)), allow_nan=mask is not None and name != "queries")
            for name, a in given.items()
        }
        for name, a in checked.items():
            if a.ndim < 2:
                shapes = f"queries {np.shape(queries)} and samples {np.shape(samples)}"
                raise ValueError(
                    f"{shapes} are a batch: {name} must be (..., rows, columns), got shape {a.shape}"
                )
        try:
            lead = np.broadcast_shapes(*(a.shape[:-2] for a in checked.values()))
        except ValueError:
            shapes = ", ".join(f"{name} {a.shape}" for name, a in checked.items())
            raise ValueError(f"leading axes must agree or have length 1: got {shapes}") from None
        queries, samples, values = (np.broadcast_to(a, (*lead, *a.shape[-2:])) for a in checked.values())
        (m, d), n = queries.shape[-2:], samples.shape[-2]
        if samples.shape[-1] != d:
            raise ValueError(
                f"queries have {d} columns, but samples have {samples.shape[-1]}; they must agree"
            )
        if values.shape[-2] != n:
            raise ValueError(f"values has {values.shape[-2]} rows, but samples have {n}; they must agree")
        if isinstance(kernel, str):
            kernel = make_kernel(kernel)
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a Kernel or a name, got {type(kernel).__name__}")
        if sample_weight is not None:
            weight = as_real(sample_weight, "sample_weight", ndim=tuple(range(33))).astype(np.float64)
            sample_weight = _stretch(weight, (*lead, n), "sample_weight")
            if (weight < 0).any():
                raise ValueError(f"sample_weight must be >= 0, got {weight.min()}")
            if not sample_weight.any(axis=-1).all():
                raise ValueError("sample_weight must not be zero for all samples of a problem")
        if mask is not None:
            mask = np.asarray(mask)
            if mask.dtype != np.bool_:
                raise TypeError(f"mask must be boolean (True takes part), got dtype {mask.dtype}")
            mask = _stretch(mask, (*lead, m, n), "mask")
            samples, values = (
                _without_hidden_nan(a, mask, k) for a, k in ((samples, "samples"), (values, "values"))
            )
        shapes = {name: a.shape for name, a in checked.items()}
        shapes["sample_weight"] = (*lead, n) if sample_weight is None else weight.shape
        return cls(lead, queries, samples, values, kernel, sample_weight, mask, shapes)

    def problem(self, index: tuple[int, ...]) -> Problem:
        """One of the problems."""
        return Problem.check(
            self.queries[index],
            self.samples[index],
            self.kernel,
            sample_weight=None if self.sample_weight is None else self.sample_weight[index],
            mask=None if self.mask is None else self.mask[index],
        )

    @property
    def dtype(self) -> np.dtype:
        """Of the answers."""
        return result_dtype(self.queries, self.samples, self.values)

    def end_to_end(self) -> tuple[Problem, np.ndarray]:
        """All of them as one problem, and its values."""
        m, n = self.queries.shape[-2], self.samples.shape[-2]
        # as few blocks as BLOCK allows, as small as they can be: multiples of what the kernels take at once (UNIT)
        blocks = -(-m // BLOCK)
        block = -(-m // (blocks * UNIT)) * UNIT
        groups = Groups(self.lead, m, n, blocks * block, -(-n // PANEL) * PANEL, block)
        weight = self.sample_weight
        if weight is not None or groups.samples > n:
            weight = np.zeros((*self.lead, groups.samples))
            weight[..., :n] = 1.0 if self.sample_weight is None else self.sample_weight
            weight = weight.ravel()
        queries, samples = _fill(self.queries, groups.queries), _fill(self.samples, groups.samples)
        problem = Problem(
            queries,
            samples,
            self.kernel,
            weight,
            self.mask,
            np.arange(len(queries)),
            result_dtype(queries, samples),
            groups=groups,
        )
        return problem, _fill(self.values, groups.samples)

    def taken_apart(self, rows: np.ndarray, count: int) -> np.ndarray:
        """What was computed for all end to end, shape (rows, ...), as (*lead, count, ...)."""
        rest = rows.shape[1:]
        return rows.reshape(math.prod(self.lead), -1, *rest)[:, :count].reshape(*self.lead, count, *rest)


def _stretch(array: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"{name} must have shape {shape}, or 1 in place of some axes, got {array.shape}"
        ) from None


def _without_hidden_nan(array: np.ndarray, mask: np.ndarray, name: str) -> np.ndarray:
    """The array with 0 for rows with NaN, which no query may see."""
    broken = np.isnan(array).any(axis=-1) if array.dtype.kind == "f" else np.zeros(1, dtype=bool)
    if not broken.any():
        return array
    if (broken & mask.any(axis=-2)).any():
        raise ValueError(f"{name} contains NaN in a row that the mask lets take part")
    return np.where(broken[..., None], array.dtype.type(0), array)


def _fill(array: np.ndarray, size: int) -> np.ndarray:
    """Rows of all problems end to end, each filled up to ``size`` with its last row; no copy where none is needed."""
    *lead, rows, columns = array.shape
    if rows < size:
        filled = np.empty((*lead, size, columns), array.dtype)
        filled[..., :rows, :], filled[..., rows:, :] = array, array[..., -1:, :]
        array = filled
    return array.reshape(-1, columns)


def batch_mean(
    batch: Batch, empty: str = "nan", *, prune: str | bool = "auto", warn: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means (*lead, m, p) and logarithms of the sums of the weights (*lead, m), float64."""
    check_option(empty, "empty", EMPTY)
    prune = check_prune(prune)
    refuse_far(batch.kernel, prune)
    lead, m, p = batch.lead, batch.queries.shape[-2], batch.values.shape[-1]
    if of_coordinates(batch.kernel):
        means, log_sums = (
            batch.taken_apart(a, m) for a in mean_and_log_sum(*batch.end_to_end(), prune=False)
        )
        left = [index for index in np.ndindex(lead) if np.isnan(means[index][:, 0]).any()]
    else:
        means, log_sums = np.empty((*lead, m, p)), np.empty((*lead, m))
        left = list(np.ndindex(lead))
    for index in left:
        problem = batch.problem(index)
        found = mean(problem, batch.values[index], empty, warn=False, prune=prune, with_log_sum=True)
        means[index], log_sums[index] = found
    lost = np.isnan(means[..., 0])
    if warn and lost.any():
        warnings.warn(
            f"{lost.sum()} of {lost.size} queries have no sample with a positive weight "
            f"(first: {tuple(int(k) for k in np.argwhere(lost)[0])}); their answer is NaN (empty={empty!r})",
            EmptyNeighborhoodWarning,
            stacklevel=3,
        )
    return means, log_sums


def batch_vjp(
    batch: Batch,
    cotangent: np.ndarray,
    wrt: tuple[str, ...] = ARGUMENTS,
    forward: tuple[np.ndarray, np.ndarray] | None = None,
) -> LocalMeanGradient:
    """The vector-Jacobian product, each field in the shape of what the caller gave; the kernel's is a sum over all.

    Parameters
    ----------
    batch : Batch
    cotangent : array, shape (*lead, m, p)
    wrt : tuple of str
    forward : (means, log_sums), optional
        What :func:`batch_mean` gave.
    """
    means, log_sums = batch_mean(batch, warn=False) if forward is None else forward
    found = _vjp_end_to_end(batch, cotangent, wrt, means, log_sums)
    if found is None:
        each = [
            mean_vjp(batch.problem(i), batch.values[i], cotangent[i], wrt, (means[i], log_sums[i]))
            for i in np.ndindex(batch.lead)
        ]
        arrays = [
            None if parts[0] is None else np.stack(parts).reshape(*batch.lead, *parts[0].shape)
            for parts in list(zip(*each, strict=True))[:4]
        ]
        kernel = each[0].kernel and tuple(
            None if parts[0] is None else sum(parts[1:], parts[0])
            for parts in zip(*(one.kernel for one in each), strict=True)
        )
        found = LocalMeanGradient(*arrays, kernel)
    *arrays, kernel = found
    shapes = batch.shapes.values()
    return LocalMeanGradient(
        *(None if a is None else unstretch(a, shape) for a, shape in zip(arrays, shapes, strict=True)),
        kernel,
    )


def _vjp_end_to_end(
    batch: Batch, cotangent: np.ndarray, wrt: tuple[str, ...], means: np.ndarray, log_sums: np.ndarray
) -> LocalMeanGradient | None:
    """All problems at once, in the shapes of the batch; None where they must be taken one by one."""
    (m, p), n = cotangent.shape[-2:], batch.samples.shape[-2]
    # a large problem has tasks enough of its own; means that are limits, and cotangents with NaN, want a closer look
    if not of_coordinates(batch.kernel) or m * n > LARGE:
        return None
    if np.isneginf(log_sums).any() or np.isnan(cotangent).any():
        return None
    problem, values = batch.end_to_end()
    size = problem.groups.queries
    slope = np.zeros((*batch.lead, size, p), cotangent.dtype)  # of no weight where queries are filled up
    slope[..., :m, :] = cotangent
    forward = _fill(means, size), _fill(log_sums[..., None], size)[:, 0]
    *arrays, kernel = mean_vjp(problem, values, slope.reshape(-1, p), wrt, forward)
    return LocalMeanGradient(
        *(
            None if a is None else batch.taken_apart(a, count)
            for a, count in zip(arrays, (m, n, n, n), strict=True)
        ),
        kernel,
    )


def unstretch(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sums over the axes that were stretched."""
    array = array.sum(axis=tuple(range(array.ndim - len(shape))))
    stretched = tuple(k for k, size in enumerate(shape) if size == 1 and array.shape[k] != 1)
    return array.sum(axis=stretched, keepdims=True)
