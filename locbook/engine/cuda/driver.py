"""Launches: which kernel, on which grid, over which parts of the samples.

Samples are cut into parts of ``split``; a launch sums as many parts side by side as keep ``blocks`` blocks busy, and
merges them into the state before the next. So memory is O(m + n) and a little, a small number of queries still fills
the card, and the order of the sums depends on the shapes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ...kernels.metrics import Metric
from .. import program as p
from ..fused import LOG2_E
from ..leaf import as_leaf
from ..plan import Plan, make_plan, make_score_plan
from ..problem import Problem
from ..scores import DISTANCE, PRODUCT
from ..stream import FLOAT32_ERROR, fits_float32, float32_error
from . import backend, fused
from .arrays import (
    LOG,
    LOG2,
    PLAIN,
    SCORE,
    copies,
    ends_of,
    for_planning,
    gather,
    grid,
    lengths,
    load_data,
    longest,
    moderate,
    problems_of,
    unit_of,
)
from .backend import cuda
from .order import limit_kernel
from .sums import WIDTH, Part, Span, Terms, add_kernel, merge_kernel, sums_kernel, value_term
from .weigh import Data, Structure, compose, squared_distance, structure_of


class Sizes(NamedTuple):
    """How the work is cut; answers depend on ``tile``, ``split`` and ``each`` to the last bits only.

    Attributes
    ----------
    block : int
        Threads of a block, one query each (or a few).
    tile, split, blocks : int
        Samples of a tile and of a part, and blocks that keep a card busy.
    side, each : int
        Of :func:`locbook.engine.cuda.fused.block_kernel`.
    """

    block: int = 128
    tile: int = 64
    split: int = 4096
    blocks: int = 2048
    side: int = 16
    each: int = 4


#: Bytes of a tile of samples in shared memory, of which a block may have 48 KiB.
SHARED = 24 * 1024


@dataclass
class State:
    """Sums of some queries over all samples: scales (r,), and pairs of sums (2, 1 + w, r), the weights' own first."""

    shift: Any
    sums: Any


@dataclass
class Loaded:
    """A program on the card: the function that weighs, and all that it reads."""

    weigh: Callable
    structure: Structure
    queries: Any
    samples: Any
    columns: int
    data: Data
    bias: Any
    T: type

    @property
    def log(self) -> bool:
        """Whether weights are logarithms."""
        return self.structure.log


def parts_of(n: int, blocks: int, sizes: Sizes) -> Iterator[tuple[int, int, int]]:
    """First sample, last sample and number of the parts of each launch, which has so many blocks of queries."""
    most = max(1, sizes.blocks // max(1, blocks))
    step = sizes.split * min(most, -(-n // sizes.split))
    for start in range(0, n, step):
        stop = min(start + step, n)
        yield start, stop, -(-(stop - start) // sizes.split)


def threads_of(rows: int, problems: int, sizes: Sizes) -> int:
    """Threads of a block: no more whole warps than a problem has queries for."""
    return min(sizes.block, -(-(rows // problems) // 32) * 32)


def accumulate(
    launch: Callable,
    n: int,
    rows: int,
    width: int,
    per_block: int,
    T: type,
    sizes: Sizes,
    *,
    problems: int = 1,
    binary: bool = False,
) -> State:
    """The state after all samples; ``launch(grid, span, part)`` sums some parts.

    ``n`` samples and so many ``rows`` of queries are of all problems together.
    """
    n, blocks_of_rows = n // problems, problems * -(-(rows // problems) // per_block)
    most = next(parts_of(n, blocks_of_rows, sizes))[2]
    part = Part(*(cuda.device_array(s, T) for s in ((most, rows), (most, rows), (most, max(width, 1), rows))))
    old, new = (backend.as_device(np.full(rows, -np.inf, dtype=T)) for _ in range(2))
    sums = cuda.device_array((2, width + 1, rows), T)
    for start, stop, parts in parts_of(n, blocks_of_rows, sizes):
        launch((blocks_of_rows, parts), Span(problems, start, sizes.split, stop), part)
        blocks, threads = grid(rows)
        merge_kernel(binary, T)[(blocks, width + 1), threads](part, parts, old, new, sums)
        old, new = new, old
    return State(old, sums)


def finish(made: Any, rows: Any, state: State, first: int, *given: Any) -> None:
    """Launch a kernel that makes answers of the sums: a thread for each query and each column from ``first`` on."""
    blocks, threads = grid(rows.size)
    made[(blocks, max(1, state.sums.shape[1] - 1)), threads](rows, state.sums, first, *given)


def add(sums: Any, first: int, columns: Any, unit: float, out: Any, bad: Any) -> None:
    """Add the sums (2, 1 + w, r) of a state, times ``unit``, to columns of ``out``, from the ``first`` of these on."""
    blocks, threads = grid(out.shape[0])
    made = add_kernel(sums.dtype.type)
    made[(blocks, sums.shape[1] - 1), threads](sums, first, columns, unit, out, bad)


# -- programs --------------------------------------------------------------------------------------------------------


def load(problem: Problem, plan: Plan, T: type, metric: Metric | None = None) -> Loaded:
    """Bring a plan to the card; ``metric`` is that of a plan for scores."""
    structure, columns = structure_of(plan, None if metric else problem.kernel, metric)
    form = SCORE if metric else LOG if plan.program.log else PLAIN
    loaded = Loaded(
        compose(structure, T),
        structure,
        gather(problem.queries, columns, T, transposed=True),
        gather(problem.samples, columns, T),
        len(columns),
        load_data(problem, plan, T),
        copies(problem, form, T),
        T,
    )
    _measure_limits(loaded, problem)
    return loaded


def _measure_limits(loaded: Loaded, problem: Problem) -> None:
    """The distances of the last neighbours once more, as the card measures them: comparing asks for the same bits."""
    rows = len(problem.queries)
    for step in loaded.structure.steps:
        if step.kind == p.NEIGHBORS:
            measure = limit_kernel(squared_distance(step, loaded.T), step.query_slot, loaded.T)
            measure[grid(rows)](loaded.queries, loaded.samples, loaded.data)


def tile_of(loaded: Loaded, sizes: Sizes) -> int:
    """Samples of a tile in shared memory; 0 where they have too many columns for it."""
    return sizes.tile if sizes.tile * loaded.columns * np.dtype(loaded.T).itemsize <= SHARED else 0


def precision(problem: Problem, plan: Plan) -> type:
    """float32 where the input is float32 and the program's numbers hold in it.

    The k nearest are told apart in float64 always, and so are multiplicities that are far apart.
    """
    kinds = {int(step[p.STEP]) for step in plan.program.steps}
    if problem.dtype != np.float32 or p.NEIGHBORS in kinds:
        return np.float64
    arrays = [plan.program.numbers, plan.query_data, plan.sample_data]
    if problem.sample_weight is not None:
        arrays.append(ends_of(problem))
    return np.float32 if moderate(*arrays) else np.float64


def score_plan(problem: Problem, columns: np.ndarray, metric: Metric, masks: tuple, hollow: bool) -> Plan:
    """The plan whose log-weight is minus the squared distance."""
    return make_score_plan(for_planning(problem, looks=False), columns, metric, masks, hollow=hollow)


class Run:
    """A problem on its way over the card: precision by precision, and what went wrong.

    Far queries, whose exponents float32 does not hold, are summed once more in float64. ``steps`` asks for the program
    even where the kernel is one leaf, ``single=False`` for float64 alone, ``log`` for a domain, ``panel`` for another
    number of columns that a thread of the program sums at once; a ``plan`` that is given is taken.
    """

    def __init__(
        self,
        problem: Problem,
        sizes: dict[str, int],
        *,
        steps: bool = False,
        single: bool = True,
        log: bool | None = None,
        panel: int = WIDTH,
        plan: Plan | None = None,
    ):
        backend.require()
        self.problem, self.sizes, self.single, self.panel = problem, Sizes(**sizes), single, panel
        self.problems = problems_of(problem)
        self.bad = backend.as_device(np.zeros(1, dtype=np.int32))
        self.leaf, self.plan = None, plan
        if plan is None:
            planned = for_planning(problem)
            self.leaf = None if steps else as_leaf(planned)
            self.plan = make_plan(planned, log=log, compiled=()) if self.leaf is None else None
        self.rows = np.arange(len(problem.queries))
        self._loaded: dict[type, Loaded] = {}

    @property
    def precision(self) -> type:
        """In which the program runs first."""
        return precision(self.problem, self.plan) if self.single else np.float64

    def loaded(self, T: type) -> Loaded:
        """The program in a precision, brought to the card when it is first asked for."""
        if T not in self._loaded:
            self._loaded[T] = load(self.problem, self.plan, T)
        return self._loaded[T]

    def check(self) -> None:
        """Refuse what no weight can be.

        Raises
        ------
        ValueError
            As the processor does: a user's function gave no weight, or weights overflow.
        """
        if self.bad.copy_to_host()[0]:
            if self.plan is not None and self.plan.users:
                raise ValueError(
                    f"kernel {self.problem.kernel!r}: a user's function gave values that are negative, NaN or infinite"
                )
            raise ValueError(
                f"kernel {self.problem.kernel!r}: the weights overflow; scale the data or the kernel down"
            )

    def states(self, term: Callable | None, width: int, terms: Callable) -> Iterator[tuple]:
        """Sum up: yields, panel by panel of the columns, the rows, the state, the first column and the precision.

        ``term(T)`` makes the term and ``terms(T)`` what it reads; without a term only weights are summed.
        """
        for T, rows, last in self._passes():
            where = backend.as_device(rows)
            given = terms(T)
            for first in range(0, max(width, 1), self._panel(width)):
                columns = min(self._panel(width), width - first) if width else 0
                state = self._sum(term, given, first, columns, where, len(rows), T)
                if first == 0 and not last:
                    self._far = self._far_rows(state, rows)
                yield where, state, first, T

    def _passes(self) -> Iterator[tuple[type, np.ndarray, bool]]:
        rows = self.rows
        if self.leaf is None:
            good = np.full(len(rows), self.precision is np.float32)
        elif self.problem.dtype == np.float32:
            good = self._leaf_fits()
        else:
            good = np.zeros(len(rows), dtype=bool)
        if self.problems > 1:  # all or none
            good[:] = good.all()
        if good.any():
            self._far = rows[:0]
            yield np.float32, rows[good], False
            some = self.problems == 1 or not self._far.size
            rows = np.sort(np.concatenate([rows[~good], self._far])) if some else rows
        if len(rows):
            yield np.float64, rows, True

    def _leaf_fits(self) -> np.ndarray:
        """For which queries float32 may be tried; long vectors have no exact inner product in it."""
        leaf = self.leaf
        ends = np.ones(1) if self.problem.sample_weight is None else ends_of(self.problem)
        good = fits_float32(self.problem, replace(leaf, kind=DISTANCE), np.log2(ends))
        if leaf.kind == PRODUCT:
            queries, samples, *_ = self._leaf_arrays(np.float32)
            largest = lengths(queries).copy_to_host().astype(np.float64) * longest(samples)
            good &= float32_error(np.abs(leaf.slope) * largest, len(leaf.columns)) <= FLOAT32_ERROR
        return good

    def _far_rows(self, state: State, rows: np.ndarray) -> np.ndarray:
        """The queries whose exponents, or whose weights, are beyond float32."""
        shift = state.shift.copy_to_host().astype(np.float64)
        total = state.sums[0, 0].copy_to_host()
        if self.leaf is None:
            if not self.plan.program.log:
                return rows[:0]
            shift *= LOG2_E
        d = self.problem.samples.shape[1] if self.leaf is None else len(self.leaf.columns)
        with np.errstate(invalid="ignore"):
            near = float32_error(np.abs(shift) + 16.0, d) <= FLOAT32_ERROR
        # minus infinity under a mask is exact: no sample takes part
        nobody = np.isneginf(shift) & (not self.problem.kernel.full_support)
        return rows[~((near & (total > 0) & np.isfinite(total)) | nobody)]

    # -- one panel of columns --

    def _panel(self, width: int) -> int:
        if self.leaf is None:
            return self.panel
        return fused.FEW_VALUES if self._by_thread(width) else fused.MOST_VALUES

    def _by_thread(self, width: int) -> bool:
        return len(self.leaf.columns) <= fused.FEW_COLUMNS and width <= fused.FEW_VALUES

    def _sum(self, term: Any, terms: Any, first: int, width: int, rows: Any, count: int, T: type) -> State:
        if self.leaf is not None:
            return self._sum_leaf(terms, first, width, rows, count, T)
        loaded, sizes, n = self.loaded(T), self.sizes, len(self.problem.samples)
        tile = tile_of(loaded, sizes)
        made = sums_kernel(loaded.weigh, (term or value_term)(T), loaded.log, width, loaded.columns, tile, T)
        threads = threads_of(count, self.problems, sizes)

        def launch(blocks: tuple[int, int], span: Span, part: Part) -> None:
            given = rows, loaded.queries, loaded.samples, loaded.data, loaded.bias, terms
            made[blocks, threads](*given, first, span, part, self.bad)

        return accumulate(launch, n, count, width, threads, T, sizes, problems=self.problems)

    def _sum_leaf(self, terms: Terms, first: int, width: int, rows: Any, count: int, T: type) -> State:
        leaf, sizes, n = self.leaf, self.sizes, len(self.problem.samples)
        d, (queries, samples, *others) = len(leaf.columns), self._leaf_arrays(T)
        if self._by_thread(width):
            each = 1 if T is np.float64 or d > 8 or width > 4 else 2
            tile = -(-sizes.tile // fused.AT_ONCE) * fused.AT_ONCE
            made = fused.thread_kernel(leaf.kind, leaf.root, d, width, each, tile, T)
            threads = threads_of(count, self.problems, sizes)
            per_block = threads * each
        else:
            each = sizes.each if T is np.float32 else max(1, sizes.each // 2)
            padded = -(-width // sizes.side) * sizes.side
            made = fused.block_kernel(leaf.kind, leaf.root, padded, sizes.side, each, T)
            threads, per_block = sizes.side**2, sizes.side * each
        given = fused.Given(rows, queries, samples, terms.values, *others)

        def launch(blocks: tuple[int, int], span: Span, part: Part) -> None:
            made[blocks, threads](given, first, span, part)

        return accumulate(launch, n, count, width, per_block, T, sizes, problems=self.problems, binary=True)

    def _leaf_arrays(self, T: type) -> tuple:
        if T not in self._loaded:
            leaf, problem = self.leaf, self.problem
            samples = gather(problem.samples, leaf.columns, T)
            same = problem.queries is problem.samples
            queries = samples if same else gather(problem.queries, leaf.columns, T)
            numbers = (backend.as_device(a.astype(T)) for a in (leaf.slope, leaf.factors))
            self._loaded[T] = queries, samples, copies(problem, LOG2, T), *numbers
        return self._loaded[T]

    @property
    def base(self) -> float:
        """Natural logarithm of what scales are powers of."""
        return 1.0 if self.leaf is None else 1.0 / LOG2_E

    @property
    def offset(self) -> float:
        """What is added to the logarithm of every sum of weights."""
        if self.leaf is not None:
            return self.leaf.offset
        return 0.0 if self.plan.program.log else float(np.log(unit_of(self.problem)))
