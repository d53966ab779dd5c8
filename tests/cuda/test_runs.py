"""Start the processes that hold ``engine/cuda`` without a card: the simulator, and the compiler for three generations.

They need numba-cuda (``pip install "locbook[cuda]"``), here or in the interpreter that ``LOCBOOK_CUDA_PYTHON`` names.
"""

import importlib.util
import json
import os
import sys
from functools import cache, partial
from pathlib import Path

import pytest

from tests import background

ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get("LOCBOOK_CUDA_PYTHON", sys.executable)
GENERATIONS = ("8.0", "9.0", "10.0")

INSTALLED = sys.executable != PYTHON or importlib.util.find_spec("numba_cuda") is not None
needs_numba_cuda = pytest.mark.skipif(not INSTALLED, reason="numba-cuda is not installed: make peers")


run = partial(background.run, python=PYTHON, without=("NUMBA_ENABLE_CUDASIM",))
begin = partial(background.begin, python=PYTHON, without=("NUMBA_ENABLE_CUDASIM",))


@cache
def runs():
    """The long processes, beside all other tests."""
    if not INSTALLED:
        return {}
    simulator = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    compiler = ("-W", "ignore", "-m", "tests.cuda.compile_all")
    files = sorted(map(str, (ROOT / "tests/cuda/simulated").glob("test_*.py")))
    return {
        "compiler": [begin(*compiler, half, "2") for half in "01"],
        # later: it loads what the tests of the processor have compiled by then
        "simulator": [begin(*simulator, *files[half::2], NUMBA_ENABLE_CUDASIM="1") for half in (0, 1)],
    }


@needs_numba_cuda
@background.waits_for(runs)
def test_in_the_simulator():
    for half in runs()["simulator"]:
        ended = half.result()
        assert ended.returncode == 0, ended.stdout
        assert " passed" in ended.stdout


@pytest.fixture(scope="module")
def compiled():
    """What the compiler says of every kernel."""
    lines = []
    for half in runs()["compiler"]:
        ended = half.result()
        assert ended.returncode == 0, ended.stdout
        lines += [line for line in ended.stdout.splitlines() if line.startswith("{")]
    return [json.loads(line) for line in lines]


@needs_numba_cuda
@background.waits_for(runs)
@pytest.mark.parametrize("generation", GENERATIONS)
def test_machine_code(compiled, generation):
    kernels = [kernel for kernel in compiled if kernel["generation"] == generation]
    (broken,) = [kernel for kernel in kernels if kernel["name"] == "broken"]
    assert broken["stack"] > 0  # what is wrong on purpose is found
    assert broken["float64"] > 0
    kernels.remove(broken)
    assert factories() <= {kernel["name"] for kernel in kernels}
    assert len(factories()) > 10
    for kernel in kernels:
        assert kernel["spills"] == kernel["stack"] == 0, kernel
        assert kernel["float64"] == 0 or kernel["precision"] == "float64", kernel
    assert {kernel["precision"] for kernel in kernels} == {"float32", "float64"}


def factories():
    """Every function of ``engine/cuda`` that makes a kernel, by its source."""
    found = set()
    for file in (ROOT / "locbook" / "engine" / "cuda").glob("*.py"):
        name = ""
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("def "):
                name = line.removeprefix("def ").partition("(")[0]
            if line.strip() in ("@kernel", "@backend.kernel"):
                found.add(f"{file.stem}.{name}")
    return found


ABSENT = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name == "numba_cuda" else find(name, *a)
from locbook.engine import Problem, cuda
assert not cuda.is_available()
for call in (cuda.require, lambda: cuda.log_sum(Problem.check([[0.0]], [[0.0]], "gaussian"))):
    try:
        call()
    except cuda.DeviceError as error:
        assert "device='cuda'" in str(error) and 'pip install "locbook[cuda]"' in str(error), error
    else:
        raise AssertionError("no error")
"""
LIGHT = """
import sys, locbook
locbook.local_mean
assert not [m for m in sys.modules if m.startswith(("locbook.engine.cuda", "numba_cuda", "numba.cuda"))]
"""
NO_CARD = """
from locbook.engine import cuda
try:
    cuda.require()
except cuda.DeviceError as error:
    assert "device='cuda' is not available" in str(error)
else:
    assert cuda.is_available()
"""


@pytest.mark.parametrize("script", [ABSENT, LIGHT, NO_CARD], ids=["absent", "light", "no card"])
def test_without_what_it_needs(script):
    ended = run("-c", script, python=sys.executable)
    assert ended.returncode == 0, ended.stdout
