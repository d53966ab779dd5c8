"""Batches on the card: many problems of one shape, end to end in one grid.

What :mod:`locbook.engine.batch` is for the processor, and the same rules: a block of threads has queries of one problem
and meets the samples of that problem, so a launch is for all of them (:class:`locbook.engine.cuda.sums.Span`). No
problem is filled up. Kernels that look at neighbours or at rows by number, and problems with a query without a
neighbour, are taken one by one.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._validation import check_option
from .. import batch as on_processor
from ..batch import of_coordinates
from ..gradients import ARGUMENTS, LocalMeanGradient
from ..problem import Groups, Problem
from ..reach import check_prune
from ..reductions import EMPTY, EmptyNeighborhoodWarning
from . import backend
from .arrays import folded, gather
from .border import check_copies, check_numbers, check_problem
from .gradients import Owed, add_vjp, given_back_gradient
from .reductions import given_back, log_sum, lost_rows, mean, mean_or_nan


@dataclass(frozen=True)
class Batch(on_processor.Batch):
    """Checked input.

    What the processor's has, all shapes checked there: its arrays are the caller's, but for arrays of a card they hold
    the numbers of rows. ``sample_weight`` has shape (b n,) and ``mask`` (b m, n), where the caller has them.

    Attributes
    ----------
    flat : tuple of arrays, shapes (b m, d), (b n, d) and (b n, p)
        Queries, samples and values end to end, of NumPy or of the card; a copy where a leading axis was stretched.
    """

    flat: tuple[Any, Any, Any]

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
        others = {"sample_weight": sample_weight, "mask": mask}
        kind = backend.on_card(*given.values())
        if kind == "numpy":
            others = {name: a if a is None else backend.to_host(a) for name, a in others.items()}
            checked = on_processor.Batch.check(**given, kernel=kernel, **others)
            flat = [a.reshape(-1, a.shape[-1]) for a in (checked.queries, checked.samples, checked.values)]
            weight, mask = checked.sample_weight, checked.mask
        else:
            there = {name: a for name, a in others.items() if backend.kind_of(a) != "numpy"}
            seen = {
                name: np.broadcast_to(np.ones((), _dtype(a)), tuple(a.shape)) for name, a in there.items()
            }
            given = {k: np.asarray(a) if backend.kind_of(a) == "numpy" else a for k, a in given.items()}
            numbers = {name: _numbers(tuple(a.shape)) for name, a in given.items()}
            checked = on_processor.Batch.check(**numbers, kernel=kernel, **(others | seen))
            flat = []
            for name, array in given.items():
                array = check_numbers(array, name, allow_nan=mask is not None and name != "queries")
                flat.append(_stretched(array, getattr(checked, name).shape, kind))
            weight, mask = (
                _stretched(there[name], getattr(checked, name).shape, "numba")
                if name in there
                else getattr(checked, name)
                for name in others
            )
            if "sample_weight" in there:
                weight = check_copies(weight.reshape(weight.size), math.prod(checked.lead))
        if weight is not None:
            weight = weight.reshape(checked.sample_weight.size)
        if mask is not None:
            mask = mask.reshape(math.prod(checked.mask.shape[:-1]), checked.mask.shape[-1])
        return cls(**(vars(checked) | {"sample_weight": weight, "mask": mask}), flat=tuple(flat))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Problems, and queries and samples of each."""
        (*lead, m, _), n = self.queries.shape, self.samples.shape[-2]
        return math.prod(lead), m, n

    @property
    def kind(self) -> str:
        """Of the answers."""
        return backend.on_card(*self.flat)

    @property
    def dtype(self) -> np.dtype:
        """Of the means."""
        return np.dtype(np.float32 if backend.all_single(*self.flat) else np.float64)

    def problem(self, k: int) -> tuple[Problem, Any]:
        """One of the problems, and its values."""
        (_, m, n), (queries, samples, values) = self.sizes, self.flat
        of_queries, of_samples = (slice(k * size, (k + 1) * size) for size in (m, n))
        weight = self.sample_weight
        check = Problem.check if self.kind == "numpy" else check_problem
        problem = check(
            queries[of_queries],
            samples[of_samples],
            self.kernel,
            sample_weight=None if weight is None else weight[of_samples],
            mask=None if self.mask is None else self.mask[of_queries],
        )
        return problem, values[of_samples]

    def end_to_end(self) -> Problem:
        """All of them as one problem."""
        (b, m, n), (queries, samples, _), weight = self.sizes, self.flat, self.sample_weight
        return Problem(
            queries,
            samples,
            self.kernel,
            weight,
            self.mask,
            np.arange(b * m),
            np.dtype(np.float32 if backend.all_single(queries, samples) else np.float64),
            groups=Groups(self.lead, m, n, m, n, m),
        )

    def give_back(self, array: Any) -> Any:
        """What was computed for all queries end to end, shape (b m, ...), as (*lead, m, ...) in the caller's kind."""
        shape = *self.queries.shape[:-1], *tuple(array.shape)[1:]
        return given_back(self.end_to_end(), array).reshape(shape)


def _numbers(shape: tuple[int, ...]) -> np.ndarray:
    """The number of each row, in all columns; no memory for the columns."""
    rows = shape[:-1]
    return np.broadcast_to(np.arange(math.prod(rows)).reshape(*rows, 1), shape)


def _dtype(array: Any) -> np.dtype:
    return backend.as_device(array).dtype


def _stretched(array: Any, full: tuple[int, ...], kind: str) -> Any:
    """An array of the card as rows: those of the shape ``full``, to which it is stretched; in that kind if copied."""
    shape = (1,) * (len(full) - len(array.shape)) + tuple(array.shape)
    count = math.prod(shape[:-1])
    rows = np.broadcast_to(np.arange(count).reshape(shape[:-1]), full[:-1]).ravel()
    array = array.reshape(count, shape[-1])
    if len(rows) == count and shape[-1] == full[-1]:
        return array
    columns = np.arange(full[-1]) % shape[-1]
    return backend.give_back(gather(array, columns, _dtype(array).type, rows=rows), kind)


def batch_mean(
    batch: Batch, empty: str = "nan", *, prune: str | bool = "auto", warn: bool = True, **sizes: int
) -> tuple[Any, Any]:
    """Weighted means (*lead, m, p) and logarithms of the sums of the weights (*lead, m); ``prune`` changes nothing."""
    check_option(empty, "empty", EMPTY)
    check_prune(prune)
    b, m, _ = batch.sizes
    if of_coordinates(batch.kernel):
        problem = batch.end_to_end()
        means, log_sums = mean_or_nan(problem, batch.flat[2], sizes), log_sum(problem, **sizes)
        lost = lost_rows(means)
        left = np.unique(np.flatnonzero(lost) // m)
        if left.size:
            means = backend.give_back(means, "numpy").astype(np.float64)
    else:
        means, log_sums = np.empty((b * m, batch.values.shape[-1])), np.empty(b * m)
        lost, left = np.zeros(0, dtype=bool), np.arange(b)
    for k in left:
        (problem, values), rows = batch.problem(k), slice(k * m, (k + 1) * m)
        means[rows] = backend.to_host(mean(problem, values, empty, warn=False, **sizes))
        if not of_coordinates(batch.kernel):
            log_sums[rows] = backend.to_host(log_sum(problem, **sizes))
    if left.size:
        lost = np.isnan(means[:, 0])
    if warn and lost.any():
        first = np.unravel_index(np.argmax(lost), batch.queries.shape[:-1])
        warnings.warn(
            f"{lost.sum()} of {lost.size} queries have no sample with a positive weight "
            f"(first: {tuple(map(int, first))}); their answer is NaN (empty={empty!r})",
            EmptyNeighborhoodWarning,
            stacklevel=3,
        )
    return batch.give_back(means), batch.give_back(log_sums)


def batch_vjp(
    batch: Batch,
    cotangent: Any,
    wrt: tuple[str, ...] = ARGUMENTS,
    forward: tuple[Any, Any] | None = None,
    **sizes: int,
) -> LocalMeanGradient:
    """The vector-Jacobian product; see :func:`locbook.engine.batch.batch_vjp`."""
    (b, m, n), values, whole = batch.sizes, batch.flat[2], batch.end_to_end()
    slope = backend.as_device(cotangent.reshape(b * m, values.shape[1]))
    if forward is not None:
        means, log_sums = forward
        forward = tuple(
            map(backend.as_device, (means.reshape(b * m, values.shape[1]), log_sums.reshape(b * m)))
        )
    owed, kernel = Owed.nothing(whole, values.shape[1], wrt), None
    if of_coordinates(batch.kernel):
        kernel = add_vjp(owed, whole, values, slope, wrt, forward, sizes, together=True)
    if kernel is None:
        parts = []
        for k in range(b):
            rows, columns = (slice(k * size, (k + 1) * size) for size in (m, n))
            known = None if forward is None else tuple(part[rows] for part in forward)
            mine = zip(owed, (rows, columns, columns, columns), strict=True)
            mine = Owed(*(a if a is None else a[some] for a, some in mine))
            parts.append(add_vjp(mine, *batch.problem(k), slope[rows], wrt, known, sizes))
        kernel = tuple(
            None if some[0] is None else sum(some[1:], some[0]) for some in zip(*parts, strict=True)
        )
    shapes = tuple(batch.shapes.values())
    rows = zip(owed, (m, n, n, n), (*(shape[:-1] for shape in shapes[:3]), shapes[3]), strict=True)
    owed = Owed(*(a if a is None else _unstretched(a, (*batch.lead, size), shape) for a, size, shape in rows))
    return given_back_gradient(owed, shapes, kernel, whole, values, wrt)


def _unstretched(array: Any, full: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Sums over the axes that were stretched: an array of the card of so many rows, as one with those of ``shape``."""
    rows = np.broadcast_to(np.arange(math.prod(shape)).reshape(shape), full).ravel()
    return folded(array, np.argsort(rows, kind="stable").reshape(math.prod(shape), -1))
