"""Compile every kernel that the reductions launch for three generations of cards, without a card.

``python -m tests.cuda.compile_all`` prints a line of JSON for each kernel and generation: its name and precision, how
many registers a thread has, the bytes of its stack and of spills, and how many instructions of the PTX work on float64.
``... 0 2`` does the first half of the kernels, ``... 1 2`` the second.

The reductions run on small problems with everything that would ask for a card replaced: arrays stay NumPy's, and a
launch notes the function and the types of its arguments. So what is compiled is what is launched.
"""

import gc
import json
import math
import re
import sys
import warnings
from types import SimpleNamespace

import numpy as np
from cuda.bindings import nvjitlink
from numba import njit
from numba.cuda import compiler, dispatcher, types
from numba.cuda.typing.typeof import typeof

import locbook as lb
from locbook.engine import Problem, cuda
from locbook.engine.cuda import backend, ready
from locbook.engine.cuda.arrays import LOG, copies, folded, gather, shifted
from locbook.engine.cuda.border import check_array
from tests.engine.problems import MATRIX, TABLE, bump, canberra, log_quartic

GENERATIONS = ((8, 0), (9, 0), (10, 0))

HALF = 0.5


@njit
def decay(s):
    return np.exp(-HALF * s)


def lively(s):
    """A user's profile with what users write: NumPy's names, whole numbers, a global, a jitted function."""
    return decay(s) / (1 + s) ** 2 if s < 4 else 0


def broken(x, out):
    """What the checks must find: numbers on the stack, and float64 beside float32."""
    i = backend.cuda.grid(1)
    some = backend.cuda.local.array(8, types.float32)
    for k in range(8):
        some[k] = x[i + k]
    out[i] = some[int(x[i])] * 1.5 + math.cos(x[i])


class HostArray(np.ndarray):
    """An array that passes for one of the card."""

    def copy_to_host(self):
        return np.array(self)

    def is_c_contiguous(self):
        return self.flags.c_contiguous


HostArray.__module__ = "numba.cuda"  # by which the border knows its own


class Recorder:
    """A kernel that notes its launches instead of running."""

    launches = {}  # noqa: RUF012

    def __init__(self, function):
        self.function = function

    def __getitem__(self, configuration):
        return self

    def __call__(self, *arguments):
        signature = tuple(map(type_of, arguments))
        kinds = {getattr(t, "dtype", t) for t in flat(signature)}
        precision = "float64" if types.float64 in kinds else "float32"
        place = self.function.__module__.rpartition(".")[2], self.function.__qualname__.partition(".")[0]
        self.launches.setdefault(
            (".".join(place), precision, closure(self.function), signature), self.function
        )


def type_of(value):
    assert not isinstance(value, np.ndarray) or isinstance(value, HostArray), "a host array would be copied"
    if isinstance(value, tuple):
        return types.BaseTuple.from_types(tuple(map(type_of, value)), type(value))
    return typeof(np.asarray(value)) if isinstance(value, np.ndarray) else typeof(value)


def flat(signature):
    for one in signature:
        yield from one.types if isinstance(one, types.BaseTuple) else (one,)


def closure(function):
    """What tells two kernels of one factory apart."""
    return tuple(repr(cell.cell_contents) for cell in function.__closure__ or ())


def on_host(array, *_):
    return np.array(array).view(HostArray)


def record():
    """Launch everything, on few numbers."""
    # device functions are compiled apart, for the card that is there
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=GENERATIONS[0])
    backend.kernel = Recorder
    backend.require = lambda: None
    backend.cuda.to_device = on_host
    backend.cuda.default_stream = lambda: SimpleNamespace(synchronize=lambda: None)
    backend.cuda.device_array = lambda shape, dtype: np.zeros(shape, dtype).view(HostArray)
    for module in [m for name, m in sys.modules.items() if name.startswith("locbook.engine.cuda.")]:
        if hasattr(module, "kernel"):
            module.kernel = Recorder
    warnings.simplefilter("ignore")
    for dtype in (np.float32, np.float64):
        for kernel in kernels():
            launch(kernel, dtype)
        for kernel in (lb.gaussian(1.0), lb.laplace(1.0), lb.softmax(1.0), lb.gaussian([1.0, 2.0, 3.0])):
            rows = points(4, dtype)
            cuda.log_sum(Problem.check(rows, rows, kernel))
        for d, p in ((2, 1), (16, 8), (64, 64)):
            rows = np.ones((4, d), dtype)
            cuda.mean(Problem.check(rows, rows, "gaussian"), np.ones((4, p), dtype))
        cuda.log_sum(Problem.check(rows, rows, lb.laplace(1.0)))
        rows = check_array(on_host(points(4, dtype)), "samples")
        part = lb.gaussian(1.0, on=[0, 1])
        cuda.mean(cuda.check_problem(rows, rows, part), rows)
        cuda.mean(cuda.check_problem(rows, rows, part + 1.0), rows)
        shifted(rows, np.ones((1, 3)), np.ones((1, 3)), dtype)
        copies(Problem.check(rows, rows, part, sample_weight=np.ones(4)), LOG, dtype)
        pull(dtype)


def points(n, dtype):
    return np.column_stack([np.linspace(0, 1, n), np.arange(n), np.arange(n) % 4]).astype(dtype)


def kernels():
    """Few kernels with all steps, all distances and all profiles among them."""
    names = ["uniform", "triangular", "epanechnikov", "biweight", "triweight", "tricube", "cosine", "cauchy"]
    plain = lb.KERNELS[names[0]](1.0)
    for name in names[1:]:
        plain = plain + lb.KERNELS[name](2.0, on=[0, 1])
    metrics = lb.gaussian(metric="manhattan") * lb.laplace(metric="chebyshev") * lb.gaussian(metric="cosine")
    metrics = metrics * lb.student_t(1.0, nu=2.0, metric=lb.minkowski(3.0)) * lb.gaussian(metric="hamming")
    others = lb.gaussian(metric=lb.mahalanobis(MATRIX @ MATRIX.T)) * lb.laplace(metric="haversine", on=[0, 1])
    others = others * lb.rational_quadratic(1.0, alpha=2.0, metric=lb.periodic(2.0)) * lb.laplace(MATRIX)
    steps = (
        lb.softmax(2.0, on=0) * (lb.causal(on=1) + 1e-3) * lb.von_mises(1.0, on=0) * lb.discrete(TABLE, on=2)
    )
    steps = steps * lb.gaussian(lb.per_sample(np.ones(8))) * lb.relative_bias([0.5, 0.1], on=1)
    users = (
        lb.Kernel(bump, 4.0)
        * lb.Kernel(log_profile=log_quartic)
        * lb.Kernel(lively)
        * lb.gaussian(0.3, metric=canberra)
    )
    missing = lb.gaussian(metric="nan_euclidean").hollow()
    return [plain, metrics, others, steps, users, missing, lb.knn(2) * lb.gaussian(lb.per_query(np.ones(8)))]


def launch(kernel, dtype):
    x = points(8, dtype)
    values = np.ones((8, 3), dtype)
    given = Problem.check(x, x, kernel, mask=np.ones((8, 8), dtype=bool))
    cuda.mean(given, values)
    if not isinstance(kernel, lb.kernels.base.HollowKernel):
        return
    cuda.log_sum(given)
    cuda.classes(given, np.zeros(8, int), 2)
    cuda.moments(given, values, 2)
    cuda.quantile(given, values, np.array([0.5]))
    cuda.nearest(given, 2)
    cuda.nearest(given, 2, "cosine")
    cuda.normalized_weights(given)
    cuda.self_weights(given)
    cuda.dense_weights(kernel, x, x, log=False)
    many = np.ones((8, 200), dtype)
    cuda.mean(Problem.check(many, many, lb.epanechnikov(1.0)), values)


def pull(dtype):
    """The gradient: every slope and distance that has one."""
    ready.mean_or_nan = lambda problem, *_: on_host(np.ones((8, 1), problem.dtype))  # compiled above
    ready.log_sums_of = lambda problem, *_: on_host(np.zeros(8, problem.dtype))
    gather(on_host(np.ones((2, 2), dtype=bool)), np.arange(2), np.bool_, rows=np.arange(2))
    folded(on_host(np.ones((4, 2))), np.arange(4).reshape(2, 2))
    x, ones = points(8, dtype), np.ones((8, 1), dtype)
    places = ("queries", "samples")
    steps = (
        lb.softmax(2.0, on=0)
        * lb.von_mises(1.0, on=1)
        * lb.discrete(TABLE, on=2)
        * lb.relative_bias([0.5], on=1)
    )
    for kernel, wrt in (
        (lb.gaussian([1.0, 2.0, 3.0]), cuda.ARGUMENTS),
        (lb.epanechnikov(lb.per_query(np.ones(8))) + 1.0, cuda.ARGUMENTS),
        (steps, (*places, "kernel")),
        (lb.laplace(MATRIX), (*places, "kernel")),
        (lb.tricube([1.0, 2.0, 3.0], metric=lb.periodic(2.0)), (*places, "kernel")),
        (lb.student_t(metric="manhattan"), places),
        (lb.cosine(metric="chebyshev"), places),
        (lb.rational_quadratic(metric=lb.minkowski(3.0)), places),
        (lb.cauchy(metric="haversine", on=[0, 1]), places),
        (lb.triangular(metric="cosine"), places),
        (lb.biweight(metric="nan_euclidean"), places),
        (lb.triweight(lb.per_sample(np.ones(8))), ("kernel",)),
        (lb.Kernel(bump), ("kernel",)),
    ):
        cuda.mean_vjp(Problem.check(x, x, kernel), ones, ones, wrt)


def machine_code(ptx, version):
    """Registers, stack and spills, as the assembler says."""
    options = [f"-arch=sm_{version}", "-verbose"]
    handle = nvjitlink.create(len(options), options)
    source = ptx.encode()
    nvjitlink.add_data(handle, nvjitlink.InputType.PTX, source, len(source), "kernel")
    nvjitlink.complete(handle)
    log = bytearray(nvjitlink.get_info_log_size(handle))
    nvjitlink.get_info_log(handle, log)
    nvjitlink.destroy(handle)
    text = log.decode()

    def largest(pattern):
        return max(map(int, re.findall(pattern, text)))

    return {
        "registers": largest(r"Used (\d+) registers"),
        "stack": largest(r"(\d+) bytes stack frame"),
        "spills": largest(r"(\d+) bytes spill stores"),
    }


def main(share=0, shares=1):
    """Lower each kernel of a share once, and compile it for each generation."""
    record()
    # the compiler copies much and keeps little: a fifth of the time is spent on looking for garbage
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    signature = (typeof(np.zeros(1, np.float32)),) * 2
    Recorder.launches["broken", "float32", (), signature] = broken
    for (name, precision, _, signature), function in list(Recorder.launches.items())[share::shares]:
        given = {"device": False, "abi": "numba", "cc": GENERATIONS[0]}
        library, _ = compiler._compile_pyfunc_with_fixup(function, types.void(*signature), **given)
        for major, minor in GENERATIONS:
            (ptx,) = library.get_asm_strs(cc=(major, minor))
            told = {"name": name, "precision": precision, "generation": f"{major}.{minor}"}
            told |= {"float64": len(re.findall(r"\.f64\b", ptx))} | machine_code(ptx, 10 * major + minor)
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
