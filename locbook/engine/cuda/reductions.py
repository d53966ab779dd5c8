"""The reductions on the card: the functions of :mod:`locbook.engine.reductions`, with the same names and answers.

Each takes a checked :class:`~locbook.engine.problem.Problem`. Arrays of the card stay there, masks and sample weights
among them: :func:`log_sum`, :func:`mean`, :func:`nearest` and the gradient give their answers in the kind of the
queries. To the host come flags, the ends of columns and, of float32 values, up to 999 rows, by which sums are scaled;
and what belongs there, the kernel's parameters and the derivatives by them. Arrays of O(m + n) numbers come

- in float32, to see for each query whether its sums hold;
- where a kernel looks at neighbours, codes, whole times or, if it is hollow, at samples that are not the queries;
- where queries have no neighbour;
- as labels of :func:`classes`, and in :func:`moments` and :func:`quantile`, which are finished there.

On NumPy arrays all answers are NumPy's.

float32 input is computed in float32 by sums, means, classes, :func:`nearest` and :func:`dense_weights`, all else in
float64, and so are far queries and the neighbourhoods of the k nearest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._validation import check_integer, check_option
from ...kernels.base import Kernel
from ...kernels.metrics import Metric, as_metric
from ..problem import Problem
from ..reach import check_prune
from ..reductions import (
    EMPTY,
    Moments,
    Neighbors,
    check_range,
    fill_empty,
    monomials,
)
from . import backend
from .arrays import SCORE, column_ranges, copies, gather, grid, on_host, problems_of, shifted, specials, zeros
from .backend import cuda
from .driver import Run, add, finish, load, parts_of, score_plan, tile_of
from .order import (
    dense_kernel,
    distance_kernel,
    merge_top_kernel,
    quantile_kernel,
    share_kernel,
    sort_kernel,
    top_kernel,
)
from .sums import (
    Terms,
    class_term,
    log_kernel,
    mean_kernel,
    monomial_term,
    value_term,
)

#: Monomials that a thread sums at once: of more, the compiler for some cards keeps the sums on the stack.
AT_ONCE = 4


def _terms(T: type, **given: Any) -> Terms:
    """Terms on the card; what is not given is not read."""
    integers, numbers = np.zeros(1, np.int64), np.zeros((1, 1), T)
    nothing = dict.fromkeys(("values", "queries", "samples"), numbers)
    nothing |= {"labels": integers, "factors": integers[None], "outputs": integers}
    return Terms(**{name: backend.as_device(array) for name, array in (nothing | given).items()})


def lost_rows(answer: Any) -> np.ndarray:
    """Which rows begin with NaN, on the host."""
    if isinstance(answer, np.ndarray):
        return np.isnan(answer[:, 0])
    if not specials(answer)[0]:
        return np.zeros(len(answer), dtype=bool)
    first = gather(answer, np.zeros(1, np.int64), answer.dtype.type)
    return np.isnan(first.copy_to_host()[:, 0])


def _filled(
    problem: Problem, answer: Any, empty: str, again: Callable[[Problem], np.ndarray], *, warn: bool = True
) -> Any:
    """The answer in the queries' kind, rows without a neighbour filled by the policy; they are NaN before."""
    lost = lost_rows(answer)
    if not lost.any():
        return given_back(problem, answer)
    host = backend.give_back(answer, "numpy").astype(np.float64, copy=False)
    return given_back(problem, fill_empty(on_host(problem), lost, empty, again, host, warn=warn))


def given_back(problem: Problem, answer: Any) -> Any:
    """In the kind of the problem: NumPy callers get float64, as from the processor, others the problem's precision."""
    kind = backend.on_card(problem.queries, problem.samples)
    if kind == "numpy":
        return backend.give_back(answer, kind).astype(np.float64, copy=False)
    return backend.give_back(answer.astype(problem.dtype) if isinstance(answer, np.ndarray) else answer, kind)


def _out(problem: Problem, *shape: int) -> Any:
    return cuda.device_array(shape, problem.dtype)


def log_sum(problem: Problem, *, prune: str | bool = "auto", **sizes: int) -> Any:
    """Logarithm of the sum of the weights, shape (m,); ``-inf`` where all are 0. ``prune`` changes nothing."""
    check_prune(prune)
    answer = given_back(problem, log_sums_of(problem, sizes))
    if isinstance(answer, np.ndarray) and problem.kernel.full_support and np.isneginf(answer).any():
        check_range(problem)
    return answer


def log_sums_of(problem: Problem, sizes: dict[str, int]) -> Any:
    """Log-sums (m,) on the card."""
    run = Run(problem, sizes)
    out = _out(problem, len(problem.queries))
    for rows, state, _, T in run.states(None, 0, _terms):
        scale = state.shift, state.sums, T(run.base), T(run.offset)
        log_kernel(T)[grid(rows.size)](rows, *scale, out, run.bad)
    run.check()
    return out


def mean(
    problem: Problem,
    values: Any,
    empty: str = "nan",
    *,
    warn: bool = True,
    prune: str | bool = "auto",
    with_log_sum: bool = False,
    **sizes: int,
) -> Any:
    """Weighted mean of ``values`` (n, p) around each query, shape (m, p); with the log-sums (m,) a pair.

    ``prune`` changes nothing.
    """
    check_option(empty, "empty", EMPTY)
    check_prune(prune)

    def again(few: Problem) -> np.ndarray:
        return backend.give_back(mean_or_nan(few, values, sizes), "numpy").astype(np.float64)

    means = _filled(problem, mean_or_nan(problem, values, sizes), empty, again, warn=warn)
    return (means, log_sum(problem, **sizes)) if with_log_sum else means


def mean_or_nan(problem: Problem, values: Any, sizes: dict[str, int]) -> Any:
    """Means (m, p) on the card; NaN where no sample has a weight."""
    host, wide = backend.kind_of(values) == "numpy", not backend.all_single(values)
    run = Run(problem, sizes, single=host or not wide)
    p = values.shape[1]
    columns = np.arange(p)
    out = _out(problem, len(problem.queries), p)
    source = gather(values, columns, np.float64 if wide else np.float32)
    low, high, unit, middle = scales(problem, source)

    def terms(T: type) -> Terms:
        return _terms(T, values=shifted(source, 1.0 / unit, middle, T))

    for rows, state, first, T in run.states(value_term, p, terms):
        limits = (backend.as_device(a.astype(T)) for a in (middle, low / unit, high / unit, unit))
        finish(mean_kernel(T), rows, state, first, *limits, out, run.bad)
    run.check()
    return out


def scales(problem: Problem, values: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of values (n, p) of the card: their ends, the unit to count them in, and a middle in that; (problems, p) each.

    The middle is 0 for a float64 problem; in float32 values keep their digits around a middle of their own.
    """
    there = copies(problem, SCORE, values.dtype.type)
    low, high = column_ranges(values, there, -np.inf, problems_of(problem))
    unit, middle = _units(low, high, problem.dtype), np.zeros(low.shape)
    if problem.dtype == np.float32:
        middle = (_medians(values, low, high) / unit).astype(np.float32).astype(np.float64)
    return low, high, unit, middle


def _medians(values: Any, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Medians of some rows of each problem, shape (problems, p)."""
    problems, p = low.shape
    n = values.shape[0] // problems
    some = np.arange(0, n, -(-n // max(9, 999 // problems)))
    rows = (n * np.arange(problems)[:, None] + some).ravel()
    found = gather(values, np.arange(p), values.dtype.type, rows=rows).copy_to_host()
    found = found.reshape(problems, len(some), p).astype(np.float64)
    return np.median(np.where(np.isnan(found), 0.5 * low[:, None] + 0.5 * high[:, None], found), axis=1)


def _units(low: np.ndarray, high: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Powers of two that bring each column of values to a size at which no product with a weight is lost."""
    largest = np.where(high >= low, np.maximum(-low, high), 0.0)
    wide = 1e9 if dtype == np.float32 else 1e100
    fine = (largest == 0) | ((1 / wide < largest) & (largest < wide))
    most = 127 if dtype == np.float32 else 1023
    return np.where(fine, 1.0, 2.0 ** np.clip(np.frexp(np.where(fine, 1.0, largest))[1], -most + 1, most))


def classes(problem: Problem, labels: Any, n_classes: int, empty: str = "nan", **sizes: int) -> Any:
    """Share of the weight that each class has around each query, shape (m, c); rows sum to 1."""
    check_option(empty, "empty", EMPTY)
    codes = np.ascontiguousarray(backend.to_host(labels), dtype=np.int64)
    if codes.shape != (len(problem.samples),) or codes.min() < 0 or codes.max() >= n_classes:
        raise ValueError(f"labels must be one code in 0..{n_classes - 1} for each sample")
    codes = backend.as_device(codes)
    ends = np.zeros(n_classes), np.zeros(n_classes), np.ones(n_classes), np.ones(n_classes)

    def shares(problem: Problem) -> Any:
        run = Run(problem, sizes, steps=True)
        out = _out(problem, len(problem.queries), n_classes)
        for rows, state, first, T in run.states(class_term, n_classes, lambda T: _terms(T, labels=codes)):
            limits = (backend.as_device(a.astype(T)[None]) for a in ends)
            finish(mean_kernel(T), rows, state, first, *limits, out, run.bad)
        run.check()
        return out

    def again(few: Problem) -> np.ndarray:
        return shares(few).copy_to_host().astype(np.float64)

    return _filled(problem, shares(problem), empty, again)


def moments(problem: Problem, values: Any, degree: int = 1, **sizes: int) -> Moments:
    """Weighted moments of the monomials of ``x - query`` up to ``degree``, and their products with ``values``.

    Every product of two monomials is a monomial, most of them several times: each is summed once, in float64.
    """
    parents, dimensions = monomials(problem.samples.shape[1], degree)
    f, p = len(parents), values.shape[1]
    factors, outputs, second, first = _products(parents, dimensions, p)
    run = Run(problem, sizes, steps=True, single=False, panel=AT_ONCE)
    everything = np.arange(problem.samples.shape[1])
    given = {
        "queries": gather(problem.queries, everything, np.float64),
        "samples": gather(problem.samples, everything, np.float64),
        "factors": factors,
        "outputs": outputs,
    }
    if p:
        given["values"] = gather(values, np.arange(p), np.float64)
    terms = _terms(np.float64, **given)
    out, columns = zeros(len(problem.queries), len(factors)), backend.as_device(np.arange(len(factors)))
    shift = np.empty(len(problem.queries))
    for rows, state, start, _ in run.states(monomial_term, len(factors), lambda T: terms):
        add(state.sums, start, columns, 1.0, out, run.bad)
        shift[rows.copy_to_host()] = state.shift.copy_to_host()
    run.check()
    sums = out.copy_to_host()
    scale = shift if run.plan.program.log else np.full(len(shift), run.offset)
    found = Moments(sums[:, second].reshape(-1, f, f), sums[:, first].reshape(-1, f, p), scale)
    kind = backend.on_card(problem.queries, problem.samples)
    return Moments(*(backend.give_back(part, kind) for part in found))


def _products(parents: np.ndarray, dimensions: np.ndarray, p: int) -> tuple[np.ndarray, ...]:
    """The different sums that moments are made of, and where each product finds its own.

    Returns
    -------
    factors : array of int64, shape (k, 2 * degree)
        Columns that are multiplied; -1 to fill.
    outputs : array of int64, shape (k,)
        Column of the values; -1 for none.
    second, first : arrays of int64, shapes (f * f,) and (f * p,)
    """
    columns: list[tuple[int, ...]] = [()]
    for parent, dimension in zip(parents[1:], dimensions[1:], strict=True):
        columns.append((*columns[parent], int(dimension)))
    place: dict[tuple, int] = {}

    def number(factors: tuple[int, ...], output: int) -> int:
        return place.setdefault((tuple(sorted(factors)), output), len(place))

    second = np.array([number(a + b, -1) for a in columns for b in columns])
    first = np.array([number(a, c) for a in columns for c in range(p)], dtype=np.int64)
    longest = max(1, max(len(factors) for factors, _ in place))
    factors = np.array([[*key, *[-1] * (longest - len(key))] for key, _ in place], dtype=np.int64)
    return factors, np.array([output for _, output in place], dtype=np.int64), second, first


def quantile(problem: Problem, values: Any, levels: np.ndarray, empty: str = "nan", **sizes: int) -> Any:
    """Weighted quantiles of ``values`` (n, p) around each query, shape (m, p, levels); sorted on the host."""
    check_option(empty, "empty", EMPTY)
    host = backend.to_host(values)
    levels = np.asarray(levels, dtype=np.float64)
    ascending = np.argsort(levels, kind="stable")

    def one(problem: Problem) -> np.ndarray:
        run = Run(problem, sizes, steps=True, single=False)
        loaded = run.loaded(np.float64)
        shift = _sums_once(run, loaded).shift
        m, p = len(problem.queries), host.shape[1]
        answer = np.empty((m, p, len(levels)))
        compiled = quantile_kernel(loaded.weigh, loaded.log, loaded.T)[grid(m)]
        steps = backend.as_device(levels[ascending].astype(loaded.T))
        for c in range(p):
            order = np.argsort(host[:, c], kind="stable")
            found = cuda.device_array((m, len(levels)), np.int64)
            given = loaded.queries, loaded.samples, loaded.data, loaded.bias
            compiled(*given, backend.as_device(order), steps, shift, found, run.bad)
            rows = found.copy_to_host()
            answer[:, c, ascending] = np.where(rows < 0, np.nan, host[rows, c])
        run.check()
        return answer

    answer = one(problem)
    lost = np.isnan(answer).any(axis=(1, 2))
    answer = fill_empty(on_host(problem) if lost.any() else problem, lost, empty, one, answer)
    return given_back(problem, answer)


def _sums_once(run: Run, loaded: Any) -> Any:
    """Sums of the weights of all queries, in the precision of a program."""
    m = len(run.problem.queries)
    rows = backend.as_device(np.arange(m))
    return run._sum(None, _terms(loaded.T), 0, 0, rows, m, loaded.T)


def top(
    problem: Problem,
    columns: np.ndarray,
    metric: Metric,
    k: int,
    masks: tuple = (),
    *,
    hollow: bool = False,
    **sizes: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` nearest of each query, (m, k) each on the host: minus the squared distances and rows; float64."""
    found = _top(problem, columns, metric, k, masks, hollow, np.float64, sizes)
    scores, rows = (np.ascontiguousarray(part.copy_to_host().T) for part in found)
    return scores, rows


def _top(
    problem: Problem,
    columns: np.ndarray,
    metric: Metric,
    k: int,
    masks: tuple,
    hollow: bool,
    T: type,
    sizes: dict[str, int],
) -> tuple[Any, Any]:
    """The ``k`` nearest of each query, (k, m) each on the card; ``-inf`` and -1 to fill."""
    plan = score_plan(problem, columns, metric, masks, hollow)
    run = Run(problem, sizes, plan=plan)
    loaded = load(problem, plan, T, metric)
    m, n = len(problem.queries), len(problem.samples)
    tile = tile_of(loaded, run.sizes)
    compiled = top_kernel(loaded.weigh, loaded.columns, tile, T)
    blocks = grid(m, run.sizes.block)[0]
    parts = next(parts_of(n, blocks, run.sizes))[2]
    some = cuda.device_array((parts, k, m), T), cuda.device_array((parts, k, m), np.int64)
    best = (
        backend.as_device(np.full((1, k, m), -np.inf, dtype=T)),
        backend.as_device(np.full((1, k, m), np.iinfo(np.int64).max)),
    )
    for start, stop, count in parts_of(n, blocks, run.sizes):
        given = loaded.queries, loaded.samples, loaded.data, loaded.bias
        compiled[(blocks, count), run.sizes.block](*given, start, run.sizes.split, stop, *some, run.bad)
        merge_top_kernel(T)[grid(m)](*some, count, *best)
    sort_kernel(T)[grid(m)](*best)
    run.check()
    return tuple(part.reshape(k, m) for part in best)


def nearest(
    problem: Problem,
    n_neighbors: int,
    metric: str | Metric = "euclidean",
    *,
    exclude_self: bool = False,
    **sizes: int,
) -> Neighbors:
    """The ``n_neighbors`` nearest samples of each query, by distance, then by row; float32 input in float32."""
    k = check_integer(n_neighbors, "n_neighbors", maximum=len(problem.samples) - int(exclude_self))
    columns = np.arange(problem.samples.shape[1])
    masks = () if problem.mask is None else (problem.mask,)
    T = problem.dtype.type
    found = _top(problem, columns, as_metric(metric), k, masks, exclude_self, T, sizes)
    kind = backend.on_card(problem.queries, problem.samples)
    m = len(problem.queries)
    distances, rows = cuda.device_array((m, k), T), cuda.device_array((m, k), np.int64)
    distance_kernel(T)[grid(m * k)](*found, distances, rows)
    distances, rows = (backend.give_back(part, kind) for part in (distances, rows))
    if kind == "numpy":
        distances = distances.astype(np.float64)
        if np.isinf(distances).any():
            check_range(problem)
    return Neighbors(distances, rows)


def dense_weights(kernel: Kernel, queries: Any, samples: Any, *, log: bool, **sizes: int) -> np.ndarray:
    """What ``kernel(queries, samples)`` and ``kernel.log(queries, samples)`` give, shape (m, n)."""
    problem = Problem.check(queries, samples, kernel)
    run = Run(problem, sizes, steps=True, log=True if log else None)
    loaded = run.loaded(run.precision)
    shape = len(problem.queries), len(problem.samples)
    out = cuda.device_array(shape, loaded.T)
    compiled = dense_kernel(loaded.weigh, loaded.log, loaded.log and not log, loaded.T)
    compiled[grid(shape[0] * shape[1])](
        loaded.queries, loaded.samples, loaded.data, loaded.bias, out, run.bad
    )
    run.check()
    return out.copy_to_host().astype(problem.dtype, copy=False)


def normalized_weights(problem: Problem, empty: str = "nan", *, warn: bool = True, **sizes: int) -> Any:
    """Weights that sum to 1 in each row, shape (m, n); a row without a neighbour follows ``empty``.

    Under ``"nan"`` such a row is all 0: the one case in which a row does not sum to 1.
    """
    check_option(empty, "empty", EMPTY)

    def normalized(problem: Problem) -> np.ndarray:
        return _shares(problem, sizes, own=False)

    host = on_host(problem)
    answer = normalized(problem)
    answer = fill_empty(host, np.isnan(answer[:, 0]), empty, normalized, answer, warn=warn)
    return given_back(problem, np.nan_to_num(answer, copy=False, nan=0.0))


def self_weights(problem: Problem, **sizes: int) -> Any:
    """Share of its own weight in each sample's neighbourhood; queries are the samples. NaN where it is empty."""
    return given_back(problem, _shares(problem, sizes, own=True)[:, 0])


def _shares(problem: Problem, sizes: dict[str, int], *, own: bool) -> np.ndarray:
    run = Run(problem, sizes, steps=True, single=False)
    loaded = run.loaded(np.float64)
    state = _sums_once(run, loaded)
    m, n = len(problem.queries), 1 if own else len(problem.samples)
    out = cuda.device_array((m, n), loaded.T)
    given = loaded.queries, loaded.samples, loaded.data, loaded.bias, state.shift, state.sums
    share_kernel(loaded.weigh, loaded.log, own, loaded.T)[grid(m * n)](*given, out, run.bad)
    run.check()
    return out.copy_to_host().astype(np.float64)
