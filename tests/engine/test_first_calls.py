"""A first call compiles what it needs and nothing else: counted in a process with an empty cache."""

import json
import os
import subprocess
import sys

import pytest

from locbook.engine import vectors

pytestmark = pytest.mark.skipif(not vectors.ENABLED, reason="counts those of the vector kernels")

CODE = """
import json, math
import numpy as np
from numba.core import event
import locbook as lb

x, y = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300.0)
calls = {
    "gaussian": lambda: lb.local_mean(x, x, y, lb.gaussian(0.5)),
    "a second bandwidth": lambda: lb.local_mean(x, x, y, lb.gaussian(0.7)),
    "own gaussian": lambda: lb.local_mean(x, x, y, lb.Kernel(lambda s: math.exp(-s / 2))),
    "knn": lambda: lb.local_mean(x, x, y, lb.knn(5)),
    "causal": lambda: lb.local_mean(x, x, y, lb.softmax(on=1) * lb.causal(on=0)),
    "sum": lambda: lb.local_mean(x, x, y, lb.gaussian(0.5) + lb.cauchy(1.0)),
    "distance": lambda: lb.local_mean(x, x, y, lb.gaussian(0.5, metric="manhattan")),
    "weights": lambda: lb.local_weights(x, x, lb.gaussian(0.5)),
    "gradient": lambda: lb.local_mean_vjp(y, x, x, y, lb.gaussian(0.5)),
    "any gradient": lambda: lb.local_mean_vjp(y, x, x, y, lb.cauchy(0.5)),
}
found = {}
for name, call in calls.items():
    with event.install_recorder("numba:compile") as recorder:
        call()
    starts = [entry.data["dispatcher"].py_func for _, entry in recorder.buffer if entry.is_start]
    found[name] = [f"{f.__module__.removeprefix('locbook.')}.{f.__name__}" for f in starts]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
    run = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(run.stdout)


def modules(functions):
    return {name.rsplit(".", 1)[0] for name in functions}


def test_what_a_first_call_compiles(compiled):
    assert modules(compiled["gaussian"]) == {"engine.fused", "engine.fused_sweep", "engine.records"}
    assert compiled["a second bandwidth"] == []
    assert compiled["own gaussian"] == []
    assert not modules(compiled["knn"]) & {"engine.program", "engine.fused_sweep"}
    assert "engine.sweep.visit" not in compiled["knn"]
    assert "engine.sweep.visit" in compiled["distance"]
    fused = {"engine.terms", "engine.fused", "engine.fused_sweep", "numba.cpython.builtins"}
    assert modules(compiled["causal"]) <= fused
    assert "engine.program" not in modules(compiled["sum"])


def test_a_program_compiles_its_own_steps(compiled):
    of_program = {"measure", "weigh", "evaluate", "run"}
    for name in ("distance", "weights", "any gradient"):
        known = {
            function.rsplit(".", 1)[1] for function in compiled[name] if function.startswith("engine.program")
        }
        assert known <= of_program
    rows = {function for function in compiled["distance"] if function.startswith("kernels.metrics")}
    assert rows == {"kernels.metrics.manhattan_row"}
    assert not any(function.startswith("engine.backward") for function in compiled["gradient"])
    assert not {"log1p", "_add"} & {function.rsplit(".", 1)[1] for function in compiled["any gradient"]}
