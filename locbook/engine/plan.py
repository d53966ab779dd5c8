"""From a kernel to a program: lower the expression, resolve what depends on the data.

Each kind of leaf has one function here that appends its step. What needs a look at the samples first (the k nearest,
a kNN bandwidth) asks :func:`locbook.engine.reductions.top`, so that there is one engine, and becomes data of the
query or the sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np

from ..kernels import base
from ..kernels.bandwidth import VaryingBandwidth
from ..kernels.base import Kernel
from ..kernels.metrics import EUCLIDEAN, MATRIX, USER, Metric
from ..kernels.profiles import SCORE
from . import named, user, vectors
from . import program as p
from .neighborhoods import NearestKernel, Restrictions, k_nearest, measured_bandwidth, the_nearest
from .parts import METRIC_PART, address
from .problem import Problem
from .scores import DISTANCE, PRODUCT, SCALED, scores_address


@dataclass
class Plan:
    """A program and the data of the queries and samples that it reads."""

    program: p.Program
    query_data: np.ndarray
    sample_data: np.ndarray
    masks: list[np.ndarray]
    users: bool
    #: By the number of a step with a kNN bandwidth: the row whose distance it is; -1 where it is not a distance.
    measured_to: dict[int, np.ndarray]


@dataclass
class _Builder:
    """Collects steps while the expression is walked."""

    problem: Problem
    log: bool
    #: Kinds of the steps that are compiled for :func:`locbook.engine.program.evaluate`.
    compiled: Sequence[int] = p.STEPS
    steps: list[np.ndarray] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    numbers: list[np.ndarray] = field(default_factory=list)
    query_data: list[np.ndarray] = field(default_factory=list)
    sample_data: list[np.ndarray] = field(default_factory=list)
    masks: list[np.ndarray] = field(default_factory=list)
    size: int = 0
    height: int = 0
    depth: int = 0
    #: Who is kept out at this place of the expression.
    among: Restrictions = field(default_factory=Restrictions)

    def number(self, *values: Any) -> int:
        """Store numbers; returns where they start."""
        start = self.size
        for value in values:
            flat = np.ravel(np.asarray(value, dtype=np.float64))
            self.numbers.append(flat)
            self.size += flat.size
        return start

    #: Whether a part of a sum is walked: what it keeps out another part may let in.
    in_sum: bool = False
    #: Whether a function of the user's takes part.
    users: bool = False
    measured_to: dict[int, np.ndarray] = field(default_factory=dict)

    def step(self, kind: int, columns: np.ndarray | None = None, **fields: int) -> None:
        step = np.zeros(p.STEP_WIDTH, dtype=np.int64)
        step[p.STEP] = kind
        step[p.QUERY_SLOT] = step[p.SAMPLE_SLOT] = -1
        step[p.NECESSARY] = kind in (p.MASK, p.PAST) and not self.in_sum
        if columns is not None:
            step[p.COLUMN_START], step[p.COLUMN_COUNT] = len(self.columns), len(columns)
            self.columns.extend(int(c) for c in columns)
        for name, value in fields.items():
            step[getattr(p, name.upper())] = value
        if kind in self.compiled:
            convert = kind == p.DISTANCE and self.log and not step[p.EXTRA]
            step[p.RUN] = p.step_address(kind, self.log, convert)
        self.steps.append(step)
        self.height += 1 if kind <= p.CONSTANT else -1 if kind in (p.ADD, p.MULTIPLY) else 0
        self.depth = max(self.depth, self.height)

    def build(self) -> Plan:
        m, n = len(self.problem.queries), len(self.problem.samples)
        program = p.Program(
            np.array(self.steps),
            np.array(self.columns, dtype=np.int64),
            np.concatenate([*self.numbers, np.ones(1)]),
            self.log,
            max(1, self.depth),
        )
        return Plan(
            program,
            np.array(self.query_data).reshape(-1, m),
            np.array(self.sample_data).reshape(-1, n),
            self.masks,
            self.users,
            self.measured_to,
        )


def make_plan(problem: Problem, *, log: bool | None = None, compiled: Sequence[int] = p.STEPS) -> Plan:
    """The plan of a problem's kernel; ``log`` forces the domain, ``compiled`` names the kinds of steps that are run.

    ``log`` None takes the kernel's own domain, or that of logarithms where multiplicities are so far apart that
    products with them could leave the floats.
    """
    if log is None:
        log = problem.kernel.logarithmic
        if not log and problem.sample_weight is not None:
            some = problem.sample_weight[problem.sample_weight > 0]
            log = bool(some.max() / 1e100 > some.min())
    builder = _Builder(problem, log, compiled)
    builder.among = Restrictions.of(problem)
    _lower(problem.kernel, builder)
    if problem.mask is not None:
        builder.step(p.MASK, extra=len(builder.masks))
        builder.masks.append(problem.mask)
    return builder.build()


def make_score_plan(
    problem: Problem, columns: np.ndarray, metric: Metric, masks: tuple[np.ndarray, ...], *, hollow: bool
) -> Plan:
    """The plan whose log-weight is minus the squared distance, for finding the nearest under a restriction."""
    builder = _Builder(problem, True)
    score = named.profile_address(SCORE)
    _distance_step(builder, columns, metric, profile=score, shape=0.0, squared=1.0, logarithmic=True)
    if hollow:
        builder.step(p.HOLLOW)
    for mask in masks:
        builder.step(p.MASK, extra=len(builder.masks))
        builder.masks.append(mask)
    return builder.build()


def _distance_step(
    builder: _Builder,
    columns: np.ndarray,
    metric: Metric,
    *,
    profile: int,
    shape: float,
    squared: float,
    logarithmic: bool,
    scale: np.ndarray | None = None,
    matrix: np.ndarray | None = None,
    **fields: int,
) -> None:
    """Append a step; ``profile`` is an address."""
    fields |= _metric_fields(builder, columns, metric, (shape, squared), scale, matrix)
    builder.step(p.DISTANCE, columns, profile_address=profile, extra=int(logarithmic), **fields)


def _metric_fields(
    builder: _Builder,
    columns: np.ndarray,
    metric: Metric,
    numbers: tuple[float, float] = (0.0, 1.0),
    scale: np.ndarray | None = None,
    matrix: np.ndarray | None = None,
) -> dict[str, int]:
    """How a step finds its distances."""
    code = metric.code if matrix is None else MATRIX
    by_four = code == EUCLIDEAN and vectors.ENABLED
    if by_four:
        part = scores_address("float64", DISTANCE if scale is None else SCALED)
    else:
        part = user.metric_address(metric.parameter) if code == USER else named.metric_address(code)
        builder.users |= code == USER
    parameters = metric.parameters(len(columns)) if matrix is None else matrix.ravel()
    start = builder.number(*numbers, np.ones(len(columns)) if scale is None else scale, parameters)
    return {
        "number_start": start,
        "parameter_count": len(parameters),
        "metric_address": part,
        "by_four": int(by_four),
    }


@singledispatch
def _lower(kernel: Kernel, builder: _Builder) -> None:
    raise TypeError(f"kernel {kernel!r} is not known to the engine")


@_lower.register
def _(kernel: base.RadialKernel, builder: _Builder) -> None:
    columns = kernel.columns(builder.problem.queries.shape[1])
    ruler = kernel.ruler
    squared, scale, matrix, fields = 1.0, None, None, {}
    if isinstance(ruler, VaryingBandwidth):
        widths, builder.measured_to[len(builder.steps)] = measured_bandwidth(
            ruler, builder.problem, columns, kernel.metric, builder.among
        )
        widths = widths**2
        target = builder.query_data if ruler.side == "query" else builder.sample_data
        fields["query_slot" if ruler.side == "query" else "sample_slot"] = len(target)
        target.append(widths)
    elif np.ndim(ruler) == 0:
        squared = ruler * ruler
    else:
        if len(ruler) != len(columns):
            raise ValueError(
                f"bandwidth has {len(ruler)} entries, but the kernel looks at {len(columns)} columns"
            )
        if ruler.ndim == 2:
            matrix = np.linalg.inv(ruler)
        elif (ruler == ruler[0]).all():  # one number for all columns: divide once, as a scalar bandwidth does
            squared = float(ruler[0]) ** 2
        else:
            scale = 1.0 / ruler
    if kernel.named is None:
        profile = user.profile_address(kernel.function, log=kernel.logarithmic)
        builder.users = True
    else:
        profile = named.profile_address(kernel.named.code)
    _distance_step(
        builder,
        columns,
        kernel.metric,
        profile=profile,
        shape=kernel.parameter,
        squared=squared,
        logarithmic=kernel.logarithmic,
        scale=scale,
        matrix=matrix,
        **fields,
    )


@_lower.register
def _(kernel: base.SoftmaxKernel, builder: _Builder) -> None:
    columns = kernel.columns(builder.problem.queries.shape[1])
    # after the factor, what a distance has there: unused
    start = builder.number(1.0 / kernel.temperature, 0.0, np.ones(len(columns)))
    part = scores_address("float64", PRODUCT) if vectors.ENABLED else address(p.products, *METRIC_PART)
    builder.step(p.DOT, columns, number_start=start, metric_address=part, by_four=int(vectors.ENABLED))


@_lower.register
def _(kernel: base.VonMisesKernel, builder: _Builder) -> None:
    start = builder.number(kernel.concentration)
    builder.step(p.VON_MISES, kernel.columns(builder.problem.queries.shape[1]), number_start=start)


@_lower.register
def _(kernel: base.NeighborKernel, builder: _Builder) -> None:
    columns = kernel.columns(builder.problem.queries.shape[1])
    where = builder.problem, columns, kernel.metric
    if isinstance(kernel, NearestKernel):
        found = the_nearest(*where, builder.among)
    else:
        found = k_nearest(*where, kernel.n_neighbors, builder.among)
    slot = len(builder.query_data)
    share = np.full_like(found.share, -1.0) if kernel.ties == "include" else found.share
    builder.query_data.extend([found.squared, found.row.astype(np.float64), share])
    builder.step(p.NEIGHBORS, columns, query_slot=slot, **_metric_fields(builder, columns, kernel.metric))


@_lower.register
def _(kernel: base.DiscreteKernel, builder: _Builder) -> None:
    columns = kernel.columns(builder.problem.queries.shape[1])
    for name, size in (("queries", kernel.matrix.shape[0]), ("samples", kernel.matrix.shape[1])):
        codes = getattr(builder.problem, name)[:, columns[0]]
        wrong = (codes != np.floor(codes)) | (codes < 0) | (codes >= size)
        if wrong.any():
            raise ValueError(
                f"{name}: column {columns[0]} must hold codes 0..{size - 1} of the discrete kernel, "
                f"got {codes[np.argmax(wrong)]} in row {int(np.argmax(wrong))}"
            )
    start = builder.number(kernel.matrix)
    builder.step(p.TABLE, columns, number_start=start, extra=kernel.matrix.shape[1])


@_lower.register
def _(kernel: base.RelativeBiasKernel, builder: _Builder) -> None:
    columns = kernel.columns(builder.problem.queries.shape[1])
    for name in ("queries", "samples"):
        times = getattr(builder.problem, name)[:, columns[0]]
        wrong = (times != np.floor(times)) | (np.abs(times) > 2**53)
        if wrong.any():
            raise ValueError(
                f"{name}: column {columns[0]} must hold whole times up to 2**53 for a bias by offset, "
                f"got {times[np.argmax(wrong)]} in row {int(np.argmax(wrong))}"
            )
    start = builder.number(kernel.first, kernel.bias)
    builder.step(p.OFFSETS, columns, number_start=start, extra=len(kernel.bias))


@_lower.register
def _(kernel: base.CausalKernel, builder: _Builder) -> None:
    builder.step(p.PAST, kernel.columns(builder.problem.queries.shape[1]))


@_lower.register
def _(kernel: base.ConstantKernel, builder: _Builder) -> None:
    builder.step(
        p.CONSTANT, number_start=builder.number(np.log(kernel.value) if builder.log else kernel.value)
    )


@_lower.register
def _(kernel: base.SumKernel, builder: _Builder) -> None:
    outer, builder.in_sum = builder.in_sum, True
    for part in kernel.parts:
        _lower(part, builder)
    builder.in_sum = outer
    builder.step(p.ADD)


@_lower.register
def _(kernel: base.ProductKernel, builder: _Builder) -> None:
    for part in kernel.parts:
        _lower(part, builder)
    builder.step(p.MULTIPLY)


@_lower.register
def _(kernel: base.ScaledKernel, builder: _Builder) -> None:
    _lower(kernel.kernel, builder)
    builder.step(
        p.CONSTANT, number_start=builder.number(np.log(kernel.factor) if builder.log else kernel.factor)
    )
    builder.step(p.MULTIPLY)


@_lower.register
def _(kernel: base.HollowKernel, builder: _Builder) -> None:
    _lower_inside(kernel, builder)
    builder.step(p.HOLLOW)


@_lower.register
def _(kernel: base.MaskedKernel, builder: _Builder) -> None:
    mask = _lower_inside(kernel, builder).masks[-1]
    builder.step(p.MASK, extra=len(builder.masks))
    builder.masks.append(mask)


def _lower_inside(kernel: base.HollowKernel | base.MaskedKernel, builder: _Builder) -> Restrictions:
    """Lower what stands in a wrapper; returns who was kept out there."""
    outer = builder.among
    builder.among = inside = outer.inside(builder.problem, kernel)
    _lower(kernel.kernel, builder)
    builder.among = outer
    return inside
